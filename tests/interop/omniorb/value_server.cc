// value-server --ior PATH [--port P] [--seconds S] [-ORB...]
// Serves InteropValues::Values of values.idl on 127.0.0.1 (port: any) until SIGTERM, or for S
// seconds (900). Writes the reference to PATH; its plain key is `values`. Prints READY
// and the IOR. --unknown: does not know Mark, so that its values are cut to a Point.
#include <csignal>
#include <fstream>
#include <iostream>
#include "options.h"
#include "value_states.h"

class ThingServant : public POA_InteropValues::Thing, public PortableServer::RefCountServantBase {
public:
  explicit ThingServant(std::string text) : text(std::move(text)) {}
  char* describe() override { return CORBA::string_dup(("object " + text).c_str()); }

private:
  std::string text;
};

class ValuesServant : public POA_InteropValues::Values, public PortableServer::RefCountServantBase {
public:
  Point* echo_point(Point* a, Point*&, Point_out c) override {
    c = again(a);
    return again(a);
  }
  Link* echo_link(Link* a, Link*&, Link_out c) override {
    c = again(a);
    return again(a);
  }
  Tree* echo_tree(Tree* a) override { return again(a); }
  Text* echo_text(Text* a) override { return again(a); }
  Blob* echo_blob(Blob* a) override { return again(a); }
  CORBA::ValueBase* echo_base(CORBA::ValueBase* a) override { return again(a); }
  Describable_ptr echo_describable(Describable_ptr a) override { return Describable::_duplicate(a); }
  Tag* echo_tag(Tag* a) override { return again(a); }

  Link* make_ring(CORBA::Long length) override { return ring(length); }

  CORBA::Long ring_length(Link* first) override { return length_of(first); }

  CORBA::Boolean is_same(Link* a, Link* b) override { return a == b; }

  Point* make_mark(CORBA::Long x) override { return mark(x); }

  CORBA::Double measure(Point* p) override {
    if (!p) return 0;
    CORBA::Double sum = CORBA::Double(p->x()) + p->y();
    if (Mark* mark = Mark::_downcast(p)) {
      sum += mark->weight();
      for (Link* at = mark->trail(); at; at = at->next()) sum += at->number();
      for (Link* at = mark->tail(); at; at = at->next()) sum += at->number();
    }
    return sum;
  }

  char* description(Describable_ptr d) override { return CORBA::is_nil(d) ? CORBA::string_dup("nothing") : d->describe(); }

  Thing_ptr make_thing(const char* text) override {
    ThingServant* thing = new ThingServant(text);
    PortableServer::ServantBase_var held = thing;
    return thing->_this();
  }

  void refuse(Point* why) override { throw Refused(again(why)); }
};

int main(int argc, char** argv) {
  try {
    exitAfter(opt(argc, argv, "--seconds", "900"));
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, nullptr);

    CORBA::ORB_var orb = initOrb(argc, argv, {{"endPoint", "giop:tcp:127.0.0.1:" + opt(argc, argv, "--port", "")}, {"traceLevel", "0"}});
    know(orb, !flag(argc, argv, "--unknown"));
    CORBA::Object_var obj = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(obj);
    PortableServer::POAManager_var(root->the_POAManager())->activate();
    obj = orb->resolve_initial_references("omniINSPOA");
    PortableServer::POA_var ins = PortableServer::POA::_narrow(obj);
    PortableServer::POAManager_var(ins->the_POAManager())->activate();
    PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId("values");
    ins->activate_object_with_id(id, new ValuesServant);
    CORBA::Object_var values = ins->id_to_reference(id);
    CORBA::String_var ior = orb->object_to_string(values);
    std::string path = opt(argc, argv, "--ior", "values.ior");
    std::ofstream(path + ".new") << ior << '\n';
    rename((path + ".new").c_str(), path.c_str());   // whole at once for who waits for it
    std::cout << "READY " << ior << std::endl;

    int signal;
    sigwait(&stop, &signal);
    orb->shutdown(true);
    orb->destroy();
    return 0;
  } catch (CORBA::Exception& e) {
    std::cerr << "server: " << e._name() << '\n';
    return 1;
  }
}
