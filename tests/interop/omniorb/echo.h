// What the peer does with the values of types.idl: their transformation and their
// text form. Both follow ../README.md; two values are the same when their texts are.
#pragma once
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include "extras.hh"
#include "types.hh"

namespace echo {

// ------------------------------------------------------------------ structs
// fields(v) of a struct: a tuple of references to its members.
#define ECHO_STRUCT(T, ...)                                                             \
  template <class V, std::enable_if_t<std::is_same_v<std::remove_const_t<V>, T>, int> = 0> \
  auto fields(V& v) { return std::tie(__VA_ARGS__); }

ECHO_STRUCT(Interop::Point, v.x, v.y)
ECHO_STRUCT(Interop::Mixed, v.tag, v.weight, v.delta, v.total, v.mark, v.flag, v.ratio, v.port, v.mask, v.stamp, v.tail)
ECHO_STRUCT(Interop::Bill, v.items, v.total, v.number, v.share, v.code)
ECHO_STRUCT(Interop::Person, v.name, v.age, v.favourite)
ECHO_STRUCT(Interop::Team, v.lead, v.members, v.origin, v.goal, v.label, v.scores, v.digest, v.table)
ECHO_STRUCT(Interop::Caption, v.narrow, v.wide, v.mark)
ECHO_STRUCT(Interop::Tree, v.value, v.children)
ECHO_STRUCT(Interop::Wrapped, v.before, v.choice, v.more, v.after)
ECHO_STRUCT(Interop::NodePair, v.title, v.first, v.second)
ECHO_STRUCT(Interop::Names::Option, v.some, v.outcome)
ECHO_STRUCT(Interop::Names::Words, v.type, v.fn, v.loop, v._cxx_class)
#undef ECHO_STRUCT

// ------------------------------------------------------------------- unions
// visit(u, f) calls f(get, set) for the member that the discriminator selects, and
// nothing for an implicit default. MEMBER_ARRAY names the array type of the member,
// which the accessor forgets.
#define ECHO_UNION(T) template <class V, class F> \
  std::enable_if_t<std::is_same_v<std::remove_const_t<V>, T>> visit(V& u, F f)
#define MEMBER(m) f([&]() -> decltype(auto) { return std::as_const(u).m(); }, [&](const auto& x) { if constexpr (!std::is_const_v<V>) u.m(x); }); break
#define MEMBER_ARRAY(m, A) f([&]() -> const A& { return *reinterpret_cast<const A*>(std::as_const(u).m()); }, \
                             [&](const auto& x) { if constexpr (!std::is_const_v<V>) u.m(x); }); break

ECHO_UNION(Interop::ByLong) { switch (u._d()) { case 1: MEMBER(a); case 2: case 3: MEMBER(b); default: MEMBER(c); } }
ECHO_UNION(Interop::ByColor) { switch (u._d()) { case Interop::red: MEMBER(count); case Interop::green: MEMBER(spot); default: break; } }
ECHO_UNION(Interop::AllColors) { switch (u._d()) { case Interop::red: MEMBER(r); case Interop::green: MEMBER(g); default: MEMBER(s); } }
ECHO_UNION(Interop::ByBoolean) { switch (int(u._d())) { case 1: MEMBER(yes); default: MEMBER(no); } }
ECHO_UNION(Interop::Maybe) { switch (int(u._d())) { case 1: MEMBER(some); default: break; } }
ECHO_UNION(Interop::ByChar) { switch (u._d()) { case 'a': MEMBER(number); case 'b': case 'c': MEMBER(people); default: MEMBER(other); } }
ECHO_UNION(Interop::ByShort) { switch (u._d()) { case -1: MEMBER_ARRAY(grid, Interop::Matrix); case 0x7fff: MEMBER(list); default: break; } }
ECHO_UNION(Interop::ByUShort) { switch (u._d()) { case 0: MEMBER(flag); case 32767: MEMBER(letter); default: break; } }
ECHO_UNION(Interop::ByULong) { switch (u._d()) { case 0x7fffffff: MEMBER(inner); default: MEMBER(rest); } }
ECHO_UNION(Interop::ByLongLong) { switch (u._d()) { case -2147483648LL: MEMBER(before); case 2147483647: MEMBER(after); default: break; } }
ECHO_UNION(Interop::ByULongLong) { switch (u._d()) { case 2147483647: MEMBER(most); default: MEMBER(rest); } }
ECHO_UNION(Interop::WideChoice) { switch (u._d()) { case 1: MEMBER(text); case 2: MEMBER(letter); default: MEMBER(narrow); } }
ECHO_UNION(Interop::FarUShort) { switch (u._d()) { case 65535: MEMBER(letter); case 32768: MEMBER(flag); default: break; } }
ECHO_UNION(Interop::FarULong) { switch (u._d()) { case 4294967295U: MEMBER(last); case 2147483648U: MEMBER(middle); default: break; } }
ECHO_UNION(Interop::FarLongLong) { switch (u._d()) { case -4294967296LL: MEMBER(before); case 4294967296LL: MEMBER(after); default: MEMBER(between); } }
ECHO_UNION(Interop::FarULongLong) { switch (u._d()) { case 18446744073709551615ULL: MEMBER(last); case 9223372036854775808ULL: MEMBER(middle); default: break; } }
#undef MEMBER
#undef MEMBER_ARRAY
#undef ECHO_UNION

// ----------------------------------------------------------- which kind is T
template <class T, class = void> struct is_sequence : std::false_type {};
template <class T> struct is_sequence<T, std::void_t<decltype(std::declval<T&>().maximum()), decltype(std::declval<T&>()[0])>> : std::true_type {};
template <class T, class = void> struct is_union : std::false_type {};
template <class T> struct is_union<T, std::void_t<decltype(std::declval<const T&>()._d())>> : std::true_type {};
template <class T> constexpr bool is_decimal = std::is_base_of_v<CORBA::Fixed, T>;
template <class T> constexpr bool is_text = std::is_convertible_v<const T&, const char*> && !std::is_arithmetic_v<T>;
template <class T> constexpr bool is_wide_text = std::is_convertible_v<const T&, const CORBA::WChar*> && !std::is_arithmetic_v<T>;
// Members and elements of references convert to pointers of CORBA::Object.
template <class T> constexpr bool is_reference = std::is_convertible_v<const T&, CORBA::Object_ptr>;

// An array or a string as a value.
template <class A> struct Boxed { A value; };
using Line = Boxed<CORBA::String_member>;
using WideLine = Boxed<CORBA::WString_member>;
template <class T> struct is_boxed : std::false_type {};
template <class A> struct is_boxed<Boxed<A>> : std::true_type {};

template <class A, class B> void assign(A& to, const B& from) {
  if constexpr (std::is_array_v<A>) {
    for (size_t i = 0; i < std::extent_v<A>; i++) assign(to[i], from[i]);
  } else {
    to = from;
  }
}

// ----------------------------------------------------------- transformation
template <class C> void swap_case(C* s) {
  for (; *s; s++)
    if ((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z')) *s ^= 0x20;
}

template <class T> void transform(T& v);

// A sequence of arrays.
inline void transform(Interop::MatrixSeq& v) {
  const Interop::MatrixSeq old(v);
  for (CORBA::ULong n = v.length(), i = 0; i < n; i++) {
    Interop::Matrix_copy(v[i], old[n - 1 - i]);
    transform(*reinterpret_cast<Interop::Matrix*>(v[i]));
  }
}

// A union that holds a reference: it stays, and the text swaps its case.
inline void transform(Interop::NodeOrText& u) {
  if (u._d()) return;
  CORBA::String_var words = CORBA::string_dup(u.words());
  swap_case(words.inout());
  u.words(words.in());
}

template <class T> void transform(T& v) {
  if constexpr (is_boxed<T>::value) {
    transform(v.value);
  } else if constexpr (std::is_same_v<T, CORBA::Boolean>) {
    v = !v;
  } else if constexpr (std::is_same_v<T, CORBA::Octet> || std::is_same_v<T, CORBA::WChar>) {
    v ^= 0x20;                           // char is the same C++ type as octet
  } else if constexpr (std::is_integral_v<T>) {
    v = T(~v);
  } else if constexpr (std::is_floating_point_v<T> || is_decimal<T>) {
    v = -v;
  } else if constexpr (std::is_same_v<T, Interop::Color>) {
    v = Interop::Color((v + 1) % 3);
  } else if constexpr (std::is_same_v<T, Interop::Names::Result>) {
    v = Interop::Names::Result((v + 1) % 2);
  } else if constexpr (std::is_array_v<T>) {
    constexpr size_t n = std::extent_v<T>;
    T old;
    assign(old, v);
    for (size_t i = 0; i < n; i++) {
      assign(v[i], old[n - 1 - i]);
      transform(v[i]);
    }
  } else if constexpr (is_sequence<T>::value) {
    const T old(v);
    CORBA::ULong n = v.length();
    for (CORBA::ULong i = 0; i < n; i++) {
      v[i] = old[n - 1 - i];
      decltype(auto) element = v[i];
      transform(element);
    }
  } else if constexpr (is_text<T>) {
    swap_case(static_cast<char*>(v));
  } else if constexpr (is_wide_text<T>) {
    swap_case(static_cast<CORBA::WChar*>(v));
  } else if constexpr (is_reference<T>) {
    // stays what it is
  } else if constexpr (is_union<T>::value) {
    auto label = v._d();
    visit(v, [](auto get, auto set) {
      using M = std::decay_t<decltype(get())>;
      using A = std::remove_const_t<std::remove_reference_t<decltype(get())>>;
      if constexpr (std::is_array_v<A>) {
        A member;
        assign(member, get());
        transform(member);
        set(member);
      } else if constexpr (std::is_same_v<M, const char*>) {
        CORBA::String_var member = CORBA::string_dup(get());
        transform(member.inout());
        set(member.in());
      } else if constexpr (std::is_same_v<M, const CORBA::WChar*>) {
        CORBA::WString_var member = CORBA::wstring_dup(get());
        transform(member.inout());
        set(member.in());
      } else {
        M member = get();
        transform(member);
        set(member);
      }
    });
    v._d(label);
  } else {
    std::apply([](auto&... member) { (transform(member), ...); }, fields(v));
  }
}

// ---------------------------------------------------------------- text form
inline void escape(std::ostream& out, unsigned unit) {
  char text[16];
  if (unit >= 0x20 && unit < 0x7f && unit != '"' && unit != '\\' && unit != '\'') out << char(unit);
  else out << (snprintf(text, sizeof text, "\\u%04x", unit), text);
}
template <class F> void bits(std::ostream& out, F v) {
  std::conditional_t<sizeof(F) == 4, uint32_t, uint64_t> raw;
  memcpy(&raw, &v, sizeof raw);
  char text[32];
  snprintf(text, sizeof text, "0x%0*llx", int(2 * sizeof raw), (unsigned long long)raw);
  out << text;
}

template <class T> void show(std::ostream& out, const T& v);

inline void show(std::ostream& out, const Interop::MatrixSeq& v) {
  out << '[';
  for (CORBA::ULong i = 0; i < v.length(); i++) {
    if (i) out << ',';
    show(out, *reinterpret_cast<const Interop::Matrix*>(v[i]));
  }
  out << ']';
}

inline void show(std::ostream& out, const Interop::NodeOrText& u) {
  if (!u._d()) {
    out << "(false:\"" << u.words() << "\")";
  } else {
    out << (CORBA::is_nil(u.vertex()) ? "(true:nil)" : "(true:reference)");
  }
}

template <class T> void show(std::ostream& out, const T& v) {
  if constexpr (is_boxed<T>::value) {
    show(out, v.value);
  } else if constexpr (std::is_same_v<T, CORBA::Boolean>) {
    out << (v ? "true" : "false");
  } else if constexpr (std::is_same_v<T, CORBA::Octet> || std::is_same_v<T, CORBA::WChar>) {
    out << unsigned(v);                  // char is the same C++ type as octet
  } else if constexpr (std::is_integral_v<T>) {
    out << v;
  } else if constexpr (std::is_floating_point_v<T>) {
    bits(out, v);
  } else if constexpr (is_decimal<T>) {
    CORBA::String_var digits = v.NP_asString();
    out << digits.in();
  } else if constexpr (std::is_same_v<T, Interop::Color>) {
    out << (v == Interop::red ? "red" : v == Interop::green ? "green" : v == Interop::blue ? "blue" : "?");
  } else if constexpr (std::is_same_v<T, Interop::Names::Result>) {
    out << (v == Interop::Names::ok ? "ok" : "err");
  } else if constexpr (std::is_array_v<T> || is_sequence<T>::value) {
    CORBA::ULong n;
    if constexpr (std::is_array_v<T>) n = std::extent_v<T>; else n = v.length();
    out << '[';
    for (CORBA::ULong i = 0; i < n; i++) {
      if (i) out << ',';
      show(out, v[i]);
    }
    out << ']';
  } else if constexpr (is_text<T>) {
    // octets of the native code set, UTF-8 unless the command line says otherwise
    out << '"';
    for (const unsigned char* s = reinterpret_cast<const unsigned char*>(static_cast<const char*>(v)); *s;) {
      unsigned long c = *s++;
      for (int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0, first = more; more && (*s & 0xc0) == 0x80; more--)
        c = (more == first ? c & (0x3f >> first) : c) << 6 | (*s++ & 0x3f);
      if (c > 0xffff) {                 // as UTF-16, like JacORB's peer
        escape(out, 0xd800 + ((c - 0x10000) >> 10));
        c = 0xdc00 + ((c - 0x10000) & 0x3ff);
      }
      escape(out, c);
    }
    out << '"';
  } else if constexpr (is_wide_text<T>) {
    out << '"';
    for (const CORBA::WChar* s = v; *s; s++) escape(out, *s);
    out << '"';
  } else if constexpr (is_reference<T>) {
    out << (CORBA::is_nil(static_cast<CORBA::Object_ptr>(v)) ? "nil" : "reference");
  } else if constexpr (is_union<T>::value) {
    out << '(';
    show(out, v._d());
    visit(v, [&](auto get, auto) { out << ':'; show(out, get()); });
    out << ')';
  } else {
    out << '{';
    const char* comma = "";
    std::apply([&](const auto&... member) { ((out << comma, show(out, member), comma = ","), ...); }, fields(v));
    out << '}';
  }
}

template <class T> std::string text(const T& v) {
  std::ostringstream out;
  show(out, v);
  return out.str();
}

}  // namespace echo
