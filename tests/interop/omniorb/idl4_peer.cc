// server --ior PATH [--seconds S] [-ORB...]: serves idl4.idl until SIGTERM, writes its reference to PATH, prints READY.
// client --ior PATH [--seconds S]: drives such a server; prints `ok` or `FAIL why` for each check. Status 0: all ok.
// What the sample is, tests/interop/idl4/mod.rs says as well.
#include <atomic>
#include <csignal>
#include <fstream>
#include <iostream>
#include <omniORB4/CORBA.h>
#include "idl4.hh"
#include "options.h"
#include "run.h"

using namespace Idl4;

static const Rights read_ = 1, write_ = 2, sticky = 512;

static Derived derived() {
  Derived d;
  d.id = 7;
  d.name = "derived";
  d.weight = 1.5;
  d.allowed = write_;
  return d;
}

static Counts counts() {
  Counts c;
  c.length(3);
  const char* keys[] = {"a", "b", "c"};
  const CORBA::Long values[] = {1, -2, 3};
  for (int i = 0; i < 3; i++) {
    c[i].key = keys[i];
    c[i].value = values[i];
  }
  return c;
}

static Item item(bool full) {
  Item i;
  i.amount = full ? 20 : 3;
  i.discount = full ? 100 : 0;
  if (full) {
    i.note.length(1);
    i.note[0] = "noted";
    i.price.length(1);
    i.price[0] = 9.5;
    i.more.length(1);
    i.more[0] = derived();
  }
  return i;
}

static Sample sample() {
  Sample s;
  s.a = read_ | sticky;
  s.b = 2;
  s.c = 1ULL << 39 | 1;
  s.d = 44 | 9 << 7 | 8 << 11;
  s.e = s.d | (CORBA::ULongLong(-5) & 0xfff) << 16 | CORBA::ULongLong(0xabcde) << 28;
  s.f = counts();
  s.g.length(2);
  s.g[0].key = red;
  s.g[0].value.length(2);
  s.g[0].value[0] = 1;
  s.g[0].value[1] = 2;
  s.g[1].key = green;
  s.h = derived();
  s.i = {0xfb, 200, -300, 60000, -70000, 4000000000u, -(1LL << 40), ~0ULL};
  s.j = item(true);
  s.k = item(false);
  return s;
}

#define WANT(condition) \
  if (!(condition)) return std::string("not so: ") + #condition

static bool same(const Derived& a, const Derived& b) {
  return a.id == b.id && !strcmp(a.name, b.name) && a.weight == b.weight && a.allowed == b.allowed;
}
static bool same(const Counts& a, const Counts& b) {
  if (a.length() != b.length()) return false;
  for (CORBA::ULong i = 0; i < a.length(); i++)
    if (strcmp(a[i].key, b[i].key) || a[i].value != b[i].value) return false;
  return true;
}
static bool same(const Item& a, const Item& b) {
  if (a.note.length() != b.note.length() || a.price.length() != b.price.length() || a.more.length() != b.more.length()) return false;
  if (a.note.length() && strcmp(a.note[0], b.note[0])) return false;
  if (a.price.length() && a.price[0] != b.price[0]) return false;
  if (a.more.length() && !same(a.more[0], b.more[0])) return false;
  return a.amount == b.amount && a.discount == b.discount;
}
static bool same(const Kids& a, const Kids& b) {
  if (a.length() != b.length()) return false;
  for (CORBA::ULong i = 0; i < a.length(); i++)
    if (strcmp(a[i].key, b[i].key) || a[i].v != b[i].v || !same(a[i].below, b[i].below)) return false;
  return true;
}
static bool same(const Tree& a, const Tree& b) { return a.v == b.v && same(a.below, b.below); }
static bool same(const ByOctet& a, const ByOctet& b) {
  if (a._d() != b._d()) return false;
  switch (a._d()) {
    case '\x01': return a.number() == b.number();
    case 'A':
    case 'B': return !strcmp(a.text(), b.text());
    default: return a.date() == b.date();
  }
}

static std::string wrong_with(const Sample& s) {
  Sample own = sample();
  WANT(s.a == own.a);
  WANT(s.b == own.b);
  WANT(s.c == own.c);
  WANT(s.d == own.d);
  WANT(s.e == own.e);
  WANT(same(s.f, own.f));
  WANT(s.g.length() == 2 && s.g[0].key == red && s.g[1].key == green);
  WANT(s.g[0].value.length() == 2 && s.g[0].value[1] == 2 && s.g[1].value.length() == 0);
  WANT(same(s.h, own.h));
  WANT(s.i.a == own.i.a && s.i.b == own.i.b && s.i.c == own.i.c && s.i.d == own.i.d);
  WANT(s.i.e == own.i.e && s.i.f == own.i.f && s.i.g == own.i.g && s.i.h == own.i.h);
  WANT(same(s.j, own.j));
  WANT(same(s.k, own.k));
  return "";
}

static Tree tree() {
  Tree t;
  t.v = 1;
  t.below.length(2);
  t.below[0].key = "left";
  t.below[0].v = 2;
  t.below[0].below.length(1);
  t.below[0].below[0].key = "leaf";
  t.below[0].below[0].v = 3;
  t.below[1].key = "right";
  t.below[1].v = -4;
  return t;
}

class PeerServant : public POA_Idl4::Peer {
public:
  Sample* get() override { return new Sample(sample()); }
  char* check(const Sample& s) override { return CORBA::string_dup(wrong_with(s).c_str()); }

#define ECHO(operation, T)                                      \
  T* operation(const T& a, T& b, T##_out c) override {          \
    c = new T(b);                                               \
    b = a;                                                      \
    return new T(a);                                            \
  }
  ECHO(echo, Sample)
  ECHO(echo_counts, Counts)
  ECHO(echo_deriveds, Deriveds)
  ECHO(echo_choices, Choices)
  ECHO(echo_tree, Tree)
#undef ECHO
#define ECHO(operation, T)                                      \
  T operation(T a, T& b, T##_out c) override {                  \
    c = b;                                                      \
    b = a;                                                      \
    return a;                                                   \
  }
  ECHO(echo_rights, Rights)
  ECHO(echo_stamp, Stamp)
#undef ECHO
  Holds echo_holds(const Holds& a, Holds& b, Holds_out c) override {
    c = b;
    b = a;
    return a;
  }

  CORBA::Any* get_in_any() override {
    CORBA::Any_var any = new CORBA::Any;
    any.inout() <<= sample();
    return any._retn();
  }
  char* check_any(const CORBA::Any& any) override {
    const Sample* s;
    return CORBA::string_dup((any >>= s) ? wrong_with(*s).c_str() : "it is no Sample");
  }
  Percent as_percent(CORBA::Octet n) override { return n; }
  Percents* as_percents(const Octets& n) override {
    Percents_var all = new Percents(n.length());
    all->length(n.length());
    for (CORBA::ULong i = 0; i < n.length(); i++) all[i] = n[i];
    return all._retn();
  }
  CORBA::Octet take(Percent n) override { return n; }
  void fail(CORBA::Long code) override {
    Refused refused;
    refused.code = code;
    if (code % 2) {
      refused.why.length(1);
      refused.why[0] = "odd";
    }
    throw refused;
  }
  void put(Rights what) override { last = what; }
  Rights put_last() override { return last; }

private:
  std::atomic<Rights> last{0};
};

// zorb knows the range and refuses what is not in it, here as it reads the request.
template <class F> static bool refused(F f) {
  try {
    f();
  } catch (CORBA::MARSHAL&) {
    return true;
  }
  return false;
}

static void drive(Peer_ptr peer) {
  run("get", [&]() -> std::string { Sample_var s = peer->get(); return wrong_with(s); });
  run("check", [&]() -> std::string { CORBA::String_var said = peer->check(sample()); return said.in(); });
  run("echo", [&]() -> std::string {
    Sample a = sample(), b = sample();
    b.k = item(true);
    Sample_var c, result = peer->echo(a, b, c.out());
    WANT(same(c->k, item(true)));
    c->k = item(false);
    std::string wrong = wrong_with(result) + wrong_with(b) + wrong_with(c);
    return wrong;
  });
  run("bits", [&]() -> std::string {
    Rights b = sticky, c;
    WANT(peer->echo_rights(~0u, b, c) == ~0u && b == ~0u && c == sticky);   // unknown bits are kept
    Stamp d = 1, e;
    WANT(peer->echo_stamp(65535, d, e) == 65535 && d == 65535 && e == 1);
    return "";
  });
  run("maps", [&]() -> std::string {
    Counts unsorted = counts(), b;
    std::swap(unsorted[0], unsorted[2]);
    Counts_var c, a = peer->echo_counts(unsorted, b, c.out());
    WANT(same(a, counts()) && same(b, counts()) && c->length() == 0);       // zorb's maps are sorted
    Counts twice = counts();
    twice[2].key = "a";
    WANT(refused([&] { a = peer->echo_counts(twice, b, c.out()); }));
    return "";
  });
  run("structs", [&]() -> std::string {
    Deriveds a, b;
    a.length(3);
    for (int i = 0; i < 3; i++) a[i] = derived();
    Deriveds_var c, result = peer->echo_deriveds(a, b, c.out());
    WANT(result->length() == 3 && b.length() == 3 && c->length() == 0 && same(result[2], derived()));
    Holds e = {5}, f = {6}, g, h;
    h = peer->echo_holds(e, f, g);
    WANT(h.o == 5 && f.o == 5 && g.o == 6);
    Tree t, u;
    t.v = 0;
    Tree_var v, w = peer->echo_tree(tree(), t, v.out());
    WANT(same(w, tree()) && same(t, tree()) && v->v == 0 && v->below.length() == 0);
    return "";
  });
  run("unions", [&]() -> std::string {
    Choices a, b;
    a.length(4);
    a[0].number(-1);
    a[1].text("A");
    a[2].text("second");
    a[2]._d('B');
    a[3].date(77);
    a[3]._d('z');
    b.length(1);
    b[0].number(5);
    Choices_var c, result = peer->echo_choices(a, b, c.out());
    WANT(result->length() == 4 && b.length() == 4 && c->length() == 1 && c[0].number() == 5);
    for (int i = 0; i < 4; i++) WANT(same(result[i], a[i]) && same(b[i], a[i]));
    return "";
  });
  run("anys", [&]() -> std::string {
    CORBA::Any_var theirs = peer->get_in_any();
    const Sample* s;
    WANT(theirs.in() >>= s);
    std::string wrong = wrong_with(*s);
    if (!wrong.empty()) return wrong;
    CORBA::Any own;
    own <<= sample();
    CORBA::String_var said = peer->check_any(own);
    return said.in();
  });
  run("ranges", [&]() -> std::string {
    Octets n;
    n.length(2);
    n[0] = 1;
    n[1] = 100;
    Percents_var all = peer->as_percents(n);
    WANT(all->length() == 2 && all[1] == 100 && peer->as_percent(42) == 42 && peer->take(0) == 0 && peer->take(100) == 100);
    WANT(refused([&] { peer->take(101); }));
    Sample s = sample(), b = sample();
    s.j.amount = 21;
    Sample_var c, a;
    WANT(refused([&] { a = peer->echo(s, b, c.out()); }));
    return "";
  });
  run("exceptions", [&]() -> std::string {
    for (CORBA::Long code = 4; code < 6; code++) {
      try {
        peer->fail(code);
        return "no exception";
      } catch (Refused& e) {
        WANT(e.code == code && e.why.length() == CORBA::ULong(code % 2));
        WANT(code % 2 == 0 || !strcmp(e.why[0], "odd"));
      }
    }
    return "";
  });
  run("oneway", [&]() -> std::string {
    peer->put(read_ | write_);
    WANT(peer->put_last() == (read_ | write_));
    return "";
  });
}

int main(int argc, char** argv) {
  try {
    exitAfter(opt(argc, argv, "--seconds", "300"));
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &stop, nullptr);
    CORBA::ORB_var orb = initOrb(argc, argv, {{"endPoint", "giop:tcp:127.0.0.1:"}, {"nativeCharCodeSet", "UTF-8"}, {"traceLevel", "0"}});
    CORBA::Object_var obj = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var poa = PortableServer::POA::_narrow(obj);
    PortableServer::POAManager_var(poa->the_POAManager())->activate();
    std::string path = opt(argc, argv, "--ior", "idl4.ior");
    if (argc > 1 && !strcmp(argv[1], "client")) {
      std::ifstream file(path);
      std::string ior;
      file >> ior;
      obj = orb->string_to_object(ior.c_str());
      Peer_var peer = Peer::_narrow(obj);
      drive(peer);
      orb->destroy();
      return failed ? 1 : 0;
    }
    auto* servant = new PeerServant;
    PortableServer::ObjectId_var id = poa->activate_object(servant);
    Peer_var self = servant->_this();
    CORBA::String_var ior = orb->object_to_string(self);
    std::ofstream(path + ".new") << ior << '\n';
    rename((path + ".new").c_str(), path.c_str());
    std::cout << "READY " << ior << std::endl;
    int signal;
    sigwait(&stop, &signal);
    orb->shutdown(true);
    orb->destroy();
    return 0;
  } catch (CORBA::Exception& e) {
    std::cerr << "idl4-peer: " << e._name() << '\n';
    return 2;
  }
}
