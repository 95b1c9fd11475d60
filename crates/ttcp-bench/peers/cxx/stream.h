// A thin wrapper of stream sockets, as C++ programs have them: objects that own descriptors, and errors that are thrown. On the
// wire the same as the peer in C.
#pragma once
#include <cerrno>
#include <cstring>
#include <memory>
#include <sys/uio.h>
#include <system_error>
#include <utility>
#include "../c/peer.h"

enum Kind : uint32_t { ONEWAY, SYNC, PING, ECHO_BACK, DEMUX = 100, DEMUX_END = 200 };
struct Header { uint32_t kind, length; };
struct Call { Header header; uint32_t id; };

class Stream {
  static constexpr size_t STAGE = 65536, DIRECT = 16384;
  int fd;
  size_t at = 0, end = 0;   // what is read ahead
  std::unique_ptr<char[]> stage{new char[STAGE]};

  static ssize_t good(ssize_t result, const char* what) {
    if (result < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), what);
    return result;
  }

public:
  explicit Stream(int fd) : fd(fd) {}
  Stream(Stream&& from) : fd(std::exchange(from.fd, -1)), stage(std::move(from.stage)) {}
  ~Stream() { if (fd >= 0) close(fd); }

  bool drained() const { return at == end; }

  // Reads n bytes to their place, and ahead what comes with them; false at the end of the stream.
  bool receive(void* to, size_t n) {
    auto p = static_cast<char*>(to);
    size_t ahead = std::min(end - at, n);
    memcpy(p, stage.get() + at, ahead);
    at += ahead; p += ahead; n -= ahead;
    while (n) {
      iovec parts[] = {{p, n}, {stage.get(), n >= DIRECT ? sizeof(Header) : STAGE}};
      ssize_t got = good(readv(fd, parts, 2), "receive");
      if (got == 0) return false;
      if (got < 0) continue;
      size_t some = std::min<size_t>(got, n);
      p += some; n -= some;
      at = 0; end = got - some;
    }
    return true;
  }
  template <class T> bool receive(T& to) { return receive(&to, sizeof to); }

  // Sends both parts, by one call of the system if the socket takes them.
  void send(const void* head, size_t length, const void* body = nullptr, size_t more = 0) {
    iovec parts[] = {{const_cast<void*>(head), length}, {const_cast<void*>(body), more}};
    for (iovec *part = parts, *last = parts + (more ? 2 : 1); part < last;) {
      ssize_t went = good(writev(fd, part, last - part), "send");
      for (; part < last && went >= 0 && size_t(went) >= part->iov_len; part++) went -= part->iov_len;
      if (part < last && went > 0) {
        part->iov_base = static_cast<char*>(part->iov_base) + went;
        part->iov_len -= went;
      }
    }
  }
};
