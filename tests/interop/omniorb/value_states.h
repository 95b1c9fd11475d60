// The states of values.idl's value types, and graphs of them.
#pragma once
#include <set>
#include <string>
#include "values.hh"

using namespace InteropValues;

// A state without operations, of which the ORB counts the references.
template <class State> struct Counted : public virtual State, public virtual CORBA::DefaultValueRefCountBase {};

struct LabelState : public virtual OBV_InteropValues::Label, public virtual CORBA::DefaultValueRefCountBase {
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

inline Link* link(CORBA::Long number, Link* next) {
  Link* made = new Counted<OBV_InteropValues::Link>;
  made->number(number);
  made->next(next);
  CORBA::remove_ref(next);
  return made;
}

// A circle of so many links, numbered from 1.
inline Link* ring(CORBA::Long length) {
  if (length < 1) return nullptr;
  Link* last = link(length, nullptr);
  Link* first = last;
  CORBA::add_ref(last);
  for (CORBA::Long number = length - 1; number > 0; number--) first = link(number, first);
  last->next(first);
  CORBA::remove_ref(last);
  return first;
}

// How many links there are until one comes again; 0 where there is an end.
inline CORBA::Long length_of(Link* first) {
  std::set<Link*> seen;
  for (Link* at = first; at; at = at->next())
    if (!seen.insert(at).second) return seen.size();
  return 0;
}

inline Point* point(CORBA::Long x, CORBA::Long y) {
  Point* made = new Counted<OBV_InteropValues::Point>;
  made->x(x);
  made->y(y);
  return made;
}

// At x, -x with the trail 1, 2, 3 and a tail that begins with the second of them.
inline Mark* mark(CORBA::Long x) {
  Link_var tail = link(2, link(3, nullptr));
  Link_var trail = link(1, again(tail.in()));
  Mark* made = new Counted<OBV_InteropValues::Mark>;
  made->x(x);
  made->y(-x);
  made->trail(trail);
  made->note("a mark");
  made->tail(tail);
  made->weight(0.5);
  return made;
}

// Makes the types known to the ORB.
inline void know(CORBA::ORB_ptr orb, bool marks) {
  auto known = [&](const char* id, CORBA::ValueFactoryBase* factory) {
    CORBA::ValueFactoryBase_var before = orb->register_value_factory(id, factory);
    factory->_remove_ref();
  };
  known("IDL:InteropValues/Point:1.0", new Factory<Counted<OBV_InteropValues::Point>>);
  known("IDL:InteropValues/Link:1.0", new Factory<Counted<OBV_InteropValues::Link>>);
  if (marks) known("IDL:InteropValues/Mark:1.0", new Factory<Counted<OBV_InteropValues::Mark>>);
  known("IDL:InteropValues/Spot:1.0", new Factory<Counted<OBV_InteropValues::Spot>>);
  known("IDL:InteropValues/Tree:1.0", new Factory<Counted<OBV_InteropValues::Tree>>);
  known("IDL:InteropValues/Label:1.0", new Factory<LabelState>);
  known("IDL:InteropValues/Tag:1.0", new Factory<Counted<OBV_InteropValues::Tag>>);
}
