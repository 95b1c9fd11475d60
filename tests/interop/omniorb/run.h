// Checks by name: `ok NAME`, or `FAIL NAME: why` where one gives a reason or an exception comes.
#pragma once
#include <iostream>
#include <string>
#include <omniORB4/CORBA.h>

static int failed = 0;

template <class F> static void run(const char* name, F f) {
  std::string why;
  try {
    why = f();
  } catch (CORBA::SystemException& e) {
    why = std::string(e._name()) + " " + (e.NP_minorString() ? e.NP_minorString() : std::to_string(e.minor()));
  } catch (CORBA::UserException& e) {
    why = e._name();
  }
  failed += !why.empty();
  std::cout << (why.empty() ? "ok " : "FAIL ") << name << (why.empty() ? "" : ": ") << why << std::endl;
}
