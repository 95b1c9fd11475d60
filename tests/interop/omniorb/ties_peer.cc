// server --ior PATH [--port P] [--seconds S] [-ORB...]: serves ties.idl until SIGTERM: a Tower that calls back over the
// connections that its clients opened (PATH) and a Lasting (PATH.lasting), both of a persistent POA, and under the plain
// keys `tower` and `lasting`. Prints READY, and STAYS for each call that stays.
// client --tower REF --lasting REF,.. [--seconds S] [-ORB...]: has a Bell that is called back over its connection. Prints
// READY, then does what the lines of its input say, each in a thread of its own, and prints `LINE = RESULT`:
//   ring N, pass N, hint N   by the tower, of the own bell; pass: N octets, the result is how many came back as they were
//   speak                    has the tower talk to the own bell
//   keep, kept N             has the tower keep the bell, and ring the one that it keeps
//   next I N, stay I         the I-th Lasting
//   end                      closes the connections in order
#include <atomic>
#include <csignal>
#include <fstream>
#include <iostream>
#include <mutex>
#include <sstream>
#include <thread>
#include <omniORB4/CORBA.h>
#include "options.h"
#include "ties.hh"

using namespace InteropTies;

static std::mutex output;

static void print(const std::string& line) {
  std::lock_guard<std::mutex> lock(output);
  std::cout << line << std::endl;
}

static std::string raised(CORBA::SystemException& e) {
  static const char* const completions[] = {"YES", "NO", "MAYBE"};
  return std::string(e._name()) + " COMPLETED_" + completions[e.completed()];
}

[[noreturn]] static void stay() {
  print("STAYS");
  for (;;) pause();
}

class BellServant : public POA_InteropTies::Bell, public PortableServer::RefCountServantBase {
public:
  CORBA::Long ring(CORBA::Long number) override {
    if (number < 0) stay();
    return 10 * number;
  }
  Octets* echo(const Octets& data) override { return new Octets(data); }
  void hint(CORBA::Long number) override { sum += number; }
  CORBA::Long hinted() override { return sum.exchange(0); }
  void speak(char*& text, CORBA::WChar*& wide) override {
    std::string other = text + std::string("!");
    CORBA::string_free(text);
    text = CORBA::string_dup(other.c_str());
    std::wstring wider = wide + std::wstring(L"!");
    CORBA::wstring_free(wide);
    wide = CORBA::wstring_dup(wider.c_str());
  }

private:
  std::atomic<CORBA::Long> sum{0};
};

class TowerServant : public POA_InteropTies::Tower, public PortableServer::RefCountServantBase {
public:
  CORBA::Long ring(Bell_ptr target, CORBA::Long times) override {
    CORBA::Long sum = 0;
    for (CORBA::Long i = 0; i < times; i++) sum += target->ring(i);
    return sum;
  }
  Octets* pass(Bell_ptr target, const Octets& data) override { return target->echo(data); }
  CORBA::Long hint(Bell_ptr target, CORBA::Long times) override {
    for (CORBA::Long i = 0; i < times; i++) target->hint(1);
    // Oneways may be overtaken.
    CORBA::Long sum = 0;
    while (sum < times) sum += target->hinted();
    return sum;
  }
  CORBA::Boolean speak(Bell_ptr target) override {
    CORBA::String_var text = CORBA::string_dup(u8"Gr\u00fc\u00df dich \u20ac");
    CORBA::WString_var wide = CORBA::wstring_dup(L"Gr\u00fc\u00df dich \u20ac");
    target->speak(text.inout(), wide.inout());
    return !strcmp(text, u8"Gr\u00fc\u00df dich \u20ac!") && std::wstring(wide.in()) == L"Gr\u00fc\u00df dich \u20ac!";
  }
  void keep(Bell_ptr target) override {
    std::lock_guard<std::mutex> lock(mutex);
    kept = Bell::_duplicate(target);
  }
  char* ring_kept(CORBA::Long number) override {
    Bell_var target;
    {
      std::lock_guard<std::mutex> lock(mutex);
      target = Bell::_duplicate(kept);
    }
    std::string text;
    try {
      text = std::to_string(target->ring(number));
    } catch (CORBA::SystemException& e) {
      text = raised(e);
    }
    return CORBA::string_dup(text.c_str());
  }

private:
  std::mutex mutex;
  Bell_var kept;
};

class LastingServant : public POA_InteropTies::Lasting, public PortableServer::RefCountServantBase {
public:
  CORBA::Long next(CORBA::Long number) override { return number + 1; }
  void stay() override { ::stay(); }
};

static PortableServer::POA_ptr make_poa(CORBA::ORB_ptr orb, PortableServer::POA_ptr root, bool lasting) {
  PortableServer::POAManager_var manager = root->the_POAManager();
  CORBA::Any both;
  both <<= BiDirPolicy::BOTH;
  CORBA::PolicyList policies;
  policies.length(lasting ? 3 : 1);
  policies[0] = orb->create_policy(BiDirPolicy::BIDIRECTIONAL_POLICY_TYPE, both);
  if (lasting) {
    policies[1] = root->create_lifespan_policy(PortableServer::PERSISTENT);
    policies[2] = root->create_id_assignment_policy(PortableServer::USER_ID);
  }
  manager->activate();
  return root->create_POA("ties", manager, policies);
}

static void serve(CORBA::ORB_ptr orb, PortableServer::POA_ptr poa, const std::string& path) {
  CORBA::Object_var obj = orb->resolve_initial_references("omniINSPOA");
  PortableServer::POA_var ins = PortableServer::POA::_narrow(obj);
  PortableServer::POAManager_var(ins->the_POAManager())->activate();
  std::string ior;
  auto publish = [&](const char* name, PortableServer::Servant servant, const std::string& file) {
    PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId(name);
    poa->activate_object_with_id(id, servant);
    ins->activate_object_with_id(id, servant);
    obj = poa->id_to_reference(id);
    ior = CORBA::String_var(orb->object_to_string(obj)).in();
    std::ofstream(file + ".new") << ior << '\n';
    rename((file + ".new").c_str(), file.c_str());
  };
  publish("lasting", new LastingServant, path + ".lasting");
  publish("tower", new TowerServant, path);
  print("READY " + ior);
}

// What the client's lines are about.
struct Ties {
  Tower_var tower;
  Bell_var bell;
  std::vector<Lasting_var> lasting;

  std::string done(const std::string& line) {
    std::istringstream words(line);
    std::string what;
    CORBA::Long a = 0, b = 0;
    words >> what >> a >> b;
    try {
      if (what == "ring") return std::to_string(tower->ring(bell, a));
      if (what == "hint") return std::to_string(tower->hint(bell, a));
      if (what == "pass") {
        Octets sent;
        sent.length(a);
        for (CORBA::Long i = 0; i < a; i++) sent[i] = CORBA::Octet(i * 7);
        Octets_var back = tower->pass(bell, sent);
        bool same = CORBA::Long(back->length()) == a && !memcmp(back->get_buffer(), sent.get_buffer(), a);
        return same ? std::to_string(a) : "others";
      }
      if (what == "speak") return tower->speak(bell) ? "understood" : "others";
      if (what == "keep") return tower->keep(bell), "kept";
      if (what == "kept") return CORBA::String_var(tower->ring_kept(a)).in();
      if (what == "next") return std::to_string(lasting.at(a)->next(b));
      if (what == "stay") return lasting.at(a)->stay(), "left";
      return "no such line";
    } catch (CORBA::SystemException& e) {
      return raised(e);
    }
  }
};

int main(int argc, char** argv) {
  try {
    exitAfter(opt(argc, argv, "--seconds", "300"));
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &stop, nullptr);
    CORBA::ORB_var orb = initOrb(argc, argv, {{"endPoint", "giop:tcp:127.0.0.1:" + opt(argc, argv, "--port", "")},
                                              {"nativeCharCodeSet", "UTF-8"},
                                              {"acceptBiDirectionalGIOP", "1"},
                                              {"offerBiDirectionalGIOP", "1"},
                                              {"serverTransportRule", "* unix,tcp,bidir"},
                                              {"clientTransportRule", "* unix,tcp,bidir"},
                                              {"traceLevel", "0"}});
    bool client = argc > 1 && !strcmp(argv[1], "client");
    CORBA::Object_var obj = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(obj);
    PortableServer::POA_var poa = make_poa(orb, root, !client);
    if (!client) {
      serve(orb, poa, opt(argc, argv, "--ior", "ties.ior"));
      int signal;
      sigwait(&stop, &signal);
      orb->shutdown(true);
      orb->destroy();
      return 0;
    }
    Ties ties;
    PortableServer::ObjectId_var id = poa->activate_object(new BellServant);
    obj = poa->id_to_reference(id);
    ties.bell = Bell::_narrow(obj);
    auto object = [&](const std::string& reference) { return orb->string_to_object(reference.c_str()); };
    std::string reference = opt(argc, argv, "--tower", "");
    if (!reference.empty()) {
      obj = object(reference);
      ties.tower = Tower::_unchecked_narrow(obj);
    }
    std::istringstream references(opt(argc, argv, "--lasting", ""));
    while (std::getline(references, reference, ',')) {
      obj = object(reference);
      ties.lasting.push_back(Lasting::_unchecked_narrow(obj));
    }
    print("READY");
    std::string line;
    while (std::getline(std::cin, line) && line != "end")
      std::thread([&ties, line] { print(line + " = " + ties.done(line)); }).detach();
    orb->destroy();
    print("end = ended");
    _exit(0);
  } catch (CORBA::Exception& e) {
    std::cerr << "ties-peer: " << e._name() << '\n';
    return 2;
  }
}
