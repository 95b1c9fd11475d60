// The test series: the pattern that both sides have, and the clock that they share.
#pragma once
#include <ctime>
#include "bench.hh"

inline CORBA::ULongLong monotonic() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

namespace elements {
inline CORBA::Short ofShort(CORBA::ULong i) { return i * 31 + 7; }
inline CORBA::Long ofLong(CORBA::ULong i) { return i * 65537 + 7; }
inline CORBA::Float ofFloat(CORBA::ULong i) { return i * 0.5f - 7; }
inline CORBA::Double ofDouble(CORBA::ULong i) { return i * 0.25 - 7; }

inline void set(CORBA::ULong i, CORBA::Short& e) { e = ofShort(i); }
inline void set(CORBA::ULong i, CORBA::Long& e) { e = ofLong(i); }
inline void set(CORBA::ULong i, CORBA::Float& e) { e = ofFloat(i); }
inline void set(CORBA::ULong i, CORBA::Double& e) { e = ofDouble(i); }
inline void set(CORBA::ULong i, AlignedRecord& e) {
  e = {ofDouble(i), -ofDouble(i), ofLong(i), ofFloat(i), ofShort(i), CORBA::Short(~ofShort(i)), ~ofLong(i)};
}
inline void set(CORBA::ULong i, PaddedRecord& e) {
  e = {ofShort(i), ofDouble(i), CORBA::Short(~ofShort(i)), ofLong(i), CORBA::Octet(i), ofFloat(i)};
}

template <class T> bool same(const T& a, const T& b) { return a == b; }
inline bool same(const AlignedRecord& a, const AlignedRecord& b) {
  return a.d == b.d && a.e == b.e && a.l == b.l && a.f == b.f && a.s == b.s && a.t == b.t && a.m == b.m;
}
inline bool same(const PaddedRecord& a, const PaddedRecord& b) {
  return a.s == b.s && a.d == b.d && a.t == b.t && a.l == b.l && a.o == b.o && a.f == b.f;
}

template <class Seq> void fill(Seq& s) {
  for (CORBA::ULong i = 0; i < s.length(); i++) set(i, s[i]);
}

// Whether a sequence has so many elements, those of the pattern.
template <class Seq> bool is(const Seq& s, CORBA::ULong elements) {
  if (s.length() != elements) return false;
  for (CORBA::ULong i = 0; i < elements; i++) {
    auto wanted = s[i];
    set(i, wanted);
    if (!same(wanted, s[i])) return false;
  }
  return true;
}
}  // namespace elements
