// The servants of types.idl and extras.idl; ../README.md says what each operation does.
#pragma once
#include <condition_variable>
#include <mutex>
#include <vector>
#include "peer_echo.h"

// Adds references that the peer makes, without persistence, to its POA.
class NodeServant : public POA_Interop::Node {
public:
  NodeServant(PortableServer::POA_ptr poa, const std::string& label) : poa(PortableServer::POA::_duplicate(poa)), name(label) {}
  static Interop::Node_ptr make(PortableServer::POA_ptr poa, const std::string& label);
  char* label() override { return CORBA::string_dup(name.c_str()); }
  CORBA::Long add(CORBA::Long amount) override;
  Interop::Node_ptr twin() override { return make(poa, name + "'"); }
  void retire() override;

private:
  PortableServer::POA_var poa;
  std::string name;
  std::mutex lock;
  CORBA::Long sum = 0;
};

class BaseServant : public POA_Interop::Base {
public:
  CORBA::Long rank() override { return 1; }
  char* base_name() override { return CORBA::string_dup("base"); }
};

class BottomServant : public POA_Interop::Bottom {
public:
  CORBA::Long rank() override { return 4; }
  char* base_name() override { return CORBA::string_dup("base of bottom"); }
  char* left_name() override { return CORBA::string_dup("left of bottom"); }
  char* right_name(CORBA::Long times) override;
  char* bottom_name() override { return CORBA::string_dup("bottom"); }
  char* motto() override;
  void motto(const char* text) override;

private:
  std::mutex lock;
  std::string words = "to the bottom";
};

class ExtrasServant : public POA_Interop::Extras {
public:
  ECHO_WIDE(echo_wide_code, Interop::WideCode_out)
  ECHO_RECORD(echo_far_ushort, Interop::FarUShort)
  ECHO_VARIABLE(echo_far_ulonglong, Interop::FarULongLong)
  ECHO_VARIABLE(echo_far_ulong, Interop::FarULong)
  ECHO_VARIABLE(echo_far_longlong, Interop::FarLongLong)
  char* properties(const char* before, CORBA::Long& count, CORBA::Context_ptr context) override;
};

PortableServer::Servant make_peer(PortableServer::POA_ptr poa);
