// value-server --ior PATH [--port P] [--seconds S] [-ORB...]
// Serves Interop::Values of values.idl on 127.0.0.1 (port: any) until SIGTERM, or for S
// seconds (900). Writes the reference to PATH; its plain key is `values`. Prints READY
// and the IOR. --unknown: does not know Mark, so that its values are cut to a Point.
#include <csignal>
#include <fstream>
#include <iostream>
#include <set>
#include "options.h"
#include "values.hh"

using namespace Interop;

// A state without operations, of which the ORB counts the references.
template <class State> struct Counted : public virtual State, public virtual CORBA::DefaultValueRefCountBase {};

struct LabelState : public virtual OBV_Interop::Label, public virtual CORBA::DefaultValueRefCountBase {
  char* describe() override {
    std::string said = std::string("value ") + text();
    return CORBA::string_dup(said.c_str());
  }
};

template <class State> struct Factory : public CORBA::ValueFactoryBase {
  CORBA::ValueBase* create_for_unmarshal() override { return new State; }
};

// The same value once more, for who is given it.
template <class V> V* again(V* value) {
  CORBA::add_ref(value);
  return value;
}

static Link* link(CORBA::Long number, Link* next) {
  Link* made = new Counted<OBV_Interop::Link>;
  made->number(number);
  made->next(next);
  CORBA::remove_ref(next);
  return made;
}

class ThingServant : public POA_Interop::Thing, public PortableServer::RefCountServantBase {
public:
  explicit ThingServant(std::string text) : text(std::move(text)) {}
  char* describe() override { return CORBA::string_dup(("object " + text).c_str()); }

private:
  std::string text;
};

class ValuesServant : public POA_Interop::Values, public PortableServer::RefCountServantBase {
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

  Link* make_ring(CORBA::Long length) override {
    if (length < 1) return nullptr;
    Link* last = link(length, nullptr);
    Link* first = last;
    CORBA::add_ref(last);
    for (CORBA::Long number = length - 1; number > 0; number--) first = link(number, first);
    last->next(first);
    CORBA::remove_ref(last);
    return first;
  }

  CORBA::Long ring_length(Link* first) override {
    std::set<Link*> seen;
    for (Link* at = first; at; at = at->next())
      if (!seen.insert(at).second) return seen.size();
    return 0;
  }

  CORBA::Boolean is_same(Link* a, Link* b) override { return a == b; }

  Point* make_mark(CORBA::Long x) override {
    Link_var tail = link(2, link(3, nullptr));
    Link_var trail = link(1, again(tail.in()));
    Mark* mark = new Counted<OBV_Interop::Mark>;
    mark->x(x);
    mark->y(-x);
    mark->trail(trail);
    mark->note("a mark");
    mark->tail(tail);
    mark->weight(0.5);
    return mark;
  }

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
    auto known = [&](const char* id, CORBA::ValueFactoryBase* factory) {
      CORBA::ValueFactoryBase_var before = orb->register_value_factory(id, factory);
      factory->_remove_ref();
    };
    known("IDL:Interop/Point:1.0", new Factory<Counted<OBV_Interop::Point>>);
    known("IDL:Interop/Link:1.0", new Factory<Counted<OBV_Interop::Link>>);
    if (!flag(argc, argv, "--unknown")) known("IDL:Interop/Mark:1.0", new Factory<Counted<OBV_Interop::Mark>>);
    known("IDL:Interop/Spot:1.0", new Factory<Counted<OBV_Interop::Spot>>);
    known("IDL:Interop/Tree:1.0", new Factory<Counted<OBV_Interop::Tree>>);
    known("IDL:Interop/Label:1.0", new Factory<LabelState>);

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
