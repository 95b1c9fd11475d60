// server --ior PATH [--objects N [--serving map|ids|default]] [--host ADDRESS] [--port P] [--seconds S] [--sockbuf BYTES] [--giopbuf BYTES] [--check] [-ORB...]
// --check: compare each element with what clients send, and end with 4 where one differs.
// One thread a connection, so that a connection's requests run in order: with omniORB's
// default a second thread takes a request that is already read in, and sync() may
// overtake oneways.
// Writes the IOR of Ttcp to PATH, that of Wide to PATH.wide and that of Series to PATH.series; all have
// the stable keys of corbaloc::HOST:PORT/ttcp, /wide and /series too.
#include <atomic>
#include <fstream>
#include <iostream>
#include <mutex>
#include <string>
#include "bench.hh"
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

class WideImpl : public POA_Wide {
public:
#define M(n) void m##n() override {}
#define M10(t) M(t##0) M(t##1) M(t##2) M(t##3) M(t##4) M(t##5) M(t##6) M(t##7) M(t##8) M(t##9)
  M10(00) M10(01) M10(02) M10(03) M10(04) M10(05) M10(06) M10(07) M10(08) M10(09)
};

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
    std::string wide = publish(orb, poa, "wide", new WideImpl);
    std::string series = publish(orb, poa, "series", new SeriesImpl);
    PortableServer::POAManager_var(poa->the_POAManager())->activate();
    activate(orb, path, atoi(opt(argc, argv, "--objects", "0").c_str()), opt(argc, argv, "--serving", "map"), flag(argc, argv, "--check"));
    std::ofstream(path + ".wide") << wide << '\n';
    std::ofstream(path + ".series") << series << '\n';
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
