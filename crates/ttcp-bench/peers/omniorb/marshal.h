// Sequences to octets in memory, and back: no server, no connection.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <omniORB4/CORBA.h>
#include <omniORB4/codeSets.h>
#include "bench.hh"

namespace marshal {

using Clock = std::chrono::steady_clock;

// What is measured is not shorter, however little there is to do.
const double LEAST = 0.02;

template <class T> void make(T& e, CORBA::ULong i) { e = T(i); }
inline void make(CORBA::Long& e, CORBA::ULong i) { e = CORBA::Long(i * 7919u); }
inline void make(CORBA::Double& e, CORBA::ULong i) { e = i / 3.0; }
inline void letter(CORBA::Char& e, CORBA::ULong i) { e = 'a' + i % 26; }
inline void make(LadderStruct& e, CORBA::ULong i) {
  e.s = i;
  letter(e.c, i);
  make(e.l, i);
  e.o = i;
  make(e.d, i);
  for (auto& o : e.pad) o = i;
}
inline bool same(const LadderStruct& a, const LadderStruct& b) {
  return a.s == b.s && a.c == b.c && a.l == b.l && a.o == b.o && a.d == b.d && !memcmp(a.pad, b.pad, 8);
}
template <class T> bool same(const T& a, const T& b) { return a == b; }

// FNV-1a: who reads the line compares it with that of its own octets.
inline uint64_t digest(const void* octets, size_t count) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < count; i++) hash = (hash ^ static_cast<const unsigned char*>(octets)[i]) * 0x100000001b3;
  return hash;
}

template <class Seq>
void measure(const std::string& type, const std::string& side, const std::string& order, size_t size, uint64_t total) {
  const CORBA::Boolean native = omni::myByteOrder, little = order == "foreign" ? !native : native;
  Seq s;
  s.length(1);
  s.length(std::max<size_t>(1, size / sizeof(s[0])));
  for (CORBA::ULong i = 0; i < s.length(); i++)
    if (type == "char") letter(reinterpret_cast<CORBA::Char&>(s[i]), i);
    else make(s[i], i);
  const uint64_t each = uint64_t(s.length()) * sizeof(s[0]), sequences = std::max<uint64_t>(1, (total + each - 1) / each);

  // Cleared, so that what is between members is as with who sends zeros there.
  cdrMemoryStream out(_CORBA_ULong(0), 1), in(_CORBA_ULong(0), 1);
  auto send = [&](cdrMemoryStream& stream) {
    stream.rewindPtrs();
    s >>= stream;
  };
  for (auto* stream : {&out, &in}) {
    stream->setByteSwapFlag(little);
    // As connections do it: 8-bit characters are Latin-1 as they are.
    stream->TCS_C(omni::omniCodeSet::getTCS_C(omni::omniCodeSet::ID_8859_1, GIOP::Version{1, 2}));
    send(*stream);
  }
  auto receive = [&] {
    in.rewindInputPtr();
    Seq back;
    back <<= in;
    return back.length();
  };
  Seq back;
  back <<= in;
  bool ok = back.length() == s.length();
  for (CORBA::ULong i = 0; ok && i < s.length(); i++) ok = same(back[i], s[i]);
  if (!ok) throw std::runtime_error("the elements that were read are not those that were written");

  auto work = [&](uint64_t times) {
    for (uint64_t i = 0; i < times; i++)
      if (side == "sender") send(out);
      else if (receive() != s.length()) throw std::runtime_error("elements are missing");
  };
  work((sequences + 9) / 10);
  auto start = Clock::now();
  uint64_t done = 0;
  double secs = 0;
  while (!done || secs < LEAST) {
    work(sequences);
    done += sequences;
    secs = std::chrono::duration<double>(Clock::now() - start).count();
  }
  printf("{\"peer\":\"omniorb\",\"test\":\"marshal\",\"type\":\"%s\",\"order\":\"%s\",\"side\":\"%s\",\"size\":%zu,\"bytes\":%lu,\"secs\":%.9f,"
         "\"mbit_s\":%.6f,\"checked\":%lu,\"elements\":%u,\"digest\":\"%016lx\"}\n",
         type.c_str(), order.c_str(), side.c_str(), size, done * each, secs, done * each * 8 / secs / 1e6,
         each + out.bufSize(), s.length(), digest(out.bufPtr(), out.bufSize()));
}

inline void test(const std::string& type, const std::string& side, const std::string& order, size_t size, uint64_t total) {
  if (type == "short") measure<Ttcp::ShortSeq>(type, side, order, size, total);
  else if (type == "char") measure<Ttcp::CharSeq>(type, side, order, size, total);
  else if (type == "long") measure<Ttcp::LongSeq>(type, side, order, size, total);
  else if (type == "octet") measure<Ttcp::OctetSeq>(type, side, order, size, total);
  else if (type == "double") measure<Ttcp::DoubleSeq>(type, side, order, size, total);
  else if (type == "binstruct") measure<LadderSeq>(type, side, order, size, total);
  else throw std::runtime_error("unknown type");
}

}
