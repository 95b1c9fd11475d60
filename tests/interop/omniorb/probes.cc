// Messages that no client sends by itself, sent as they are marshalled here, and what
// the server answers: unknown objects, forwarding, cancelling, closing, errors, other
// ways to address. Those of which no server is the sender are only marshalled.
#include <stdexcept>
#include "record.h"

namespace {

using Body = Recorder::Body;

void put_octets(cdrStream& s, const Octets& data) {
  CORBA::ULong(data.size()) >>= s;
  s.put_octet_array(data.data(), data.size());
}
void put_id(cdrStream& s, const char* id) { put_octets(s, Octets(id, id + strlen(id) + 1)); }

struct Probes {
  Recorder& r;
  std::string version;       // "_1_2"
  bool jacorb;

  static std::string order(bool little) { return little ? "_le" : "_be"; }

  // Sends a message and stores it with its answer.
  std::vector<Octets> send(const std::string& name, const std::string& operation, bool little, const Octets& message, size_t answers,
                           const std::string& request_words, const std::string& answer, const std::string& answer_words) {
    auto got = r.probe(message, answers);
    if (got.size() != answers) throw std::runtime_error("the probe " + name + " has " + std::to_string(got.size()) + " answers");
    r.store(name + version + order(little), "marshalled", message, operation, request_words);
    if (!answer.empty()) r.store(answer + version + (little ? "" : "_to_be"), "captured", got.back(), operation, answer_words);
    return got;
  }

  Octets locate_request(bool little, uint32_t id, const Octets& key) {
    return r.message(little, 3, [&](cdrStream& s) {
      CORBA::ULong(id) >>= s;
      if (r.target.minor == 2) CORBA::Short(0) >>= s;
      put_octets(s, key);
    });
  }
  Octets locate_reply(bool little, uint32_t id, uint32_t status, const Body& body) {
    return r.message(little, 4, [&](cdrStream& s) {
      CORBA::ULong(id) >>= s;
      CORBA::ULong(status) >>= s;
      if (body) body(s);
    });
  }
  Octets request_to(const char* key, bool little, const std::string& operation, uint32_t id, const Body& arguments) {
    Octets own = r.target.key;
    r.target.key = Octets(key, key + strlen(key));
    Octets message = r.request(little, operation, id, arguments);
    r.target.key = own;
    return message;
  }
  void only(const std::string& name, const std::string& operation, const std::string& words, const std::function<Octets(bool)>& make) {
    for (bool little : {true, false}) r.store(name + version + order(little), "marshalled", make(little), operation, words);
  }

  void locating() {
    const Octets unknown = {'n', 'o', '-', 's', 'u', 'c', 'h'};
    for (bool little : {true, false}) {
      send("locate_request_here", "locate", little, locate_request(little, 10, r.target.key), 1, "request_id=10", "locate_reply_here", "request_id=10 status=1 OBJECT_HERE");
      send("locate_request_unknown", "locate", little, locate_request(little, 11, unknown), 1, "request_id=11 key=\"no-such\"",
           "locate_reply_unknown", "request_id=11 status=0 UNKNOWN_OBJECT");
      send("request_unknown_object", "ping", little, request_to("no-such", little, "ping", 12, {}), 1, "request_id=12 key=\"no-such\"",
           "reply_unknown_object", "request_id=12 exception=OBJECT_NOT_EXIST");
    }
  }

  void forwarding(const Octets& ior) {
    auto argument = [](cdrStream& s) { CORBA::Long(1) >>= s; };
    for (bool little : {true, false})
      send("request_forwarded", "plus_one", little, request_to("forward", little, "plus_one", 13, argument), 1, "request_id=13 key=\"forward\" a=1",
           "reply_forwarded", "request_id=13 status=3 LOCATION_FORWARD: the peer's IOR");
    auto reference = [&](cdrStream& s) { put_reference(s, ior); };
    only("reply_location_forward", "plus_one", "request_id=14 status=3 LOCATION_FORWARD: the peer's IOR", [&](bool le) { return r.reply(le, 14, 3, reference); });
    only("locate_reply_forward", "locate", "request_id=15 status=2 OBJECT_FORWARD: the peer's IOR", [&](bool le) { return locate_reply(le, 15, 2, reference); });
    if (r.target.minor == 2) {
      only("reply_location_forward_perm", "plus_one", "request_id=14 status=4 LOCATION_FORWARD_PERM: the peer's IOR", [&](bool le) { return r.reply(le, 14, 4, reference); });
      only("reply_needs_addressing_mode", "plus_one", "request_id=14 status=5 NEEDS_ADDRESSING_MODE: 2 ReferenceAddr",
           [&](bool le) { return r.reply(le, 14, 5, [](cdrStream& s) { CORBA::Short(2) >>= s; }); });
      only("locate_reply_system_exception", "locate", "request_id=15 status=4 exception=NO_PERMISSION 0x4f4d0001 COMPLETED_NO",
           [&](bool le) { return locate_reply(le, 15, 4, [](cdrStream& s) { system_exception(s); }); });
      only("locate_reply_needs_addressing_mode", "locate", "request_id=15 status=5 1 ProfileAddr",
           [&](bool le) { return locate_reply(le, 15, 5, [](cdrStream& s) { CORBA::Short(1) >>= s; }); });
    }
  }

  // An IOR with the type id of the peer, as a value in a stream of any order.
  static void put_reference(cdrStream& s, const Octets& profile) {
    put_id(s, "IDL:Interop/Peer:1.0");
    CORBA::ULong(1) >>= s;
    CORBA::ULong(0) >>= s;
    put_octets(s, profile);
  }

  static void system_exception(cdrStream& s) {
    put_id(s, "IDL:omg.org/CORBA/NO_PERMISSION:1.0");
    CORBA::ULong(0x4f4d0001) >>= s;
    CORBA::ULong(1) >>= s;
  }

  void exceptions() {
    only("reply_system_exception", "raise_system", "request_id=16 exception=NO_PERMISSION 0x4f4d0001 COMPLETED_NO",
         [&](bool le) { return r.reply(le, 16, 2, system_exception); });
    only("reply_user_exception_plain", "risky", "request_id=17 exception=Plain{}",
         [&](bool le) { return r.reply(le, 17, 1, [](cdrStream& s) { put_id(s, "IDL:Interop/Plain:1.0"); }); });
    only("reply_user_exception_detailed", "risky", "request_id=18 exception=Detailed{\"Because\",-2,blue,[1,2,3]}", [&](bool le) {
      return r.reply(le, 18, 1, [](cdrStream& s) {
        Interop::Detailed e;
        e.why = "Because";
        e.code = -2;
        e.shade = Interop::blue;
        e.trail.length(3);
        for (int i = 0; i < 3; i++) e.trail[i] = i + 1;
        put_id(s, "IDL:Interop/Detailed:1.0");
        e >>= s;
      });
    });
  }

  // A cancelled id that is not pending is ignored: the ping behind it is answered. Not by
  // omniORB below GIOP 1.2, which then drops what came in the same segment.
  void cancelling() {
    for (bool little : {true, false}) {
      Octets cancel = r.message(little, 2, [](cdrStream& s) { CORBA::ULong(77) >>= s; });
      r.store("cancel_request" + version + order(little), "marshalled", cancel, "cancel", "request_id=77");
      Octets ping = r.request(little, "ping", 19, {});
      cancel.insert(cancel.end(), ping.begin(), ping.end());
      if ((jacorb || r.target.minor == 2) && r.probe(cancel, 1).size() != 1) throw std::runtime_error("a CancelRequest upset the server");
    }
  }

  void closing() {
    for (bool little : {true, false}) {
      r.store("close_connection" + version + order(little), "marshalled", r.message(little, 5, [](cdrStream&) {}), "close", "");
      r.store("message_error" + version + order(little), "marshalled", r.message(little, 6, [](cdrStream&) {}), "error", "");
    }
    // The capture's servers close idle connections after a few seconds.
    auto got = r.probe(r.request(true, "ping", 20, {}), 2, 20000);
    if (got.size() == 2 && got[1][7] == 5) r.store("close_connection_idle" + version, "captured", got[1], "close", "the server closes an idle connection");
  }

  void errors() {
    // omniORB answers an unknown addressing disposition by MessageError; JacORB a GIOP 1.0
    // message that says that fragments follow.
    Octets wrong = r.request(true, "ping", 21, {});
    if (!jacorb && r.target.minor == 2) wrong[20] = 9;
    else if (jacorb && !r.target.minor) wrong[6] |= 2;
    else return;
    auto got = r.probe(wrong, 1);
    if (got.size() != 1 || got[0][7] != 6) throw std::runtime_error("no MessageError where one was expected");
    r.store("message_error_answer" + version, "captured", got[0], "error",
            jacorb ? "to a GIOP 1.0 message with the fragment bit" : "to an unknown addressing disposition");
  }

  // GIOP 1.2's other two target addresses, and the scopes of oneways. omniORB's server
  // fails on the addresses (it asserts), so that only JacORB's answers prove them.
  void addressing(const Octets& profile) {
    if (r.target.minor != 2) return;
    auto make = [&](bool little, int disposition, int flags, uint32_t id) {
      return r.message(little, 0, [&](cdrStream& s) {
        const uint8_t zeros[3] = {};
        CORBA::ULong(id) >>= s;
        s.marshalOctet(flags);
        s.put_octet_array(zeros, 3);
        CORBA::Short(disposition) >>= s;
        if (disposition == 0) {
          put_octets(s, r.target.key);
        } else if (disposition == 1) {
          CORBA::ULong(0) >>= s;
          put_octets(s, profile);
        } else {
          CORBA::ULong(0) >>= s;
          put_reference(s, profile);
        }
        put_id(s, "ping");
        CORBA::ULong(0) >>= s;
      });
    };
    only("request_profile_addr", "ping", "request_id=22, target: the peer's IIOP profile", [&](bool le) { return make(le, 1, 3, 22); });
    only("request_reference_addr", "ping", "request_id=23, target: profile 0 of the peer's IOR", [&](bool le) { return make(le, 2, 3, 23); });
    only("request_sync_with_server", "ping", "request_id=24 response_flags=1", [&](bool le) { return make(le, 0, 1, 24); });
    only("request_sync_none", "ping", "request_id=25 response_flags=0", [&](bool le) { return make(le, 0, 0, 25); });
    for (bool little : {true, false}) {
      auto expect = [&](const Octets& m, size_t n, const char* what) {
        auto got = r.probe(m, n + 1, 300);
        bool good = got.size() == n && (!n || (got[0][7] == 1 && got[0].size() == 24));
        if (!good) throw std::runtime_error(std::string("the server does not answer as it should: ") + what);
      };
      expect(make(little, 0, 1, 24), 1, "SYNC_WITH_SERVER");
      expect(make(little, 0, 0, 25), 0, "a oneway");
      if (!jacorb) continue;
      expect(make(little, 1, 3, 22), 1, "ProfileAddr");
      expect(make(little, 2, 3, 23), 1, "ReferenceAddr");
    }
  }
};

}  // namespace

void record_probes(Recorder& r, const std::string& server, const Octets& profile) {
  Probes p{r, "_1_" + std::to_string(r.target.minor), server == "JacORB"};
  p.locating();
  p.forwarding(profile);
  p.exceptions();
  p.cancelling();
  p.closing();
  p.errors();
  p.addressing(profile);
}
