// The many objects of a server: --objects N more, each with a servant of its own, or with --serving default one default servant for all.
// PATH.objects gets the references to up to 1000 of them, drawn as all servers draw them.
#pragma once
#include <fstream>
#include <map>
#include <mutex>
#include <stdexcept>
#include "draws.h"

// One servant for all objects: it counts the octets that each gets.
class ForAll : public TtcpImpl {
  PortableServer::Current_var current;
  std::mutex lock;
  std::map<std::string, CORBA::ULongLong> bytes;
  std::string id() {
    PortableServer::ObjectId_var id = current->get_object_id();
    CORBA::String_var text = PortableServer::ObjectId_to_string(id);
    return std::string(text);
  }
public:
  ForAll(PortableServer::Current_ptr current, bool check)
    : TtcpImpl(check), current(PortableServer::Current::_duplicate(current)) {}
  void sendOctetSeq(const Ttcp::OctetSeq& s) override {
    std::string who = id();
    std::lock_guard<std::mutex> held(lock);
    bytes[who] += s.length();
  }
  CORBA::ULongLong sync() override {
    std::string who = id();
    std::lock_guard<std::mutex> held(lock);
    CORBA::ULongLong got = bytes[who];
    bytes.erase(who);
    return got;
  }
};

inline void activate(CORBA::ORB_ptr orb, const std::string& path, uint32_t objects, const std::string& serving, bool check) {
  if (!objects) return;
  bool all = serving == "default", own = serving == "ids";
  if (!all && !own && serving != "map") throw std::runtime_error("--serving takes map, ids or default");
  CORBA::Object_var obj = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var root = PortableServer::POA::_narrow(obj);
  CORBA::PolicyList policies;
  auto policy = [&](CORBA::Policy_ptr p) {
    policies.length(policies.length() + 1);
    policies[policies.length() - 1] = p;
  };
  if (all || own) policy(root->create_id_assignment_policy(PortableServer::USER_ID));
  if (all) {
    policy(root->create_request_processing_policy(PortableServer::USE_DEFAULT_SERVANT));
    policy(root->create_servant_retention_policy(PortableServer::NON_RETAIN));
    policy(root->create_id_uniqueness_policy(PortableServer::MULTIPLE_ID));
  }
  PortableServer::POA_var poa = root->create_POA("objects", PortableServer::POAManager::_nil(), policies);
  if (all) {
    CORBA::Object_var found = orb->resolve_initial_references("POACurrent");
    PortableServer::Current_var current = PortableServer::Current::_narrow(found);
    poa->set_servant(new ForAll(current, check));
  }
  std::vector<uint32_t> called = drawn(objects);
  auto next = called.begin();
  std::ofstream file(path + ".objects");
  for (uint32_t object = 0; object < objects; object++) {
    PortableServer::ObjectId_var id;
    if (all || own) id = PortableServer::string_to_ObjectId(std::to_string(object).c_str());
    if (own) poa->activate_object_with_id(id, new TtcpImpl(check));
    else if (!all) id = poa->activate_object(new TtcpImpl(check));
    if (next == called.end() || *next != object) continue;
    next++;
    CORBA::Object_var ref = all ? poa->create_reference_with_id(id, "IDL:Ttcp:1.0") : poa->id_to_reference(id);
    CORBA::String_var ior = orb->object_to_string(ref);
    file << ior << '\n';
  }
  if (!file.flush()) throw std::runtime_error("cannot write the references");
  PortableServer::POAManager_var(poa->the_POAManager())->activate();
}
