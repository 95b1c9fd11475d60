#include "peer.h"
#include <map>
#include "peer_echo.h"

using namespace Interop;

// ------------------------------------------------------------- plain operations

CORBA::Long peer::ScalarsServant::divide(CORBA::Long a, CORBA::Long b, CORBA::Long& remainder) {
  if (b == 0) throw CORBA::BAD_PARAM(0, CORBA::COMPLETED_NO);
  remainder = a % b;
  return a / b;
}

CORBA::Long peer::ScalarsServant::many(CORBA::Long number, const char* word, CORBA::Double& scale, StringSeq& words,
                                       CORBA::Boolean& even, Color& shade, Point& spot) {
  echo::transform(scale);
  echo::transform(words);
  even = number % 2 == 0;
  shade = Color(number % 3);
  spot.x = number;
  spot.y = -number;
  return number + strlen(word);
}

CORBA::Long peer::ScalarsServant::constants(CORBA::UShort& max_code_value, CORBA::Short& lowest_value, CORBA::UShort& highest_value,
                                            CORBA::ULong& mask_value, CORBA::LongLong& far_away_value,
                                            CORBA::ULongLong& biggest_value, CORBA::Octet& lucky_value,
                                            CORBA::Boolean& enabled_value, CORBA::Char& letter_value,
                                            CORBA::String_out greeting_value, CORBA::Float& half_value,
                                            CORBA::Double& ratio_value, Color& favourite_value) {
  max_code_value = MAX_CODE;
  lowest_value = LOWEST;
  highest_value = HIGHEST;
  mask_value = MASK;
  far_away_value = FAR_AWAY;
  biggest_value = BIGGEST;
  lucky_value = LUCKY;
  enabled_value = ENABLED;
  letter_value = LETTER;
  greeting_value = CORBA::string_dup(GREETING);
  half_value = HALF;
  ratio_value = RATIO;
  favourite_value = FAVOURITE;
  return ANSWER;
}

char* peer::TextsServant::join(const StringSeq& parts, const char* glue) {
  std::string out;
  for (CORBA::ULong i = 0; i < parts.length(); i++) out += (i ? glue : "") + std::string(parts[i]);
  return CORBA::string_dup(out.c_str());
}

char* peer::TextsServant::repeat(const char* piece, CORBA::ULong times) {
  std::string out;
  for (CORBA::ULong i = 0; i < times; i++) out += piece;
  return CORBA::string_dup(out.c_str());
}

namespace {

// ------------------------------------------------------------------- exceptions

class FaultsServant : public virtual POA_Interop::Faults {
public:
  CORBA::Long risky(CORBA::Long choice, char*& remark, CORBA::Long& code) override {
    if (choice == 1) throw Plain();
    if (choice == 2) {
      Detailed e;
      e.why = static_cast<const char*>(remark);
      e.code = -choice;
      e.shade = blue;
      e.trail.length(3);
      for (int i = 0; i < 3; i++) e.trail[i] = i + 1;
      throw e;
    }
    echo::swap_case(remark);
    code = 7;
    return choice;
  }

  void fail_nested(const Team& group, const ByLong& selection) override { throw Nested(group, selection); }

  void raise_system(const char* kind, CORBA::ULong minor, CORBA::UShort completion) override {
    auto completed = CORBA::CompletionStatus(completion % 3);
#define RAISE(name) if (!strcmp(kind, #name)) throw CORBA::name(minor, completed);
    OMNIORB_FOR_EACH_SYS_EXCEPTION(RAISE)
#undef RAISE
    throw CORBA::BAD_PARAM(0, CORBA::COMPLETED_NO);
  }

  void raise_unlisted() override { throw 42; }
};

// ------------------------------------------------------------- attributes, oneway

class StateServant : public virtual POA_Interop::State {
  template <class F> auto with(F f) {
    std::lock_guard<std::mutex> guard(lock);
    return f();
  }

public:
  StateServant() { reset(); }
  char* server_name() override { return CORBA::string_dup("omniORB"); }
  CORBA::Long counter() override { return with([&] { return count; }); }
  void counter(CORBA::Long v) override { with([&] { count = v; }); }
  Person* owner() override { return with([&] { return new Person(who); }); }
  void owner(const Person& v) override { with([&] { who = v; }); }
  LongArray_slice* corners() override { return with([&] { return LongArray_dup(edges); }); }
  void corners(const LongArray v) override { with([&] { LongArray_copy(edges, v); }); }
  CORBA::Boolean enabled_first() override { return with([&] { return first; }); }
  void enabled_first(CORBA::Boolean v) override { with([&] { first = v; }); }
  CORBA::Boolean enabled_second() override { return with([&] { return second; }); }
  void enabled_second(CORBA::Boolean v) override { with([&] { second = v; }); }

  void reset() override {
    with([&] {
      count = 0;
      who.name = "nobody";
      who.age = 0;
      who.favourite = red;
      edges[0] = edges[1] = edges[2] = 0;
      first = second = false;
      lines.length(0);
      total = 0;
    });
  }

  void jot(const char* line) override {
    with([&] {
      lines.length(lines.length() + 1);
      lines[lines.length() - 1] = line;
    });
  }
  void count_up(const LongSeq& amounts) override {
    with([&] { for (CORBA::ULong i = 0; i < amounts.length(); i++) total += amounts[i]; });
  }
  StringSeq* take_lines() override {
    return with([&] {
      auto* taken = new StringSeq(lines);
      lines.length(0);
      return taken;
    });
  }
  CORBA::LongLong take_total() override { return with([&] { return std::exchange(total, 0); }); }

private:
  std::mutex lock;
  CORBA::Long count;
  Person who;
  LongArray edges;
  bool first, second;
  StringSeq lines;
  CORBA::LongLong total;
};

// -------------------------------------------------------------------- references

class ReferencesServant : public virtual POA_Interop::References {
public:
  explicit ReferencesServant(PortableServer::POA_ptr poa) : nodes(PortableServer::POA::_duplicate(poa)) {}

  Node_ptr echo_node(Node_ptr a, Node_ptr& b, Node_out c) override {
    bool nil = CORBA::is_nil(b);
    CORBA::release(b);
    b = nil ? NodeServant::make(nodes, "fresh") : Node::_nil();
    c = Node::_duplicate(a);
    return Node::_duplicate(a);
  }
  CORBA::Object_ptr echo_object(CORBA::Object_ptr a, CORBA::Object_ptr& b, CORBA::Object_out c) override {
    bool nil = CORBA::is_nil(b);
    CORBA::release(b);
    b = nil ? NodeServant::make(nodes, "fresh") : CORBA::Object::_nil();
    c = CORBA::Object::_duplicate(a);
    return CORBA::Object::_duplicate(a);
  }
  Base_ptr echo_base(Base_ptr a, Base_ptr& b, Base_out c) override {
    bool nil = CORBA::is_nil(b);
    CORBA::release(b);
    b = nil ? make_base() : Base::_nil();
    c = Base::_duplicate(a);
    return Base::_duplicate(a);
  }
  NodeSeq* echo_node_seq(const NodeSeq& a, NodeSeq& b, NodeSeq_out c) override {
    echo::transform(b);
    c = new NodeSeq(a);
    return new NodeSeq(a);
  }
  NodePair* echo_node_pair(const NodePair& a, NodePair& b, NodePair_out c) override {
    echo::transform(b);
    c = new NodePair(a);
    return new NodePair(a);
  }
  NodeOrText* echo_node_or_text(const NodeOrText& a, NodeOrText& b, NodeOrText_out c) override {
    echo::transform(b);
    c = new NodeOrText(a);
    return new NodeOrText(a);
  }

  Node_ptr make_node(const char* name) override { return NodeServant::make(nodes, name); }
  NodeSeq* make_nodes(const StringSeq& names) override {
    NodeSeq_var made = new NodeSeq;
    made->length(names.length());
    for (CORBA::ULong i = 0; i < names.length(); i++) made[i] = NodeServant::make(nodes, static_cast<const char*>(names[i]));
    return made._retn();
  }
  char* label_of(Node_ptr target) override {
    return CORBA::is_nil(target) ? CORBA::string_dup("nil") : target->label();
  }
  Bottom_ptr make_bottom() override {
    auto* servant = new BottomServant;
    PortableServer::ObjectId_var id = nodes->activate_object(servant);
    servant->_remove_ref();
    return servant->_this();
  }
  Base_ptr make_base() override {
    auto* servant = new BaseServant;
    PortableServer::ObjectId_var id = nodes->activate_object(servant);
    servant->_remove_ref();
    return servant->_this();
  }
  char* describe(Base_ptr target) override {
    if (CORBA::is_nil(target)) return CORBA::string_dup("nil");
    CORBA::String_var name = target->base_name();
    return CORBA::string_dup((std::string(name) + " of rank " + std::to_string(target->rank())).c_str());
  }
  CORBA::Long ring_back(Listener_ptr target, const char* message, CORBA::Long times) override {
    CORBA::Long sum = 0;
    for (CORBA::Long i = 0; i < times; i++) sum += target->ring(message, i);
    return sum;
  }
  void hint_back(Listener_ptr target, const char* message) override { target->hint(message); }

private:
  PortableServer::POA_var nodes;
};

// ------------------------------------------------------------------------- names

class KeywordsServant : public virtual POA_Interop::Names::Keywords {
public:
  CORBA::Long impl() override { return value; }
  void impl(CORBA::Long v) override { value = v; }
  ECHO_VARIABLE(echo_words, Names::Words)
#define PLUS_ONE(op) CORBA::Long op(CORBA::Long a) override { return a + 1; }
  PLUS_ONE(type) PLUS_ONE(match) PLUS_ONE(loop) PLUS_ONE(fn) PLUS_ONE(self) PLUS_ONE(crate) PLUS_ONE(super)
  PLUS_ONE(move) PLUS_ONE(async) PLUS_ONE(await) PLUS_ONE(_cxx_new) PLUS_ONE(_cxx_delete) PLUS_ONE(_cxx_class)
  PLUS_ONE(_cxx_template) PLUS_ONE(_cxx_namespace) PLUS_ONE(final) PLUS_ONE(synchronized) PLUS_ONE(package)
  PLUS_ONE(narrow) PLUS_ONE(drop) PLUS_ONE(with_timeout) PLUS_ONE(_cxx_default) PLUS_ONE(interface)

private:
  CORBA::Long value = 0;
};

class PeerServant : public virtual POA_Interop::Peer,
                    public peer::ScalarsServant,
                    public peer::TextsServant,
                    public peer::WideTextsServant,
                    public peer::StructsServant,
                    public peer::UnionsServant,
                    public peer::ArraysServant,
                    public peer::SequencesServant,
                    public peer::DecimalsServant,
                    public FaultsServant,
                    public StateServant,
                    public ReferencesServant,
                    public KeywordsServant {
public:
  explicit PeerServant(PortableServer::POA_ptr poa) : ReferencesServant(poa) {}
};

}  // namespace

// ----------------------------------------------------------- objects made on demand

Node_ptr NodeServant::make(PortableServer::POA_ptr poa, const std::string& label) {
  auto* servant = new NodeServant(poa, label);
  PortableServer::ObjectId_var id = poa->activate_object(servant);
  servant->_remove_ref();
  return servant->_this();
}

CORBA::Long NodeServant::add(CORBA::Long amount) {
  std::lock_guard<std::mutex> guard(lock);
  return sum += amount;
}

void NodeServant::retire() {
  PortableServer::ObjectId_var id = poa->servant_to_id(this);
  poa->deactivate_object(id);
}

char* BottomServant::right_name(CORBA::Long times) {
  std::string out;
  for (CORBA::Long i = 0; i < times; i++) out += i ? " right" : "right";
  return CORBA::string_dup(out.c_str());
}

char* BottomServant::motto() {
  std::lock_guard<std::mutex> guard(lock);
  return CORBA::string_dup(words.c_str());
}

void BottomServant::motto(const char* text) {
  std::lock_guard<std::mutex> guard(lock);
  words = text;
}

char* ExtrasServant::properties(const char* before, CORBA::Long& count, CORBA::Context_ptr context) {
  std::map<std::string, std::string> found;
  CORBA::NVList_var values;
  try {
    if (!CORBA::is_nil(context)) context->get_values("", 0, "*", values);
  } catch (CORBA::BAD_CONTEXT&) {   // there is none
  }
  for (CORBA::ULong i = 0; !CORBA::is_nil(values) && i < values->count(); i++) {
    CORBA::NamedValue_ptr one = values->item(i);
    const char* value = "";
    *one->value() >>= value;
    found[one->name()] = value;
  }
  std::string out = before;
  for (auto& [name, value] : found) out += name + '=' + value + ';';
  count = found.size();
  return CORBA::string_dup(out.c_str());
}

PortableServer::Servant make_peer(PortableServer::POA_ptr poa) { return new PeerServant(poa); }
