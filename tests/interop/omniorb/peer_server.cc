// server --ior PATH [--port P] [--chars UTF-8|ISO-8859-1] [--giop 1.0|1.1|1.2] [--seconds S] [-ORB...]
// Serves types.idl and extras.idl on 127.0.0.1 (port: any) until SIGTERM, or for S
// seconds (900). Writes the references to PATH, PATH.extras, PATH.forward and PATH.moved; plain
// keys: corbaloc::127.0.0.1:P/interop, /extras, /forward and /moved. Prints READY and the IOR.
// --giop: the version published in the IOR.
#include <csignal>
#include <fstream>
#include <iostream>
#include <thread>
#include <unistd.h>
#include "options.h"
#include "peer.h"
// Links the transport by TLS: -ORBendPoint giop:ssl:HOST:PORT, -ORBsslCAFile and others.
#include <omniORB4/sslContext.h>

// Every request to it is answered by LOCATION_FORWARD to the object given, or by LOCATION_FORWARD_PERM.
class ForwardServant : public PortableServer::ServantBase {
public:
  ForwardServant(CORBA::Object_ptr target, bool permanent) : target(CORBA::Object::_duplicate(target)), permanent(permanent) {}

private:
  _CORBA_Boolean _dispatch(omniCallHandle&) override { throw omniORB::LOCATION_FORWARD(CORBA::Object::_duplicate(target), permanent); }
  void* _ptrToInterface(const char*) override { return nullptr; }
  const char* _mostDerivedRepoId() override { return "IDL:Interop/Peer:1.0"; }
  CORBA::Object_var target;
  bool permanent;
};

static CORBA::Object_ptr publish(CORBA::ORB_ptr orb, PortableServer::POA_ptr poa, const char* key,
                                 PortableServer::Servant servant, const std::string& path) {
  PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId(key);
  poa->activate_object_with_id(id, servant);
  CORBA::Object_ptr ref = poa->id_to_reference(id);
  CORBA::String_var ior = orb->object_to_string(ref);
  std::ofstream(path + ".new") << ior << '\n';
  rename((path + ".new").c_str(), path.c_str());   // whole at once for who waits for it
  return ref;
}

int main(int argc, char** argv) {
  try {
    exitAfter(opt(argc, argv, "--seconds", "900"));
    sigset_t stop;                       // the ORB's threads inherit that it is blocked
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, nullptr);

    CORBA::ORB_var orb = initOrb(argc, argv, {{"endPoint", "giop:tcp:127.0.0.1:" + opt(argc, argv, "--port", "")},
                                              {"nativeCharCodeSet", opt(argc, argv, "--chars", "UTF-8")},
                                              {"maxGIOPVersion", opt(argc, argv, "--giop", "1.2")},
                                              {"maxServerThreadPerConnection", "1"},
                                              {"giopMaxMsgSize", "67108864"},
                                              {"traceLevel", "0"}});
    std::string path = opt(argc, argv, "--ior", "interop.ior");
    CORBA::Object_var obj = orb->resolve_initial_references("omniINSPOA");
    PortableServer::POA_var ins = PortableServer::POA::_narrow(obj);
    obj = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(obj);
    PortableServer::POAManager_var(ins->the_POAManager())->activate();
    PortableServer::POAManager_var(root->the_POAManager())->activate();
    CORBA::Object_var extras = publish(orb, ins, "extras", new ExtrasServant, path + ".extras");
    auto* peer = make_peer(root);
    PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId("interop");
    CORBA::Object_var target = ins->create_reference_with_id(id, "IDL:Interop/Peer:1.0");
    CORBA::Object_var forward = publish(orb, ins, "forward", new ForwardServant(target, false), path + ".forward");
    CORBA::Object_var moved = publish(orb, ins, "moved", new ForwardServant(target, true), path + ".moved");
    CORBA::Object_var interop = publish(orb, ins, "interop", peer, path);
    CORBA::String_var ior = orb->object_to_string(interop);
    std::cout << "READY " << ior << std::endl;

    int signal;
    sigwait(&stop, &signal);
    orb->shutdown(true);                 // closes its connections in order
    orb->destroy();
    return 0;
  } catch (CORBA::Exception& e) {
    std::cerr << "server: " << e._name() << '\n';
    return 1;
  }
}
