// Tests objects and clients.
#pragma once
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include "draws.h"

// Calls the objects of PATH.objects in an order that is drawn. Before that each gets a number of octets and has to confirm them, so it is
// the one that is meant.
inline void objects(CORBA::ORB_ptr orb, const std::string& ior, int n) {
  std::ifstream file(ior + ".objects");
  std::vector<Ttcp_var> all;
  for (std::string line; std::getline(file, line);) {
    CORBA::Object_var obj = orb->string_to_object(line.c_str());
    all.push_back(Ttcp::_narrow(obj));
    if (CORBA::is_nil(all.back())) throw std::runtime_error("not a Ttcp");
  }
  if (all.empty()) throw std::runtime_error(ior + ".objects has no reference: is the server one with --objects?");
  auto octets = [](size_t place) { return place % 97 + 1; };
  for (size_t i = 0; i < all.size(); i++) {
    Ttcp::OctetSeq some;
    some.length(octets(i));
    fill(some);
    all[i]->sendOctetSeq(some);
  }
  for (size_t i = 0; i < all.size(); i++) {
    uint64_t got = 0;
    auto start = Clock::now();
    while (got < octets(i) && since(start) < 10) got += all[i]->sync();
    if (got != octets(i)) throw std::runtime_error("object " + std::to_string(i) + " of those called is another");
  }
  Draws draws;
  latency("objects", "\"objects\":" + std::to_string(all.size()) + ",", n, [&] { all[draws.below(all.size())]->ping(); });
}

// So many threads call at once, over as many connections. All begin together, and share the calls, so that they end together. Each has an
// echo of its own octets first, which are compared.
inline void clients(Ttcp_ptr t, int count, int n) {
  std::atomic<int> left{n}, failed{0};
  std::mutex lock;
  std::condition_variable change;
  int ready = 0;
  bool begin = false;
  std::vector<std::vector<double>> us(count);
  auto run = [&](int number) {
    Ttcp::OctetSeq own;
    own.length(64);
    for (CORBA::ULong i = 0; i < own.length(); i++) own[i] = CORBA::Octet(number + i);
    bool well = true;
    try {
      Ttcp::OctetSeq_var back = t->echoOctets(own);
      well = back->length() == own.length() && std::equal(own.get_buffer(), own.get_buffer() + own.length(), back->get_buffer());
      if (!well) std::cerr << "echo differs\n";
      for (int i = 0; i < std::max(1, n / 10 / count); i++) t->ping();
    } catch (CORBA::SystemException& e) {
      std::cerr << "client: " << e._name() << '\n';
      well = false;
    }
    if (!well) { failed++; left = 0; }
    {
      std::unique_lock<std::mutex> held(lock);
      ready++;
      change.notify_all();
      change.wait(held, [&] { return begin; });
    }
    try {
      while (left.fetch_sub(1, std::memory_order_relaxed) > 0) {
        auto start = Clock::now();
        t->ping();
        us[number].push_back(since(start) * 1e6);
      }
    } catch (CORBA::SystemException& e) {
      std::cerr << "client: " << e._name() << '\n';
      failed++;
      left = 0;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < count; i++) threads.emplace_back(run, i);
  Clock::time_point start;
  {
    std::unique_lock<std::mutex> held(lock);
    change.wait(held, [&] { return ready == count; });
    begin = true;
    start = Clock::now();
    change.notify_all();
  }
  for (auto& thread : threads) thread.join();
  double secs = since(start);
  std::vector<double> all;
  for (auto& some : us) all.insert(all.end(), some.begin(), some.end());
  if (failed || all.size() != size_t(n)) throw std::runtime_error("a client failed");
  char more[128];
  snprintf(more, sizeof more, "\"depth\":%d,\"calls_s\":%.3f,\"secs\":%.6f,", count, n / secs, secs);
  tell("clients", more, all);
}
