// The client of the test series: messages of one kind and size, one a frame.
#pragma once
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>
#include "series.h"

namespace series {
struct Sent { CORBA::ULongLong at, took, arrived; };

// Sends one, and returns when it arrived, if it is answered; else 0.
using Message = std::function<CORBA::ULongLong(CORBA::ULongLong, CORBA::ULong)>;

inline Sent timed(const Message& message, CORBA::ULong number) {
  CORBA::ULongLong at = monotonic(), arrived = message(at, number);
  return {at, monotonic() - at, arrived};
}

// What the server has, once it has all: in the order of the numbers, each as it was sent.
inline std::vector<Arrival> confirmed(Series_ptr s, const std::vector<Sent>& sent, CORBA::ULong& bad) {
  std::vector<Arrival> all;
  for (auto begun = monotonic(); monotonic() - begun < 10000000000ull;) {
    Seen_var told = s->arrivals();
    bad = told->bad;
    all.clear();
    for (CORBA::ULong i = 0; i < told->all.length(); i++) all.push_back(told->all[i]);
    if (all.size() >= sent.size()) break;
  }
  if (all.size() != sent.size())
    throw std::runtime_error(std::to_string(sent.size()) + " messages were sent, " + std::to_string(all.size()) + " arrived");
  std::sort(all.begin(), all.end(), [](const Arrival& a, const Arrival& b) { return a.number < b.number; });
  for (size_t i = 0; i < all.size(); i++)
    if (all[i].number != i || all[i].sent != sent[i].at || all[i].arrived < sent[i].at || (sent[i].arrived && sent[i].arrived != all[i].arrived))
      throw std::runtime_error("message " + std::to_string(i) + " came otherwise than it left");
  return all;
}

template <class F> std::string list(const char* name, size_t n, F of) {
  std::string out = std::string(",\"") + name + "\":[";
  for (size_t i = 0; i < n; i++) out += (i ? "," : "") + std::to_string(of(i));
  return out + "]";
}

inline void run(Series_ptr s, const Message& message, CORBA::ULong elements, const std::string& kind, const std::string& mode,
                CORBA::ULong units, int n, CORBA::ULongLong frameUs) {
  const int lookedAt = 3;
  std::vector<Sent> sent;
  CORBA::ULong bad;
  s->begin(elements);
  for (int i = 0; i < lookedAt; i++) sent.push_back(timed(message, i));
  confirmed(s, sent, bad);
  if (bad) throw std::runtime_error(std::to_string(bad) + " messages came with other contents than they left");

  s->begin(0);
  sent.clear();
  sent.reserve(n);
  CORBA::ULongLong origin = monotonic(), due = origin, frame = frameUs * 1000;
  for (int i = 0; i < n; i++) {
    timespec t = {time_t(due / 1000000000), long(due % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {}
    sent.push_back(timed(message, i));
    due = origin + (sent.back().at + sent.back().took - origin + frame - 1) / frame * frame;
  }
  auto all = confirmed(s, sent, bad);
  double sum = 0;
  for (auto& m : sent) sum += m.took / 1e3;
  std::string lists = list("start_ns", n, [&](size_t i) { return sent[i].at - origin; }) +
                      list("time_ns", n, [&](size_t i) { return sent[i].took; }) +
                      list("latency_ns", n, [&](size_t i) { return all[i].arrived - all[i].sent; });
  printf("{\"peer\":\"omniorb\",\"test\":\"series\",\"kind\":\"%s\",\"mode\":\"%s\",\"units\":%u,\"size\":%u,\"n\":%d,\"frame_us\":%llu,"
         "\"checked\":%d,\"arrived\":%zu,\"mean_us\":%.3f%s}\n",
         kind.c_str(), mode.c_str(), unsigned(units), unsigned(16 + 32 * units), n, static_cast<unsigned long long>(frameUs), lookedAt,
         all.size(), sum / n, lists.c_str());
}

// Runs with sequences of a type, in the one or the other way.
template <class Seq, class Call, class Send>
void of(Series_ptr s, Call call, Send send, CORBA::ULong aUnit, const std::string& kind, const std::string& mode, CORBA::ULong units,
        int n, CORBA::ULongLong frameUs) {
  Seq seq;
  seq.length(units * aUnit);
  elements::fill(seq);
  Message message;
  if (mode == "call") message = [&](CORBA::ULongLong at, CORBA::ULong number) { return call(s, at, number, seq); };
  else message = [&](CORBA::ULongLong at, CORBA::ULong number) { send(s, at, number, seq); return 0ull; };
  run(s, message, seq.length(), kind, mode, units, n, frameUs);
}

inline void test(Series_ptr s, const std::string& kind, const std::string& mode, CORBA::ULong units, int n, CORBA::ULongLong frameUs) {
  if ((mode != "call" && mode != "oneway") || units < 1 || n < 1 || frameUs < 1) throw std::runtime_error("bad arguments");
#define OPERATIONS(name) \
  [](Series_ptr s, CORBA::ULongLong at, CORBA::ULong number, const auto& seq) { return s->call##name(at, number, seq); }, \
  [](Series_ptr s, CORBA::ULongLong at, CORBA::ULong number, const auto& seq) { s->send##name(at, number, seq); }
  if (kind == "short") of<Series::ShortSeq>(s, OPERATIONS(Short), 16, kind, mode, units, n, frameUs);
  else if (kind == "long") of<Series::LongSeq>(s, OPERATIONS(Long), 8, kind, mode, units, n, frameUs);
  else if (kind == "float") of<Series::FloatSeq>(s, OPERATIONS(Float), 8, kind, mode, units, n, frameUs);
  else if (kind == "double") of<Series::DoubleSeq>(s, OPERATIONS(Double), 4, kind, mode, units, n, frameUs);
  else if (kind == "record") of<Series::RecordSeq>(s, OPERATIONS(Record), 1, kind, mode, units, n, frameUs);
  else if (kind == "na-record") of<Series::PaddedSeq>(s, OPERATIONS(Padded), 1, kind, mode, units, n, frameUs);
  else if (kind == "any")
    // An any is made of the records each time, as a program has to.
    of<Series::RecordSeq>(
        s,
        [](Series_ptr s, CORBA::ULongLong at, CORBA::ULong number, const Series::RecordSeq& seq) {
          CORBA::Any any;
          any <<= seq;
          return s->callAny(at, number, any);
        },
        [](Series_ptr s, CORBA::ULongLong at, CORBA::ULong number, const Series::RecordSeq& seq) {
          CORBA::Any any;
          any <<= seq;
          s->sendAny(at, number, any);
        },
        1, kind, mode, units, n, frameUs);
  else throw std::runtime_error("unknown kind");
#undef OPERATIONS
}
}  // namespace series
