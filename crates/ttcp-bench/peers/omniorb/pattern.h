// What test buffers hold.
#pragma once
#include "bench.hh"

// What stands at position i.
template <class T> inline void pattern(T& at, CORBA::ULong i) { at = 'a' + i % 26; }
inline void pattern(BinStruct& at, CORBA::ULong i) {
  at = {CORBA::Short(i), CORBA::Char('a' + i % 26), CORBA::Long(i), CORBA::Octet(i), i * 0.5};
}

template <class T> inline bool same(const T& a, const T& b) { return a == b; }
inline bool same(const BinStruct& a, const BinStruct& b) {
  return a.s == b.s && a.c == b.c && a.l == b.l && a.o == b.o && a.d == b.d;
}
