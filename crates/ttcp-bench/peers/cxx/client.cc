// client ttcp|ping|echo|demux|pipeline [--type T] [--size BYTES] [--total BYTES] [--n N] [--depth D]
//        [--host ADDRESS] [--port P] [--sockbuf BYTES] [--batch] [--samples FILE]
// --batch (pipeline): one write for all the requests that become due at once.
#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>
#include "stream.h"

static Stream* stream;

static void call(uint32_t kind, const std::vector<char>& body, void* back, size_t room) {
  Call there{{kind, uint32_t(body.size())}, 1}, here{};
  stream->send(&there, sizeof there, body.data(), body.size());
  if (!stream->receive(here)) throw std::runtime_error("the server is gone");
  if (here.id != 1 || here.header.length != room) throw std::runtime_error("a reply that does not fit");
  if (room && !stream->receive(back, room)) throw std::runtime_error("the server is gone");
}

static double flood(const std::vector<char>& body, uint64_t total) {
  const Header header{ONEWAY, uint32_t(body.size())};
  uint64_t sent = 0, got = 0;
  double begun = now();
  for (; sent < total; sent += body.size()) stream->send(&header, sizeof header, body.data(), body.size());
  call(SYNC, {}, &got, sizeof got);
  double took = now() - begun;
  if (got != sent) throw std::runtime_error("sent " + std::to_string(sent) + " bytes, " + std::to_string(got) + " confirmed");
  return took;
}

static double pipeline(uint32_t depth, uint32_t n, bool batch) {
  std::vector<Call> due;
  uint32_t sent = 0;
  auto next = [&] { due.push_back({{PING, 0}, sent++}); };
  auto go = [&] { stream->send(due.data(), due.size() * sizeof(Call)); due.clear(); };
  double begun = now();
  while (sent < depth && sent < n) next();
  go();
  for (uint32_t done = 0; done < n; done++) {
    Call reply;
    if (!stream->receive(reply) || reply.id != done) throw std::runtime_error("a reply of another request");
    if (sent < n) next();
    if (!due.empty() && (!batch || stream->drained() || due.size() == depth)) go();
  }
  return now() - begun;
}

// What is timed.
static uint32_t kind;
static std::vector<char> body, back;

static void once() { call(kind, body, back.data(), body.size()); }

int main(int argc, char** argv) try {
  std::string test = argc > 1 ? argv[1] : "", type = opt(argc, argv, "--type", "octet");
  size_t size = strtoull(opt(argc, argv, "--size", "65536"), nullptr, 10), each = width(type.c_str());
  uint64_t total = strtoull(opt(argc, argv, "--total", "268435456"), nullptr, 10);
  const char* usual = test == "echo" ? "5000" : test == "pipeline" ? "100000" : "20000";
  int n = atoi(opt(argc, argv, "--n", usual)), depth = atoi(opt(argc, argv, "--depth", "16"));
  bool batch = flag(argc, argv, "--batch");
  if (!each || n < 1 || depth < 1) throw std::runtime_error("bad arguments");

  signal(SIGPIPE, SIG_IGN);
  Stream own(connected(argc, argv));
  stream = &own;
  std::vector<char> buffer(std::max<size_t>(size / each, 1) * each);
  for (size_t i = 0; i < buffer.size(); i++) buffer[i] = pattern(i);
  if (test == "ttcp") {
    flood(buffer, total / 10);
    double secs = flood(buffer, total);
    uint64_t bytes = (total + buffer.size() - 1) / buffer.size() * buffer.size();
    printf("{\"peer\":\"cxx\",\"test\":\"ttcp\",\"type\":\"%s\",\"size\":%zu,\"mbit_s\":%.6f,\"secs\":%.6f}\n",
           type.c_str(), size, bytes * 8 / secs / 1e6, secs);
    return 0;
  }
  if (test == "pipeline") {
    pipeline(depth, n / 10, batch);
    double secs = pipeline(depth, n, batch);
    printf("{\"peer\":\"cxx\",\"test\":\"pipeline\",\"depth\":%d,\"n\":%d,\"threads\":1,\"batch\":%d,\"calls_s\":%.3f,\"secs\":%.6f}\n",
           depth, n, batch, n / secs, secs);
    return 0;
  }
  std::string more;
  if (test == "echo") {
    kind = ECHO_BACK;
    body = back = buffer;
    more = "\"type\":\"" + type + "\",\"size\":" + std::to_string(size) + ",";
  } else if (test == "ping" || test == "demux") kind = test == "ping" ? uint32_t(PING) : DEMUX_END - 1;
  else throw std::runtime_error("unknown test '" + test + "'");
  std::fill(back.begin(), back.end(), 0);
  once();
  if (back != body) throw std::runtime_error("the echo differs from what was sent");
  latency("cxx", test.c_str(), more.c_str(), n, opt(argc, argv, "--samples", ""), once);
} catch (const std::exception& e) {
  fprintf(stderr, "client: %s\n", e.what());
  return 1;
}
