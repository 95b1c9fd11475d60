// Records the GIOP messages of chosen calls as fixtures: the client calls through a
// relay of this process, which cuts the octets into messages. What omniORB does not
// send by itself (the other byte order) is marshalled by omniORB's memory streams
// into whole messages, and sent to the server as a proof that they are right.
#pragma once
#include <cstdint>
#include <functional>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include "echo.h"

using Octets = std::vector<uint8_t>;

// Marshals a value of types.idl.
template <class T> void put(cdrStream& s, const T& v) {
  if constexpr (echo::is_boxed<T>::value) put(s, v.value);
  else if constexpr (std::is_same_v<T, CORBA::Boolean>) s.marshalBoolean(v);
  else if constexpr (std::is_same_v<T, CORBA::Octet>) s.marshalOctet(v);
  else if constexpr (std::is_same_v<T, CORBA::WChar>) s.marshalWChar(v);
  else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) v >>= s;
  else if constexpr (std::is_array_v<T>) for (const auto& element : v) put(s, element);
  else if constexpr (echo::is_text<T>) s.marshalString(v);
  else if constexpr (echo::is_wide_text<T>) s.marshalWString(v);
  else v >>= s;
}

class Recorder {
public:
  // Messages go to the directory, and a line for each into its index.tsv.
  Recorder(const std::string& directory, const std::string& orb, const std::string& host, int port);
  int port() const { return listen_port; }   // of the relay

  struct Target {
    int minor;                  // GIOP version 1.minor
    Octets key;
    uint32_t chars, wchars;     // transmission code sets; 0: no context
  };
  Target target;

  // Messages from now on belong to this operation; "" stops recording. `words` says
  // what the body of a message of the given kind holds.
  void begin(const std::string& operation, const std::string& request, const std::string& reply);
  void end();

  // Stores a message under a name of its own. Another ORB's directory gets only what
  // that ORB sent.
  void store(const std::string& name, const std::string& origin, const Octets& message, const std::string& operation,
             const std::string& body);

  // Whole messages made with omniORB's marshalling, in the byte order given. Request
  // and reply bodies may be empty functions: then there is no body, and no padding.
  using Body = std::function<void(cdrStream&)>;
  Octets request(bool little, const std::string& operation, uint32_t id, const Body& arguments) const;
  Octets reply(bool little, uint32_t id, uint32_t status, const Body& results) const;
  Octets message(bool little, int type, const Body& body) const;

  // Sends octets on a connection of its own; returns the messages that come back
  // until `count` are there, the connection closes or nothing comes for so many ms.
  std::vector<Octets> probe(const Octets& octets, size_t count, int patience = 1000) const;

  // Stores the twins in the other byte order of the request and the reply just
  // recorded, after the server has answered the request's twin.
  void twins(const std::string& operation, const Body& arguments, const Body& results, const std::string& request_words,
             const std::string& reply_words);

private:
  void relay();
  void pump(int from, int to, bool requests);
  void seen(const Octets& message, bool requests);

  std::string directory, orb, host;
  int server_port, listen_port, listener;
  std::mutex lock;
  std::string operation, request_words, reply_words;
  std::map<std::string, int> used;           // names, to number those that repeat
  Octets last_request, last_reply;
  std::ofstream index;
};

// Messages that no client sends by itself (see probes.cc), and their answers.
// profile: the encapsulation in the IIOP profile of the target's reference.
void record_probes(Recorder& r, const std::string& server, const Octets& profile);
