// client ttcp|ping|echo|demux|pipeline|series|objects|clients|marshal|last --ior PATH|corbaloc:iiop:[V@]HOST:PORT [-ORB...]
//        [--type T] [--size BYTES] [--total BYTES] [--n N] [--depth D]
//        [--sockbuf BYTES] [--giopbuf BYTES] [--samples FILE]
//        [--kind KIND] [--mode call|oneway] [--units N] [--frame MICROSECONDS]
//        [--side sender|receiver] [--order native|foreign]
// pipeline: D threads that share one connection. clients: D threads over as many connections. marshal: in memory, without a server.
//        [--operations 100|1000] [--oneway] [--iterations I]
// last: the last of so many operations, 100 times an iteration, which the server counts.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <thread>
#include "bench.hh"
#include "marshal.h"
#include "demux.hh"
#include "thousand.hh"
#include "options.h"
#include "pattern.h"
#include "series_client.h"

using Clock = std::chrono::steady_clock;
static double since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

template <class Seq> static void fill(Seq& s) {
  for (CORBA::ULong i = 0; i < s.length(); i++) pattern(s[i], i);
}

template <class Seq> static Seq make(size_t bytes) {
  Seq s;
  s.length(1);
  s.length(std::max<size_t>(1, bytes / sizeof(s[0])));
  fill(s);
  return s;
}

struct Sent { uint64_t bytes; double secs; int syncs; };

// Sends until total bytes are sent and confirmed. The server may run sync() before
// the last oneways, so it is repeated until they are all in.
template <class Seq>
static Sent send(Ttcp_ptr t, void (_objref_Ttcp::*op)(const Seq&), const Seq& s, uint64_t total) {
  uint64_t size = s.length() * sizeof(s[0]), sent = 0, got = 0;
  int syncs = 0;
  auto start = Clock::now();
  for (; sent < total; sent += size) (t->*op)(s);
  for (; got < sent && since(start) < 600; syncs++) got += t->sync();
  double secs = since(start);
  if (got != sent) {
    fprintf(stderr, "sent %lu bytes, %lu confirmed\n", sent, got);
    exit(1);
  }
  return {got, secs, syncs};
}

template <class Seq>
static void ttcp(Ttcp_ptr t, void (_objref_Ttcp::*op)(const Seq&), const std::string& type, size_t size, uint64_t total) {
  Seq s = make<Seq>(size);
  t->sync();
  send(t, op, s, total / 10);
  Sent r = send(t, op, s, total);
  printf("{\"peer\":\"omniorb\",\"test\":\"ttcp\",\"type\":\"%s\",\"size\":%zu,\"mbit_s\":%.6f,\"secs\":%.6f,\"syncs\":%d}\n",
         type.c_str(), size, r.bytes * 8 / r.secs / 1e6, r.secs, r.syncs);
}

// Where the time of each call goes, nanoseconds, a line each; empty: nowhere.
static std::string samples;

// The line of calls that took so long each.
static void tell(const char* test, const std::string& more, std::vector<double>& us) {
  size_t n = us.size();
  double sum = 0;
  if (!samples.empty()) {
    std::ofstream file(samples);
    for (double u : us) file << uint64_t(u * 1e3) << '\n';
    if (!file.flush()) { fprintf(stderr, "cannot write %s\n", samples.c_str()); exit(1); }
  }
  for (double u : us) sum += u;
  std::sort(us.begin(), us.end());
  printf("{\"peer\":\"omniorb\",\"test\":\"%s\",%s\"n\":%zu,\"mean_us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"max_us\":%.3f}\n",
         test, more.c_str(), n, sum / n, us[n / 2], us[n * 99LL / 100], us[n - 1]);
}

template <class F> static void latency(const char* test, const std::string& more, int n, F call) {
  for (int i = 0; i < n / 10; i++) call();
  std::vector<double> us(n);
  for (double& u : us) {
    auto t = Clock::now();
    call();
    u = since(t) * 1e6;
  }
  tell(test, more, us);
}

#include "many.h"

template <class Seq, class SeqVar>
static void echo(Ttcp_ptr t, Seq* (_objref_Ttcp::*op)(const Seq&), const std::string& type, size_t size, int n) {
  Seq s = make<Seq>(size);
  SeqVar r = (t->*op)(s);
  bool ok = r->length() == s.length();
  for (CORBA::ULong i = 0; ok && i < s.length(); i++) ok = same(r[i], s[i]);
  if (!ok) { fprintf(stderr, "echo differs\n"); exit(1); }
  latency("echo", "\"type\":\"" + type + "\",\"size\":" + std::to_string(size) + ",", n,
          [&] { SeqVar back = (t->*op)(s); });
}

static void pipeline(Ttcp_ptr t, int depth, int n) {
  auto run = [&](int calls) {
    auto start = Clock::now();
    std::vector<std::thread> threads;
    for (int i = 0; i < depth; i++)
      threads.emplace_back([=] { for (int k = i; k < calls; k += depth) t->ping(); });
    for (auto& th : threads) th.join();
    return since(start);
  };
  run(n / 10);
  double secs = run(n);
  printf("{\"peer\":\"omniorb\",\"test\":\"pipeline\",\"depth\":%d,\"n\":%d,\"threads\":%d,\"calls_s\":%.3f,\"secs\":%.6f}\n",
         depth, n, depth, n / secs, secs);
}

// So many calls of an operation, and the seconds until they are counted. The server may answer before the last oneways
// are done, so it is asked until they are.
template <class F> static std::pair<double, double> count(Tally_ptr tally, int n, F call) {
  auto start = Clock::now();
  for (int i = 0; i < n; i++) call();
  double secs = since(start);
  CORBA::ULongLong last = 0, others = 0;
  while (others == 0 && last < CORBA::ULongLong(n) && since(start) < secs + 10) {
    CORBA::ULongLong l, o;
    tally->take(l, o);
    last += l;
    others += o;
  }
  double counted = since(start);
  if (last != CORBA::ULongLong(n) || others) {
    fprintf(stderr, "the last operation was called %d times: the server counted %llu calls of it and %llu of others\n", n,
            (unsigned long long)last, (unsigned long long)others);
    exit(1);
  }
  return {secs, counted};
}

template <class F> static void last(Tally_ptr tally, int operations, bool oneway, int iterations, F call) {
  int n = 100 * iterations;
  CORBA::ULongLong l, o;
  tally->take(l, o);
  count(tally, n / 10, call);
  auto [secs, counted] = count(tally, n, call);
  printf("{\"peer\":\"omniorb\",\"test\":\"last\",\"operations\":%d,\"oneway\":%s,\"iterations\":%d,\"counted\":%d,\"secs\":%.9f,\"counted_secs\":%.9f}\n",
         operations, oneway ? "true" : "false", iterations, n, secs, counted);
}

static CORBA::Object_ptr find(CORBA::ORB_ptr orb, std::string at, const std::string& key) {
  if (at.compare(0, 9, "corbaloc:") == 0) at += "/" + key;
  else if (!(std::ifstream(at + "." + key) >> at)) throw std::runtime_error("no IOR file");
  return orb->string_to_object(at.c_str());
}

static void last(CORBA::ORB_ptr orb, const std::string& at, int operations, bool oneway, int iterations) {
  if ((operations != 100 && operations != 1000) || iterations < 1) throw std::runtime_error("bad arguments");
  CORBA::Object_var obj = find(orb, at, "tally");
  Tally_var tally = Tally::_narrow(obj);
  std::string key = operations == 100 ? "wide" : "thousand";
  obj = find(orb, at, oneway ? key + "-oneway" : key);
  auto run = [&](auto call) { last(tally, operations, oneway, iterations, call); };
  if (operations == 100 && oneway) { WideOneway_var w = WideOneway::_narrow(obj); run([&] { w->m099(); }); }
  else if (operations == 100) { Wide_var w = Wide::_narrow(obj); run([&] { w->m099(); }); }
  else if (oneway) { ThousandOneway_var w = ThousandOneway::_narrow(obj); run([&] { w->m999(); }); }
  else { Thousand_var w = Thousand::_narrow(obj); run([&] { w->m999(); }); }
}

int main(int argc, char** argv) {
  try {
    std::string test = argc > 1 ? argv[1] : "";
    samples = opt(argc, argv, "--samples", "");
    int depth = atoi(opt(argc, argv, "--depth", "16").c_str());
    Settings calls;
    if (test == "pipeline")
      calls = {{"maxGIOPConnectionPerServer", "1"}, {"oneCallPerConnection", "0"}, {"maxInterleavedCallsPerConnection", std::to_string(depth)}};
    else if (test == "clients") calls = {{"maxGIOPConnectionPerServer", std::to_string(depth)}};
    CORBA::ORB_var orb = initOrb(argc, argv, calls);
    std::string ior = opt(argc, argv, "--ior", "server.ior"), type = opt(argc, argv, "--type", "octet");
    size_t size = strtoull(opt(argc, argv, "--size", "65536").c_str(), 0, 10);
    uint64_t total = strtoull(opt(argc, argv, "--total", "268435456").c_str(), 0, 10);
    int n = atoi(opt(argc, argv, "--n", test == "echo" ? "5000" : test == "clients" ? "50000" : test == "pipeline" ? "100000" : test == "series" ? "50" : "20000").c_str());
    if (test == "objects") {
      objects(orb, ior, n);
      return 0;
    }

    if (test == "last") {
      bool oneway = std::any_of(argv + 1, argv + argc, [](const char* a) { return !strcmp(a, "--oneway"); });
      last(orb, ior, atoi(opt(argc, argv, "--operations", "100").c_str()), oneway, atoi(opt(argc, argv, "--iterations", "100").c_str()));
      return 0;
    }
    if (test == "marshal") {
      marshal::test(type, opt(argc, argv, "--side", "receiver"), opt(argc, argv, "--order", "native"), size, total);
      return 0;
    }
    std::string other = test == "demux" ? "wide" : test == "series" ? "series" : "";
    if (ior.compare(0, 9, "corbaloc:") == 0) ior += "/" + (other.empty() ? "ttcp" : other);
    else if (!(std::ifstream(other.empty() ? ior : ior + "." + other) >> ior)) throw std::runtime_error("no IOR file");
    CORBA::Object_var obj = orb->string_to_object(ior.c_str());
    if (test == "series") {
      Series_var s = Series::_narrow(obj);
      if (CORBA::is_nil(s)) throw std::runtime_error("not a Series");
      series::test(s, opt(argc, argv, "--kind", ""), opt(argc, argv, "--mode", "call"), atoi(opt(argc, argv, "--units", "4").c_str()), n,
                   strtoull(opt(argc, argv, "--frame", "70000").c_str(), 0, 10));
      return 0;
    }
    if (other == "wide") {
      Wide_var w = Wide::_narrow(obj);
      latency("demux", "", n, [&] { w->m099(); });
      return 0;
    }
    Ttcp_var t = Ttcp::_narrow(obj);
    if (CORBA::is_nil(t)) throw std::runtime_error("not a Ttcp");
    if (test == "ping") latency("ping", "", n, [&] { t->ping(); });
    else if (test == "pipeline") pipeline(t, depth, n);
    else if (test == "clients") clients(t, depth, n);
    else if (test == "echo" && type == "octet") echo<Ttcp::OctetSeq, Ttcp::OctetSeq_var>(t, &_objref_Ttcp::echoOctets, type, size, n);
    else if (test == "echo" && type == "struct") echo<Ttcp::StructSeq, Ttcp::StructSeq_var>(t, &_objref_Ttcp::echoStructs, type, size, n);
    else if (test != "ttcp") throw std::runtime_error("unknown test");
    else if (type == "octet") ttcp(t, &_objref_Ttcp::sendOctetSeq, type, size, total);
    else if (type == "char") ttcp(t, &_objref_Ttcp::sendCharSeq, type, size, total);
    else if (type == "short") ttcp(t, &_objref_Ttcp::sendShortSeq, type, size, total);
    else if (type == "long") ttcp(t, &_objref_Ttcp::sendLongSeq, type, size, total);
    else if (type == "double") ttcp(t, &_objref_Ttcp::sendDoubleSeq, type, size, total);
    else if (type == "struct") ttcp(t, &_objref_Ttcp::sendStructSeq, type, size, total);
    else throw std::runtime_error("unknown type");
    return 0;
  } catch (CORBA::SystemException& e) {
    std::cerr << "client: " << e._name() << ' ' << (e.NP_minorString() ? e.NP_minorString() : "") << '\n';
  } catch (std::exception& e) {
    std::cerr << "client: " << e.what() << '\n';
  }
  return 1;
}
