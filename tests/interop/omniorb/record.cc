#include "record.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <stdexcept>
#include <omniORB4/codeSets.h>

static sockaddr_in loopback(int port) {
  sockaddr_in a = {};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}

static int dial(int port) {
  int s = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  sockaddr_in a = loopback(port);
  if (connect(s, reinterpret_cast<sockaddr*>(&a), sizeof a)) {
    close(s);
    throw std::runtime_error("no server at 127.0.0.1:" + std::to_string(port));
  }
  setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return s;
}

static bool write_all(int to, const uint8_t* data, size_t n) {
  while (n) {
    ssize_t done = send(to, data, n, MSG_NOSIGNAL);
    if (done <= 0) return false;
    data += done;
    n -= done;
  }
  return true;
}

static uint32_t size_of(const uint8_t* header) {
  return header[6] & 1 ? header[8] | header[9] << 8 | header[10] << 16 | uint32_t(header[11]) << 24
                       : header[11] | header[10] << 8 | header[9] << 16 | uint32_t(header[8]) << 24;
}

// Takes the first whole message out of the octets read so far; empty if there is none.
static Octets take_message(Octets& in) {
  if (in.size() < 12 || in.size() < 12 + size_t(size_of(in.data()))) return {};
  auto end = in.begin() + 12 + size_of(in.data());
  Octets message(in.begin(), end);
  in.erase(in.begin(), end);
  return message;
}

Recorder::Recorder(const std::string& directory, const std::string& orb, const std::string& host, int port)
    : directory(directory), orb(orb), host(host), server_port(port), index(directory + "/index.tsv", std::ios::app) {
  listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in a = loopback(0);
  socklen_t size = sizeof a;
  if (bind(listener, reinterpret_cast<sockaddr*>(&a), size) || listen(listener, 16) ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&a), &size))
    throw std::runtime_error("the relay cannot listen");
  listen_port = ntohs(a.sin_port);
  std::thread([this] { relay(); }).detach();
}

void Recorder::relay() {
  for (int client; (client = accept(listener, nullptr, nullptr)) >= 0;) {
    int on = 1, up = dial(server_port);
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    std::thread([=] { pump(client, up, true); }).detach();
    std::thread([=] { pump(up, client, false); }).detach();
  }
}

void Recorder::pump(int from, int to, bool requests) {
  Octets in;
  uint8_t buffer[65536];
  for (ssize_t n; (n = read(from, buffer, sizeof buffer)) > 0;) {
    in.insert(in.end(), buffer, buffer + n);
    for (Octets message; !(message = take_message(in)).empty();) {
      seen(message, requests);
      if (!write_all(to, message.data(), message.size())) break;
    }
  }
  shutdown(to, SHUT_WR);
}

static const char* const kinds[] = {"request", "reply", "cancel_request", "locate_request",
                                    "locate_reply", "close_connection", "message_error", "fragment"};
static const char* const types[] = {"Request", "Reply", "CancelRequest", "LocateRequest",
                                    "LocateReply", "CloseConnection", "MessageError", "Fragment"};

void Recorder::begin(const std::string& op, const std::string& request, const std::string& reply) {
  std::lock_guard<std::mutex> guard(lock);
  operation = op;
  request_words = request;
  reply_words = reply;
}

void Recorder::end() { begin("", "", ""); }

void Recorder::seen(const Octets& m, bool requests) {
  std::lock_guard<std::mutex> guard(lock);
  if (operation.empty()) return;
  int type = m[7];
  if (type == 0) last_request = m;
  if (type == 1) last_reply = m;
  std::string name = std::string(type == 7 ? (requests ? "request_" : "reply_") : "") + kinds[type] + '_' + operation.substr(operation[0] == '_') + "_1_" + char('0' + m[5]);
  if (int again = used[name]++) name += '_' + std::to_string(again + 1);
  store(name, "captured", m, operation, type == 0 ? request_words : type == 1 ? reply_words : "");
}

void Recorder::store(const std::string& name, const std::string& origin, const Octets& m, const std::string& op,
                     const std::string& body) {
  if (orb != "omniorb" && origin != "captured") return;      // omniORB's directory has it
  std::ofstream(directory + '/' + name + ".giop", std::ios::binary).write(reinterpret_cast<const char*>(m.data()), m.size());
  index << name << ".giop\t" << orb << '\t' << origin << "\t1." << int(m[5]) << '\t' << (m[6] & 1 ? "LE" : "BE") << '\t'
        << types[m[7]] << '\t' << op << '\t' << body << '\n';
  index.flush();
}

// ------------------------------------------------- messages from memory streams

static void set_code_sets(cdrStream& s, const Recorder::Target& t) {
  GIOP::Version version = {1, CORBA::Octet(t.minor)};
  uint32_t chars = t.chars && t.minor ? t.chars : omni::omniCodeSet::ID_8859_1;
  s.TCS_C(omni::omniCodeSet::getTCS_C(chars, version));
  if (t.minor == 2) s.TCS_W(omni::omniCodeSet::getTCS_W(t.wchars ? t.wchars : omni::omniCodeSet::ID_UTF_16, version));
}

static Octets octets_of(const cdrMemoryStream& s) {
  auto* data = static_cast<const uint8_t*>(s.bufPtr());
  return Octets(data, data + s.bufSize());
}

Octets Recorder::message(bool little, int type, const Body& body) const {
  cdrMemoryStream s(0, true);
  s.setByteSwapFlag(little);
  set_code_sets(s, target);
  const uint8_t header[12] = {'G', 'I', 'O', 'P', 1, uint8_t(target.minor), uint8_t(little), uint8_t(type)};
  s.put_octet_array(header, sizeof header);
  body(s);
  Octets out = octets_of(s);
  uint32_t size = out.size() - 12;
  for (int i = 0; i < 4; i++) out[little ? 8 + i : 11 - i] = size >> (8 * i);
  return out;
}

static void put_context(cdrStream& s, const Recorder::Target& t, bool little, bool wanted) {
  if (!wanted || !t.chars || !t.minor) {
    CORBA::ULong(0) >>= s;
    return;
  }
  cdrMemoryStream e(0, true);
  e.setByteSwapFlag(little);
  e.marshalOctet(little);
  CORBA::ULong(t.chars) >>= e;
  CORBA::ULong(t.wchars) >>= e;
  CORBA::ULong(1) >>= s;                 // one context,
  CORBA::ULong(1) >>= s;                 // CodeSets
  CORBA::ULong(e.bufSize()) >>= s;
  s.put_octet_array(static_cast<const uint8_t*>(e.bufPtr()), e.bufSize());
}

static void put_octets(cdrStream& s, const void* data, size_t n) {
  CORBA::ULong(n) >>= s;
  s.put_octet_array(static_cast<const uint8_t*>(data), n);
}

static void align_body(cdrStream& s, const Recorder::Target& t) {
  if (t.minor == 2) s.alignOutput(omni::ALIGN_8);
}

Octets Recorder::request(bool little, const std::string& op, uint32_t id, const Body& arguments) const {
  const uint8_t zeros[3] = {};
  return message(little, 0, [&](cdrStream& s) {
    if (target.minor == 2) {
      CORBA::ULong(id) >>= s;
      s.marshalOctet(3);
      s.put_octet_array(zeros, 3);
      CORBA::Short(0) >>= s;             // KeyAddr
      put_octets(s, target.key.data(), target.key.size());
      put_octets(s, op.c_str(), op.size() + 1);
      put_context(s, target, little, true);
    } else {
      put_context(s, target, little, true);
      CORBA::ULong(id) >>= s;
      s.marshalBoolean(true);
      if (target.minor) s.put_octet_array(zeros, 3);
      put_octets(s, target.key.data(), target.key.size());
      put_octets(s, op.c_str(), op.size() + 1);
      CORBA::ULong(0) >>= s;             // principal
    }
    if (arguments) {
      align_body(s, target);
      arguments(s);
    }
  });
}

Octets Recorder::reply(bool little, uint32_t id, uint32_t status, const Body& results) const {
  return message(little, 1, [&](cdrStream& s) {
    if (target.minor != 2) CORBA::ULong(0) >>= s;
    CORBA::ULong(id) >>= s;
    CORBA::ULong(status) >>= s;
    if (target.minor == 2) CORBA::ULong(0) >>= s;
    if (results) {
      align_body(s, target);
      results(s);
    }
  });
}

std::vector<Octets> Recorder::probe(const Octets& octets, size_t count, int patience) const {
  int s = dial(server_port);
  write_all(s, octets.data(), octets.size());
  std::vector<Octets> out;
  Octets in;
  uint8_t buffer[65536];
  for (pollfd p = {s, POLLIN, 0}; out.size() < count && poll(&p, 1, patience) > 0;) {
    ssize_t n = read(s, buffer, sizeof buffer);
    if (n <= 0) break;
    in.insert(in.end(), buffer, buffer + n);
    for (Octets m; !(m = take_message(in)).empty();) out.push_back(m);
  }
  close(s);
  return out;
}

static uint32_t word(const Octets& m, size_t at) {
  return m[6] & 1 ? m[at] | m[at + 1] << 8 | m[at + 2] << 16 | uint32_t(m[at + 3]) << 24
                  : m[at + 3] | m[at + 2] << 8 | m[at + 1] << 16 | uint32_t(m[at]) << 24;
}

static uint32_t id_of(const Octets& m, bool has_contexts) {
  if (m[5] == 2) return word(m, 12);
  size_t at = 16;
  if (has_contexts)
    for (uint32_t n = word(m, 12); n; n--) {
      at = (at + 3) / 4 * 4 + 4;
      at += 4 + word(m, at);
    }
  return word(m, (at + 3) / 4 * 4);
}

// Every octet of the made message that is not zero must be there in the recorded
// one: the rest may be padding, which omniORB does not clear.
static void check_twin(const Octets& recorded, const Octets& made, const std::string& what) {
  bool good = recorded.size() == made.size();
  for (size_t i = 0; good && i < made.size(); i++) good = !made[i] || made[i] == recorded[i];
  if (!good) throw std::runtime_error("the twin of the " + what + " differs from what was recorded");
}

void Recorder::twins(const std::string& op, const Body& arguments, const Body& results, const std::string& request_body,
                     const std::string& reply_body) {
  uint32_t id = id_of(last_request, true), reply_id = id_of(last_reply, true);
  bool recorded_little = last_request[6] & 1, reply_little = last_reply[6] & 1;
  if (recorded_little) {
    // A connection's first request alone carries the code sets.
    Octets made = request(recorded_little, op, id, arguments);
    if (made.size() == last_request.size()) check_twin(last_request, made, "request of " + op);
  }
  if (reply_little) check_twin(last_reply, reply(reply_little, reply_id, 0, results), "reply to " + op);
  Octets request_twin = request(!recorded_little, op, id, arguments), reply_twin = reply(!reply_little, id, 0, results);
  auto answers = probe(request_twin, 1);
  if (answers.empty() || answers[0].size() != reply_twin.size())
    throw std::runtime_error("the server does not answer the twin of the request of " + op);
  check_twin(answers[0], reply(reply_little, id, 0, results), "answer to " + op);
  std::string version = "_1_" + std::to_string(target.minor), order = recorded_little ? "_be" : "_le";
  store("request_" + op + version + order, "marshalled", request_twin, op, request_body);
  store("reply_" + op + version + order, "marshalled", reply_twin, op, reply_body);
}
