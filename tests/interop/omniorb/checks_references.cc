// Object references in every position, inheritance, callbacks, objects that are gone.
#include <condition_variable>
#include <mutex>
#include "checks.h"
#include "peer.h"

using namespace Interop;

namespace {

// The client's own object, which the server calls back.
class ListenerServant : public POA_Interop::Listener {
public:
  CORBA::Long ring(const char* message, CORBA::Long number) override {
    std::lock_guard<std::mutex> guard(lock);
    if (!strcmp(message, "refuse")) {
      Detailed e;
      e.why = "refused";
      e.code = number;
      e.shade = green;
      throw e;
    }
    heard.push_back(message);
    return 10 * number;
  }
  void hint(const char* message) override {
    std::lock_guard<std::mutex> guard(lock);
    heard.push_back(message);
    changed.notify_all();
  }
  // What it heard, as soon as there are n messages, and after 5 s in any case.
  std::vector<std::string> wait(size_t n) {
    std::unique_lock<std::mutex> guard(lock);
    changed.wait_for(guard, std::chrono::seconds(5), [&] { return heard.size() >= n; });
    return std::exchange(heard, {});
  }

private:
  std::mutex lock;
  std::condition_variable changed;
  std::vector<std::string> heard;
};

void nodes(Context& x) {
  Node_var node = x.peer->make_node("one");
  CORBA::String_var label = node->label();
  expect_text(label, "one", "label");
  expect_same(node->add(5), CORBA::Long(5), "add(5)");
  expect_same(node->add(-7), CORBA::Long(-2), "add(-7)");
  Node_var twin = node->twin();
  label = twin->label();
  expect_text(label, "one'", "the twin's label");
  StringSeq names;
  names.length(3);
  names[0] = "x";
  names[1] = "y";
  names[2] = "z";
  NodeSeq_var made = x.peer->make_nodes(names);
  expect(made->length() == 3, "make_nodes made another number of nodes");
  label = made[CORBA::ULong(2)]->label();
  expect_text(label, "z", "the last label");
  label = x.peer->label_of(made[CORBA::ULong(1)]);
  expect_text(label, "y", "label_of");
  label = x.peer->label_of(Node::_nil());
  expect_text(label, "nil", "label_of nil");
}

void echo_references(Context& x) {
  Node_var a = x.peer->make_node("a"), b = x.peer->make_node("b"), c;
  Node_var r = x.peer->echo_node(a, b.inout(), c.out());
  expect(r->_is_equivalent(a) && c->_is_equivalent(a), "the result or c is another object");
  expect(CORBA::is_nil(b), "b is not nil");
  r = x.peer->echo_node(Node::_nil(), b.inout(), c.out());
  expect(CORBA::is_nil(r) && CORBA::is_nil(c), "nil came back as an object");
  expect(!CORBA::is_nil(b), "b is nil");
  CORBA::String_var label = b->label();
  expect_text(label, "fresh", "b's label");

  CORBA::Object_var any = CORBA::Object::_duplicate(x.peer), b_any, c_any;
  CORBA::Object_var r_any = x.peer->echo_object(any, b_any.inout(), c_any.out());
  expect(r_any->_is_equivalent(any) && c_any->_is_equivalent(any) && !CORBA::is_nil(b_any), "echo_object is wrong");
  Node_var fresh = Node::_narrow(b_any);
  expect(!CORBA::is_nil(fresh), "echo_object's b is no node");

  NodeSeq some, back;
  some.length(3);
  some[0] = Node::_duplicate(a);
  some[2] = Node::_duplicate(fresh);
  back = some;
  NodeSeq_var c_seq, r_seq = x.peer->echo_node_seq(some, back, c_seq.out());
  expect(r_seq->length() == 3 && c_seq->length() == 3 && back.length() == 3, "a sequence of another length came back");
  expect(r_seq[CORBA::ULong(0)]->_is_equivalent(a) && CORBA::is_nil(r_seq[CORBA::ULong(1)]), "the result is wrong");
  expect(back[0]->_is_equivalent(fresh) && CORBA::is_nil(back[1]) && back[2]->_is_equivalent(a), "b is not reversed");

  NodePair pair, b_pair;
  pair.title = "Pair";
  pair.first = Node::_duplicate(a);
  b_pair = pair;
  NodePair_var c_pair, r_pair = x.peer->echo_node_pair(pair, b_pair, c_pair.out());
  expect_same(r_pair.in(), pair, "the pair");
  expect_same(c_pair.in(), pair, "c of the pair");
  expect(echo::text(b_pair) == "{\"pAIR\",reference,nil}" && b_pair.first->_is_equivalent(a), "b of the pair is " + echo::text(b_pair));

  NodeOrText vertex, words;
  vertex.vertex(a);
  words.words("Words");
  NodeOrText b_union(words);
  NodeOrText_var c_union, r_union = x.peer->echo_node_or_text(vertex, b_union, c_union.out());
  expect(r_union->_d() && r_union->vertex()->_is_equivalent(a) && c_union->_d(), "the union with a node is wrong");
  expect_same(b_union, [] { NodeOrText u; u.words("wORDS"); return u; }(), "b of the union");
}

void inheritance(Context& x) {
  Bottom_var bottom = x.peer->make_bottom();
  CORBA::String_var text = bottom->bottom_name();
  expect_text(text, "bottom", "bottom_name");
  text = bottom->left_name();
  expect_text(text, "left of bottom", "left_name");
  text = bottom->right_name(2);
  expect_text(text, "right right", "right_name");
  text = bottom->base_name();
  expect_text(text, "base of bottom", "base_name");
  expect_same(bottom->rank(), CORBA::Long(4), "rank");
  bottom->motto("Up");
  text = bottom->motto();
  expect_text(text, "Up", "motto");

  // through references of the bases, found again by narrowing
  Base_var base = Base::_narrow(bottom);
  text = base->base_name();
  expect_text(text, "base of bottom", "base_name by Base");
  Left_var left = Left::_narrow(base);
  Right_var right = Right::_narrow(left);
  text = right->right_name(1);
  expect_text(text, "right", "right_name by Right");
  text = x.peer->describe(left);
  expect_text(text, "base of bottom of rank 4", "describe(Left)");
  Base_var b, c, same = x.peer->echo_base(right, b.inout(), c.out());
  bottom = Bottom::_narrow(same);
  expect(!CORBA::is_nil(bottom), "a Bottom came back as something else");
  text = x.peer->describe(b);
  expect_text(text, "base of rank 1", "describe(b)");

  for (const char* id : {"IDL:Interop/Base:1.0", "IDL:Interop/Left:1.0", "IDL:Interop/Right:1.0", "IDL:Interop/Bottom:1.0", "IDL:omg.org/CORBA/Object:1.0"})
    expect(bottom->_is_a(id), std::string("a Bottom says that it is no ") + id);
  expect(!bottom->_is_a("IDL:Interop/Node:1.0") && !b->_is_a("IDL:Interop/Left:1.0"), "_is_a says yes to a wrong interface");
  for (const char* id : {"IDL:Interop/Scalars:1.0", "IDL:Interop/Names/Keywords:1.0", "IDL:Interop/Peer:1.0"})
    expect(x.peer->_is_a(id), std::string("the peer says that it is no ") + id);
  Node_var wrong = Node::_narrow(bottom);
  expect(CORBA::is_nil(wrong), "a Bottom was narrowed to a Node");
  CORBA::Boolean gone = x.peer->_non_existent();
  expect(!gone, "_non_existent says yes");
}

void callbacks(Context& x) {
  ListenerServant listener;
  PortableServer::ObjectId_var id = x.poa->activate_object(&listener);
  Listener_var ref = listener._this();
  struct Deactivate {
    Context& x;
    PortableServer::ObjectId_var& id;
    ~Deactivate() { x.poa->deactivate_object(id); }
  } at_end{x, id};
  expect_same(x.peer->ring_back(ref, "hello", 3), CORBA::Long(30), "ring_back");
  auto heard = listener.wait(3);
  expect(heard == std::vector<std::string>(3, "hello"), "the listener heard something else");
  try {
    x.peer->ring_back(ref, "refuse", 1);
    throw Failure("the listener's exception got lost");
  } catch (Detailed& e) {
    expect(!strcmp(e.why, "refused") && e.code == 0 && e.shade == green && !e.trail.length(), "the listener's exception is wrong");
  }
  x.peer->hint_back(ref, "psst");
  heard = listener.wait(1);
  expect(heard == std::vector<std::string>(1, "psst"), "the listener did not get the hint");

  // an object of the client as an argument, and back again
  auto* own = new NodeServant(x.poa, "mine");
  PortableServer::ObjectId_var own_id = x.poa->activate_object(own);
  Node_var mine = own->_this(), b, c;
  own->_remove_ref();
  CORBA::String_var label = x.peer->label_of(mine);
  expect_text(label, "mine", "label_of the client's node");
  Node_var back = x.peer->echo_node(mine, b.inout(), c.out());
  label = back->label();
  expect_text(label, "mine", "the client's node that came back");
  x.poa->deactivate_object(own_id);
}

void gone(Context& x) {
  Node_var node = x.peer->make_node("short-lived");
  node->retire();
  std::string got = raised([&] { CORBA::String_var label = node->label(); });
  expect(got.compare(0, 17, "OBJECT_NOT_EXIST ") == 0 && got.find("COMPLETED_NO") != std::string::npos, "a retired node raised " + got);
  CORBA::Boolean yes = node->_non_existent();
  expect(yes, "_non_existent of a retired node says no");
}

}  // namespace

std::vector<Check> reference_checks() {
  return {{"nodes", nodes}, {"echo_references", echo_references}, {"inheritance", inheritance}, {"callbacks", callbacks}, {"gone", gone}};
}
