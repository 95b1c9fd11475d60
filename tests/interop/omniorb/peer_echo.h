// The echo operations of every interface that Peer inherits.
#pragma once
#include "echo.h"

// a is the result and c; b is transformed. The parameter passing of C++ differs by
// the kind of the type.
#define ECHO_FIXED(op, T)                        \
  T op(T a, T& b, T& c) override {               \
    c = a;                                       \
    echo::transform(b);                          \
    return a;                                    \
  }
#define ECHO_RECORD(op, T)                       \
  T op(const T& a, T& b, T& c) override {        \
    c = a;                                       \
    echo::transform(b);                          \
    return a;                                    \
  }
#define ECHO_VARIABLE(op, T)                     \
  T* op(const T& a, T& b, T##_out c) override {  \
    c = new T(a);                                \
    echo::transform(b);                          \
    return new T(a);                             \
  }
#define ECHO_TEXT(op, Out)                       \
  char* op(const char* a, char*& b, Out c) override { \
    c = CORBA::string_dup(a);                    \
    echo::swap_case(b);                          \
    return CORBA::string_dup(a);                 \
  }
#define ECHO_WIDE(op, Out)                       \
  CORBA::WChar* op(const CORBA::WChar* a, CORBA::WChar*& b, Out c) override { \
    c = CORBA::wstring_dup(a);                   \
    echo::swap_case(b);                          \
    return CORBA::wstring_dup(a);                \
  }
#define ECHO_ARRAY(op, A)                        \
  A##_slice* op(const A a, A b, A c) override {  \
    A##_copy(c, a);                              \
    echo::transform(*reinterpret_cast<A*>(b));   \
    return A##_dup(a);                           \
  }
#define ECHO_VARIABLE_ARRAY(op, A)               \
  A##_slice* op(const A a, A b, A##_out c) override { \
    c = A##_dup(a);                              \
    echo::transform(*reinterpret_cast<A*>(b));   \
    return A##_dup(a);                           \
  }

namespace peer {
using namespace Interop;

class ScalarsServant : public virtual POA_Interop::Scalars {
public:
  ECHO_FIXED(echo_short, CORBA::Short)
  ECHO_FIXED(echo_ushort, CORBA::UShort)
  ECHO_FIXED(echo_long, CORBA::Long)
  ECHO_FIXED(echo_ulong, CORBA::ULong)
  ECHO_FIXED(echo_longlong, CORBA::LongLong)
  ECHO_FIXED(echo_ulonglong, CORBA::ULongLong)
  ECHO_FIXED(echo_octet, CORBA::Octet)
  ECHO_FIXED(echo_boolean, CORBA::Boolean)
  ECHO_FIXED(echo_char, CORBA::Char)
  ECHO_FIXED(echo_float, CORBA::Float)
  ECHO_FIXED(echo_double, CORBA::Double)
  ECHO_FIXED(echo_color, Color)
  ECHO_FIXED(echo_tiny, Tiny)
  ECHO_FIXED(echo_stamp, Stamp)
  ECHO_FIXED(echo_paint, Paint)
  void ping() override {}
  CORBA::Long plus_one(CORBA::Long a) override { return a + 1; }
  void set_out(CORBA::Long& c) override { c = 4711; }
  void negate(CORBA::Long& b) override { b = -b; }
  CORBA::Long divide(CORBA::Long a, CORBA::Long b, CORBA::Long& remainder) override;
  CORBA::Long many(CORBA::Long number, const char* word, CORBA::Double& scale, StringSeq& words, CORBA::Boolean& even,
                   Color& shade, Point& spot) override;
  CORBA::Long constants(CORBA::UShort& max_code_value, CORBA::Short& lowest_value, CORBA::UShort& highest_value,
                        CORBA::ULong& mask_value, CORBA::LongLong& far_away_value, CORBA::ULongLong& biggest_value,
                        CORBA::Octet& lucky_value, CORBA::Boolean& enabled_value, CORBA::Char& letter_value,
                        CORBA::String_out greeting_value, CORBA::Float& half_value, CORBA::Double& ratio_value,
                        Color& favourite_value) override;
};

class TextsServant : public virtual POA_Interop::Texts {
public:
  ECHO_TEXT(echo_string, CORBA::String_out)
  ECHO_TEXT(echo_text, Text_out)
  ECHO_TEXT(echo_code, Code_out)
  char* join(const StringSeq& parts, const char* glue) override;
  char* repeat(const char* piece, CORBA::ULong times) override;
};

class WideTextsServant : public virtual POA_Interop::WideTexts {
public:
  ECHO_FIXED(echo_wchar, CORBA::WChar)
  ECHO_WIDE(echo_wstring, CORBA::WString_out)
  ECHO_VARIABLE(echo_wchar_seq, WCharSeq)
  ECHO_VARIABLE(echo_wstring_seq, WStringSeq)
  ECHO_VARIABLE(echo_caption, Caption)
  ECHO_VARIABLE(echo_wide_choice, WideChoice)
  CORBA::WChar* wide_greeting(CORBA::WChar& mark) override {
    mark = EURO;
    return CORBA::wstring_dup(WIDE_GREETING);
  }
};

class StructsServant : public virtual POA_Interop::Structs {
public:
  ECHO_RECORD(echo_point, Point)
  ECHO_RECORD(echo_mixed, Mixed)
  ECHO_VARIABLE(echo_person, Person)
  ECHO_VARIABLE(echo_team, Team)
  ECHO_VARIABLE(echo_tree, Tree)
  ECHO_RECORD(echo_place, Place)
  ECHO_VARIABLE(echo_squad, Squad)
};

class UnionsServant : public virtual POA_Interop::Unions {
public:
  ECHO_VARIABLE(echo_by_long, ByLong)
  ECHO_RECORD(echo_by_color, ByColor)
  ECHO_VARIABLE(echo_all_colors, AllColors)
  ECHO_VARIABLE(echo_by_boolean, ByBoolean)
  ECHO_VARIABLE(echo_maybe, Maybe)
  ECHO_VARIABLE(echo_by_char, ByChar)
  ECHO_VARIABLE(echo_by_short, ByShort)
  ECHO_RECORD(echo_by_ushort, ByUShort)
  ECHO_VARIABLE(echo_by_ulong, ByULong)
  ECHO_RECORD(echo_by_longlong, ByLongLong)
  ECHO_VARIABLE(echo_by_ulonglong, ByULongLong)
  ECHO_VARIABLE(echo_by_long_seq, ByLongSeq)
  ECHO_VARIABLE(echo_variant, Variant)
  ECHO_VARIABLE(echo_wrapped, Wrapped)
};

class ArraysServant : public virtual POA_Interop::Arrays {
public:
  ECHO_ARRAY(echo_long_array, LongArray)
  ECHO_ARRAY(echo_octet_array, OctetArray)
  ECHO_ARRAY(echo_matrix, Matrix)
  ECHO_ARRAY(echo_point_array, PointArray)
  ECHO_VARIABLE_ARRAY(echo_string_array, StringArray)
  ECHO_VARIABLE_ARRAY(echo_person_grid, PersonGrid)
  ECHO_VARIABLE_ARRAY(echo_seq_array, SeqArray)
  ECHO_VARIABLE(echo_matrix_seq, MatrixSeq)
  ECHO_ARRAY(echo_big_array, BigArray)
  ECHO_ARRAY(echo_triple, Triple)
};

class SequencesServant : public virtual POA_Interop::Sequences {
public:
  ECHO_VARIABLE(echo_short_seq, ShortSeq)
  ECHO_VARIABLE(echo_ushort_seq, UShortSeq)
  ECHO_VARIABLE(echo_long_seq, LongSeq)
  ECHO_VARIABLE(echo_ulong_seq, ULongSeq)
  ECHO_VARIABLE(echo_longlong_seq, LongLongSeq)
  ECHO_VARIABLE(echo_ulonglong_seq, ULongLongSeq)
  ECHO_VARIABLE(echo_octet_seq, OctetSeq)
  ECHO_VARIABLE(echo_boolean_seq, BooleanSeq)
  ECHO_VARIABLE(echo_char_seq, CharSeq)
  ECHO_VARIABLE(echo_float_seq, FloatSeq)
  ECHO_VARIABLE(echo_double_seq, DoubleSeq)
  ECHO_VARIABLE(echo_string_seq, StringSeq)
  ECHO_VARIABLE(echo_color_seq, ColorSeq)
  ECHO_VARIABLE(echo_point_seq, PointSeq)
  ECHO_VARIABLE(echo_mixed_seq, MixedSeq)
  ECHO_VARIABLE(echo_person_seq, PersonSeq)
  ECHO_VARIABLE(echo_long_seq_seq, LongSeqSeq)
  ECHO_VARIABLE(echo_few_longs, FewLongs)
  ECHO_VARIABLE(echo_few_octets, FewOctets)
  ECHO_VARIABLE(echo_few_codes, FewCodes)
};

class DecimalsServant : public virtual POA_Interop::Decimals {
public:
  ECHO_RECORD(echo_money, Money)
  ECHO_RECORD(echo_part, Part)
  ECHO_RECORD(echo_huge, Huge)
  ECHO_RECORD(echo_bill, Bill)
  ECHO_VARIABLE(echo_money_seq, MoneySeq)
  ECHO_ARRAY(echo_part_array, PartArray)
};

}  // namespace peer
