// client --ior PATH|IOR:...|corbaloc:iiop:[V@]HOST:PORT[/KEY] [--giop 1.0|1.1|1.2]
//        [--check NAME,...|all] [--chars UTF-8|ISO-8859-1] [--seconds S] [--list] [--describe] [-ORB...]
//        [--record DIRECTORY [--orb NAME] [--probes]]
// Drives every operation of types.idl against any server of it. Prints "ok NAME",
// "FAIL NAME: why" or "skip NAME: why" for each check; status 0 if nothing failed.
// --describe: what the IOR says (see reference.h), instead.
// --record: stores the first call of each check as fixtures, with those that the
// recorder makes (see record.h), in the directory; --probes: those of probes.cc too.
#include <fstream>
#include <iostream>
#include <memory>
#include "checks.h"
#include "options.h"
#include "reference.h"
// Links the transport by TLS: -ORBendPoint giop:ssl:HOST:PORT, -ORBsslCAFile and others.
#include <omniORB4/sslContext.h>

// In GIOP 1.0 omniORB refuses wide text before it sends anything.
static const char* const wide_checks[] = {"echo_wchar", "echo_wstring", "echo_wide_code", "echo_wchar_seq",
                                          "echo_wstring_seq", "echo_caption", "echo_wide_choice"};

static const char* const no_wide = "INV_OBJREF 0x4f4d0001 COMPLETED_NO";

// JacORB refuses GIOP 1.1 fragments, which omniORB sends of what is larger than 8 KiB.
static const char* const large_checks[] = {"large_octets", "large_doubles", "large_strings", "large_structs", "large_request", "odd_request", "echo_big_array"};

template <size_t n> static bool is_one_of(const char* const (&names)[n], const std::string& name) {
  for (auto one : names)
    if (name == one) return true;
  return false;
}

static void run(const Check& check, Context& x) {
  bool wide = is_one_of(wide_checks, check.name), large = is_one_of(large_checks, check.name);
  if (x.minor == 1 && wide) throw Skipped(no_wide_1_1);
  if (x.minor == 1 && large && x.server == "JacORB") throw Skipped("known limit of JacORB: no GIOP 1.1 fragments");
  if (x.minor == 0 && wide && !(check.name == "echo_wide_code" && CORBA::is_nil(x.extras))) {
    std::string e = raised([&] { check.run(x); });
    expect(e == no_wide, "wide text in GIOP 1.0 raised " + e);
    return;
  }
  if (!x.code_sets && wide) {
    try {
      check.run(x);
    } catch (CORBA::INV_OBJREF& e) {     // the reference names no code sets
      expect(describe(e) == no_wide, describe(e));
    }
    return;
  }
  check.run(x);
}

// The server publishes an object of this name: a file beside the IOR's, or a key.
static CORBA::Object_ptr companion(CORBA::ORB_ptr orb, const std::string& ior, const std::string& version, const std::string& name) {
  try {
    bool corbaloc = !ior.compare(0, 9, "corbaloc:");
    std::string base = corbaloc ? ior.substr(0, ior.find('/')) : ior + '.' + name;
    CORBA::Object_var object = orb->string_to_object(Reference(base, version, name).text.c_str());
    if (CORBA::is_nil(object) || (name != "forward" && name != "moved" && object->_non_existent())) return CORBA::Object::_nil();
    return object._retn();
  } catch (std::exception&) {
    return CORBA::Object::_nil();
  } catch (CORBA::SystemException&) {
    return CORBA::Object::_nil();
  }
}

// An object that is elsewhere: the second call may go there at once.
static void elsewhere(Context& x, CORBA::Object_ptr forward, const std::string& what) {
  if (CORBA::is_nil(forward)) throw Skipped("the server has no object that " + what);
  Interop::Peer_var peer = Interop::Peer::_unchecked_narrow(forward);
  try {
    for (CORBA::Long i = 1; i < 3; i++) expect_same(peer->plus_one(i), i + 1, "plus_one by an object that " + what);
  } catch (CORBA::OBJECT_NOT_EXIST&) {
    if (x.server == "zorb") throw;
    throw Skipped("the server has no object that " + what);
  }
}

static void unknown_object(Context& x, const Reference& at) {
  std::string nowhere = "corbaloc:iiop:1." + std::to_string(x.minor) + "@127.0.0.1:" + std::to_string(at.port) + "/no-such-object";
  CORBA::Object_var object = x.orb->string_to_object(nowhere.c_str());
  Interop::Peer_var peer = Interop::Peer::_unchecked_narrow(object);
  std::string got = raised([&] { peer->ping(); });
  expect(got.compare(0, 17, "OBJECT_NOT_EXIST ") == 0, "a call of an unknown object raised " + got);
  CORBA::Boolean yes = object->_non_existent();
  expect(yes, "_non_existent of an unknown object says no");
}

int main(int argc, char** argv) {
  int failed = 0;
  try {
    exitAfter(opt(argc, argv, "--seconds", "300"));
    std::string version = opt(argc, argv, "--giop", ""), ior = opt(argc, argv, "--ior", "interop.ior");
    std::string only = "," + opt(argc, argv, "--check", "all") + ",", directory = opt(argc, argv, "--record", "");
    bool list = flag(argc, argv, "--list");
    Context x;
    x.orb = initOrb(argc, argv, {{"endPoint", "giop:tcp:127.0.0.1:0"},
                                 {"nativeCharCodeSet", opt(argc, argv, "--chars", "UTF-8")},
                                 {"maxGIOPVersion", version.empty() ? "1.2" : version},
                                 {"clientCallTimeOutPeriod", "30000"},
                                 {"giopMaxMsgSize", "67108864"},
                                 {"traceLevel", "0"}});
    std::vector<Check> checks = call_checks();
    for (auto& c : echo_checks()) checks.push_back(c);
    for (auto& c : reference_checks()) checks.push_back(c);
    std::unique_ptr<Recorder> recorder;
    CORBA::Object_var forward, moved;
    std::unique_ptr<Reference> reference;
    checks.push_back({"location_forward", [&](Context& x) { elsewhere(x, forward, "forwards"); }});
    checks.push_back({"moved", [&](Context& x) { elsewhere(x, moved, "forwards for good"); }});
    checks.push_back({"unknown_object", [&](Context& x) { unknown_object(x, *reference); }});
    if (list) {
      for (auto& c : checks) std::cout << c.name << '\n';
      return 0;
    }

    reference = std::make_unique<Reference>(ior, version.empty() ? "1.0" : version, "interop");
    x.minor = reference->minor;
    if (!version.empty() && version[2] - '0' < x.minor) x.minor = version[2] - '0';
    x.code_sets = reference->code_sets && x.minor;
    if (flag(argc, argv, "--describe")) {
      std::cout << reference->description() << '\n';
      return 0;
    }
    std::string text = reference->text;
    if (!directory.empty()) {
      recorder = std::make_unique<Recorder>(directory, opt(argc, argv, "--orb", "omniorb"), "127.0.0.1", reference->port);
      recorder->target = {x.minor, reference->key, x.code_sets ? 0x05010001u : 0x00010001u, 0x00010109u};
      x.recorder = recorder.get();
      text = reference->at_port(recorder->port());
    }
    CORBA::Object_var object = x.orb->resolve_initial_references("RootPOA");
    x.poa = PortableServer::POA::_narrow(object);
    PortableServer::POAManager_var(x.poa->the_POAManager())->activate();
    bool probes = flag(argc, argv, "--probes");
    if (recorder && !probes) recorder->begin("first_contact", "", "");
    object = x.orb->string_to_object(text.c_str());
    x.peer = Interop::Peer::_narrow(object);
    if (CORBA::is_nil(x.peer)) throw std::runtime_error("not an Interop::Peer");
    CORBA::String_var name = x.peer->server_name();
    if (recorder) recorder->end();
    x.server = name;
    object = companion(x.orb, ior, version.empty() ? "1.0" : version, "extras");
    x.extras = Interop::Extras::_narrow(object);
    forward = companion(x.orb, ior, version.empty() ? "1.0" : version, "forward");
    moved = companion(x.orb, ior, version.empty() ? "1.0" : version, "moved");

    for (auto& c : checks) {
      if (only != ",all," && only.find("," + c.name + ",") == std::string::npos) continue;
      std::string why;
      try {
        run(c, x);
        std::cout << "ok " << c.name << std::endl;
        continue;
      } catch (Skipped& e) {
        std::cout << "skip " << c.name << ": " << e.what() << std::endl;
        continue;
      } catch (std::exception& e) {
        why = e.what();
      } catch (CORBA::SystemException& e) {
        why = describe(e) + (e.NP_minorString() ? std::string(" ") + e.NP_minorString() : "");
      } catch (CORBA::UserException& e) {
        why = e._name();
      }
      failed++;
      std::cout << "FAIL " << c.name << ": " << why.substr(0, 2000) << std::endl;
    }
    if (recorder) {
      if (probes) record_probes(*recorder, x.server, reference->profile);
      else recorder->begin("shutdown", "", "");
    }
    x.orb->destroy();
  } catch (CORBA::SystemException& e) {
    std::cerr << "client: " << describe(e) << ' ' << (e.NP_minorString() ? e.NP_minorString() : "") << '\n';
    return 2;
  } catch (std::exception& e) {
    std::cerr << "client: " << e.what() << '\n';
    return 2;
  }
  return failed ? 1 : 0;
}
