// server [--host ADDRESS] [--port P] [--sockbuf BYTES] [--batch] [--check] [--lifeline]
// --batch: hold replies to pings back while more requests are already read in.
// --check: compare each octet with what clients send, and end with 4 where one differs.
#include <functional>
#include <iostream>
#include <thread>
#include <vector>
#include "stream.h"

class Connection {
  Stream stream;
  const bool batch, check;
  uint64_t count = 0;
  std::vector<Call> held;
  std::vector<std::function<void()>> wide{DEMUX_END - DEMUX, [] {}};

  void reply(const Call& call, const void* body, size_t length) {
    Call back{{call.header.kind, uint32_t(length)}, call.id};
    if (call.header.kind != PING || !batch) return stream.send(&back, sizeof back, body, length);
    held.push_back(back);
    if (!stream.drained() && held.size() < 1024) return;
    stream.send(held.data(), held.size() * sizeof back);
    held.clear();
  }

public:
  Connection(int fd, bool batch, bool check) : stream(fd), batch(batch), check(check) {}

  void serve() {
    for (Call call{}; stream.receive(call.header); call.id = 0) {
      if (call.header.kind != ONEWAY && !stream.receive(call.id)) return;
      size_t length = call.header.length;
      std::unique_ptr<char[]> body(new char[length]);   // as a sequence that is the receiver's own
      if (length && !stream.receive(body.get(), length)) return;
      if (call.header.kind == ONEWAY) {
        for (size_t i = 0; check && i < length; i++) if (body[i] != pattern(i)) differs("octet", i, length);
        count += length;
      } else if (call.header.kind == SYNC) {
        uint64_t counted = std::exchange(count, 0);
        reply(call, &counted, sizeof counted);
      } else {
        if (call.header.kind >= DEMUX) wide.at(call.header.kind - DEMUX)();
        reply(call, body.get(), length);
      }
    }
  }
};

int main(int argc, char** argv) {
  lifeline(argc, argv);
  bool batch = flag(argc, argv, "--batch"), check = flag(argc, argv, "--check");
  int l = listener(argc, argv);
  ready(l);
  for (;;) {
    int fd = accept(l, nullptr, nullptr);
    if (fd < 0) die("accept");
    tune(fd, 0, 1);
    std::thread([=] {
      try {
        Connection(fd, batch, check).serve();
      } catch (const std::exception& e) {
        std::cerr << "server: " << e.what() << '\n';
      }
    }).detach();
  }
}
