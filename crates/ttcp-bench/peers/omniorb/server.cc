// server --ior PATH [--objects N [--serving map|ids|default]] [--host ADDRESS] [--port P] [--seconds S] [--sockbuf BYTES] [--giopbuf BYTES] [--check] [-ORB...]
// --check: compare each element with what clients send, and end with 4 where one differs.
// One thread a connection, so that a connection's requests run in order: with omniORB's
// default a second thread takes a request that is already read in, and sync() may
// overtake oneways.
// Writes the IOR of Ttcp to PATH and those of the others to PATH.wide and so on; all also have
// the stable keys of corbaloc::HOST:PORT/ttcp, /wide and so on.
#include <atomic>
#include <fstream>
#include <iostream>
#include <mutex>
#include <string>
#include "bench.hh"
#include "demux.hh"
#include "thousand.hh"
#include "options.h"
#include "pattern.h"
#include "series.h"

class TtcpImpl : public POA_Ttcp {
  std::atomic<CORBA::ULongLong> bytes{0};
  const bool check;
  template <class T> static void demand(const T* items, CORBA::ULong n) {
    for (CORBA::ULong i = 0; i < n; i++) {
      T sent;
      pattern(sent, i);
      if (same(items[i], sent)) continue;
      std::cerr << "contents differ: element " << i << " of a sequence of " << n << " is not what was sent" << std::endl;
      _exit(4);
    }
  }
  template <class Seq> void add(const Seq& s) {
    if (check) demand(s.get_buffer(), s.length());
    if (s.length()) bytes.fetch_add(s.length() * sizeof(s[0]), std::memory_order_relaxed);
  }
  // The reply takes over the argument's buffer: the ORB owns the argument and
  // destroys it, so nothing is copied.
  template <class Seq> Seq* move(const Seq& in) {
    Seq& s = const_cast<Seq&>(in);
    CORBA::ULong max = s.maximum(), len = s.length();
    auto* buf = s.get_buffer(1);
    return buf ? new Seq(max, len, buf, 1) : new Seq(in);
  }
public:
  explicit TtcpImpl(bool check) : check(check) {}
  void sendShortSeq(const Ttcp::ShortSeq& s) override { add(s); }
  void sendLongSeq(const Ttcp::LongSeq& s) override { add(s); }
  void sendDoubleSeq(const Ttcp::DoubleSeq& s) override { add(s); }
  void sendCharSeq(const Ttcp::CharSeq& s) override { add(s); }
  void sendOctetSeq(const Ttcp::OctetSeq& s) override { add(s); }
  void sendStructSeq(const Ttcp::StructSeq& s) override { add(s); }
  CORBA::ULongLong sync() override { return bytes.exchange(0); }
  void ping() override {}
  Ttcp::OctetSeq* echoOctets(const Ttcp::OctetSeq& s) override { return move(s); }
  Ttcp::StructSeq* echoStructs(const Ttcp::StructSeq& s) override { return move(s); }
};

#include "objects.h"

// Calls of the last operations of all interfaces, and of their others, since they were asked for.
static std::atomic<CORBA::ULongLong> lasts{0}, others{0};

class TallyImpl : public POA_Tally {
public:
  void take(CORBA::ULongLong& last, CORBA::ULongLong& other) override {
    last = lasts.exchange(0);
    other = others.exchange(0);
  }
};

#define M(n) void m##n() override { others.fetch_add(1, std::memory_order_relaxed); }
#define LAST(n) void m##n() override { lasts.fetch_add(1, std::memory_order_relaxed); }
#define NINE(t) M(t##0) M(t##1) M(t##2) M(t##3) M(t##4) M(t##5) M(t##6) M(t##7) M(t##8)
#define TENS(t) NINE(t) M(t##9)
#define NINETY(t) TENS(t##0) TENS(t##1) TENS(t##2) TENS(t##3) TENS(t##4) TENS(t##5) TENS(t##6) TENS(t##7) TENS(t##8)
#define HUNDREDS(t) NINETY(t) TENS(t##9)
#define ALL_100 NINETY(0) NINE(09) LAST(099)
#define ALL_1000 HUNDREDS(0) HUNDREDS(1) HUNDREDS(2) HUNDREDS(3) HUNDREDS(4) HUNDREDS(5) HUNDREDS(6) HUNDREDS(7) HUNDREDS(8) \
  NINETY(9) NINE(99) LAST(999)

class WideImpl : public POA_Wide { public: ALL_100 };
class WideOnewayImpl : public POA_WideOneway { public: ALL_100 };
class ThousandImpl : public POA_Thousand { public: ALL_1000 };
class ThousandOnewayImpl : public POA_ThousandOneway { public: ALL_1000 };

// Notes when it had each message.
class SeriesImpl : public POA_Series {
  std::mutex mutex;
  CORBA::ULong wanted = 0, n = 0, bad = 0;
  ArrivalSeq all;
  template <class Seq> CORBA::ULongLong take(CORBA::ULongLong sent, CORBA::ULong number, const Seq& s) {
    CORBA::ULongLong arrived = monotonic();
    std::lock_guard<std::mutex> lock(mutex);
    if (n < all.length()) all[n++] = {sent, arrived, number};
    if (wanted && !elements::is(s, wanted)) bad++;
    return arrived;
  }
  CORBA::ULongLong takeAny(CORBA::ULongLong sent, CORBA::ULong number, const CORBA::Any& any) {
    const Series::RecordSeq* s;
    if (!(any >>= s)) throw CORBA::BAD_PARAM();
    return take(sent, number, *s);
  }
public:
  void begin(CORBA::ULong elements) override {
    std::lock_guard<std::mutex> lock(mutex);
    wanted = elements;
    n = bad = 0;
    all.length(1 << 16);
  }
  Seen* arrivals() override {
    std::lock_guard<std::mutex> lock(mutex);
    Seen* told = new Seen;
    told->bad = bad;
    told->all.length(n);
    for (CORBA::ULong i = 0; i < n; i++) told->all[i] = all[i];
    return told;
  }
#define OPERATIONS(name, Seq) \
  CORBA::ULongLong call##name(CORBA::ULongLong sent, CORBA::ULong number, const Seq& s) override { return take(sent, number, s); } \
  void send##name(CORBA::ULongLong sent, CORBA::ULong number, const Seq& s) override { take(sent, number, s); }
  OPERATIONS(Short, Series::ShortSeq)
  OPERATIONS(Long, Series::LongSeq)
  OPERATIONS(Float, Series::FloatSeq)
  OPERATIONS(Double, Series::DoubleSeq)
  OPERATIONS(Record, Series::RecordSeq)
  OPERATIONS(Padded, Series::PaddedSeq)
  CORBA::ULongLong callAny(CORBA::ULongLong sent, CORBA::ULong number, const CORBA::Any& s) override { return takeAny(sent, number, s); }
  void sendAny(CORBA::ULongLong sent, CORBA::ULong number, const CORBA::Any& s) override { takeAny(sent, number, s); }
};

static std::string publish(CORBA::ORB_ptr orb, PortableServer::POA_ptr poa,
                           const char* key, PortableServer::Servant servant) {
  PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId(key);
  poa->activate_object_with_id(id, servant);
  CORBA::Object_var ref = poa->id_to_reference(id);
  CORBA::String_var ior = orb->object_to_string(ref);
  return std::string(ior);
}

int main(int argc, char** argv) {
  try {
    exitAfter(opt(argc, argv, "--seconds", "3600"));
    CORBA::ORB_var orb = initOrb(argc, argv, {{"endPoint", "giop:tcp:" + opt(argc, argv, "--host", "127.0.0.1") + ":" + opt(argc, argv, "--port", "47002")},
                                                   {"maxServerThreadPerConnection", "1"}});
    std::string path = opt(argc, argv, "--ior", "server.ior");
    CORBA::Object_var obj = orb->resolve_initial_references("omniINSPOA");
    PortableServer::POA_var poa = PortableServer::POA::_narrow(obj);
    std::string ttcp = publish(orb, poa, "ttcp", new TtcpImpl(flag(argc, argv, "--check")));
    std::pair<const char*, PortableServer::Servant> rest[] = {
      {"wide", new WideImpl}, {"series", new SeriesImpl}, {"wide-oneway", new WideOnewayImpl}, {"thousand", new ThousandImpl},
      {"thousand-oneway", new ThousandOnewayImpl}, {"tally", new TallyImpl}};
    for (auto& [key, servant] : rest) std::ofstream(path + "." + key) << publish(orb, poa, key, servant) << '\n';
    PortableServer::POAManager_var(poa->the_POAManager())->activate();
    activate(orb, path, atoi(opt(argc, argv, "--objects", "0").c_str()), opt(argc, argv, "--serving", "map"), flag(argc, argv, "--check"));
    std::ofstream(path) << ttcp << '\n';
    std::cout << "READY " << path << std::endl;
    orb->run();
  } catch (CORBA::Exception& e) {
    std::cerr << "server: " << e._name() << '\n';
    return 1;
  } catch (std::exception& e) {
    std::cerr << "server: " << e.what() << '\n';
    return 1;
  }
}
