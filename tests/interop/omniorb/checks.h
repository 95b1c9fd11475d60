// The client's checks: what they share.
#pragma once
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>
#include "echo.h"
#include "record.h"

struct Context {
  CORBA::ORB_var orb;
  PortableServer::POA_var poa;
  Interop::Peer_var peer;
  Interop::Extras_var extras;      // nil: the server has none (JacORB)
  std::string server;              // its server_name
  int minor = 2;                   // of the GIOP version that calls go out with
  bool code_sets = true;           // the reference names code sets
  Recorder* recorder = nullptr;    // --record
};

struct Check {
  std::string name;
  std::function<void(Context&)> run;
};

// Thrown by a check: the reason to print.
struct Failure : std::runtime_error { using runtime_error::runtime_error; };
struct Skipped : std::runtime_error { using runtime_error::runtime_error; };

// "BAD_PARAM 0x4f4d0001 COMPLETED_NO"
inline std::string describe(const CORBA::SystemException& e) {
  static const char* const completed[] = {"YES", "NO", "MAYBE"};
  char minor[16];
  snprintf(minor, sizeof minor, "0x%08x", e.minor());
  return std::string(e._name()) + ' ' + minor + " COMPLETED_" + completed[e.completed()];
}

inline void expect(bool ok, const std::string& what) {
  if (!ok) throw Failure(what);
}
template <class A, class B> void expect_same(const A& got, const B& wanted, const std::string& what) {
  std::string g = echo::text(got), w = echo::text(wanted);
  expect(g == w, what + " is " + g + ", should be " + w);
}
inline void expect_text(const char* got, const std::string& wanted, const std::string& what) {
  expect(wanted == got, what + " is \"" + got + "\", should be \"" + wanted + '"');
}
// The system exception that the call must raise.
template <class F> std::string raised(F call) {
  try {
    call();
  } catch (CORBA::SystemException& e) {
    return describe(e);
  }
  return "nothing";
}

const char* const no_wide_1_1 = "omniORB has no wide text in GIOP 1.1: what it sends is of GIOP 1.2, or nothing";

std::vector<Check> echo_checks();        // one for each echo_x
std::vector<Check> call_checks();        // the other operations
std::vector<Check> reference_checks();   // object references and callbacks
