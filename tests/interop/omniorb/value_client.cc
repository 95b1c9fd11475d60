// value-client --ior PATH [--cut] [--seconds S] [-ORB...]
// Calls InteropValues::Values of values.idl, and prints `ok NAME` or `FAIL NAME: why` for each
// check. --cut: the server knows no Mark, so that it takes one for a Point. Status 0:
// nothing failed, 1: something failed, 2: could not start.
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include "options.h"
#include "value_states.h"

static int failed = 0;

#define WANT(what) do { if (!(what)) throw std::string(#what); } while (0)

static void check(const char* name, const std::function<void()>& body) {
  std::string why;
  try {
    body();
  } catch (std::string& unwanted) {
    why = unwanted;
  } catch (CORBA::SystemException& e) {
    why = std::string(e._name()) + " minor " + std::to_string(e.minor());
  } catch (CORBA::Exception& e) {
    why = e._name();
  }
  if (why.empty()) {
    std::cout << "ok " << name << std::endl;
  } else {
    failed++;
    std::cout << "FAIL " << name << ": " << why << std::endl;
  }
}

static void echoes(Values_ptr values) {
  check("null", [&] {
    Point_var b = point(1, 2), c, result;
    Point* sent = b._retn();
    result = values->echo_point(nullptr, sent, c);
    b = sent;
    WANT(!result.in() && !c.in() && b->x() == 1 && b->y() == 2);
  });
  check("point", [&] {
    Point_var a = point(3, 4), c, result;
    Point* b = nullptr;
    result = values->echo_point(a, b, c);
    WANT(result.in() && result.in() == c.in() && !b && result->x() == 3 && result->y() == 4);
  });
  check("spot", [&] {
    Point_var a = new Counted<OBV_InteropValues::Spot>, c, result;
    Spot::_downcast(a)->x(5);
    Spot::_downcast(a)->depth(-7);
    Point* b = nullptr;
    result = values->echo_point(a, b, c);
    Spot* spot = Spot::_downcast(result);
    WANT(spot && spot->x() == 5 && spot->depth() == -7 && result.in() == c.in());
  });
  check("links", [&] {
    Link_var a = link(1, link(2, nullptr)), c, result;
    Link* b = again(a.in());
    result = values->echo_link(a, b, c);
    WANT(result->next()->number() == 2 && !result->next()->next() && result.in() == c.in() && result.in() == b);
    CORBA::remove_ref(b);
  });
  check("rings", [&] {
    for (CORBA::Long length : {1, 2, 100}) {
      Link_var a = ring(length), c, result;
      Link* b = nullptr;
      WANT(values->ring_length(a) == length);
      result = values->make_ring(length);
      WANT(length_of(result) == length && result->number() == 1);
      result = values->echo_link(a, b, c);
      WANT(length_of(result) == length);
    }
    Link_var chain = link(1, link(2, nullptr));
    WANT(values->ring_length(chain) == 0);
  });
  check("identity", [&] {
    Link_var a = link(1, link(2, nullptr)), b = link(1, link(2, nullptr));
    WANT(values->is_same(a, a) && !values->is_same(a, b) && values->is_same(a->next(), a->next()) && !values->is_same(a, a->next()));
  });
  check("tree", [&] {
    Tree_var leaf = new Counted<OBV_InteropValues::Tree>, root = new Counted<OBV_InteropValues::Tree>, result;
    leaf->label("leaf");
    root->label("root");
    Trees& kids = root->kids();
    kids.length(4);
    kids[0] = again(leaf.in());
    kids[2] = again(root.in());
    kids[3] = again(leaf.in());
    PairList& pairs = root->pairs();
    pairs.length(1);
    pairs[0].left = again(leaf.in());
    pairs[0].between = 'x';
    pairs[0].right = point(8, 9);
    result = values->echo_tree(root);
    WANT(!strcmp(result->label(), "root") && result->kids().length() == 4);
    WANT(result->kids()[0] == result->kids()[3] && result->kids()[2] == result.in() && !result->kids()[1]);
    WANT(!strcmp(result->kids()[0]->label(), "leaf"));
    WANT(result->pairs()[0].left.in() == result->kids()[0] && result->pairs()[0].between == 'x' && result->pairs()[0].right->y() == 9);
  });
  check("boxes", [&] {
    Text_var text = new Text("hello"), back = values->echo_text(text);
    WANT(!strcmp(back->_value(), "hello"));
    back = values->echo_text(nullptr);
    WANT(!back.in());
    Blob_var blob = new Blob;
    blob->_value().length(100000);
    for (CORBA::ULong i = 0; i < 100000; i++) blob->_value()[i] = i % 251;
    Blob_var same = values->echo_blob(blob);
    WANT(same->_value().length() == 100000 && same->_value()[99999] == 99999 % 251);
  });
  check("base", [&] {
    CORBA::ValueBase_var sent = point(6, 7);
    CORBA::ValueBase_var result = values->echo_base(sent);
    Point* got = Point::_downcast(result);
    WANT(got && got->x() == 6);
  });
  check("refused", [&] {
    Point_var why = point(1, 2);
    try {
      values->refuse(why);
      WANT(!"raised");
    } catch (Refused& refused) {
      WANT(refused.why->x() == 1 && refused.why->y() == 2);
    }
  });
}

// Objects and values where either may come.
static void described(Values_ptr values) {
  check("description", [&] {
    Thing_var thing = values->make_thing("far");
    CORBA::String_var said = values->description(thing);
    WANT(!strcmp(said, "object far"));
    LabelState* label = new LabelState;
    label->text("near");
    said = values->description(label);
    WANT(!strcmp(said, "value near"));
    said = values->description(Describable::_nil());
    WANT(!strcmp(said, "nothing"));
    CORBA::remove_ref(label);
  });
  check("describable", [&] {
    Thing_var thing = values->make_thing("far");
    Describable_var back = values->echo_describable(thing);
    CORBA::Object_var object = back->_to_object();
    CORBA::String_var said = back->describe();
    WANT(!CORBA::is_nil(object) && thing->_is_equivalent(object) && !strcmp(said, "object far"));
    LabelState* label = new LabelState;
    label->text("near");
    back = values->echo_describable(label);
    CORBA::remove_ref(label);
    CORBA::ValueBase_var value = back->_to_value();
    said = back->describe();
    WANT(Label::_downcast(value) && !strcmp(said, "value near"));
    back = values->echo_describable(Describable::_nil());
    WANT(CORBA::is_nil(back));
  });
  check("tag", [&] {
    Thing_var thing = values->make_thing("far");
    LabelState* label = new LabelState;
    label->text("near");
    Tag_var tag = new Counted<OBV_InteropValues::Tag>;
    tag->what(label);
    tag->more().length(4);
    tag->more()[0] = Describable::_duplicate(thing);
    tag->more()[2] = Describable::_duplicate(label);
    tag->more()[3] = Describable::_duplicate(thing);
    tag->note("behind");
    Tag_var back = values->echo_tag(tag);
    CORBA::remove_ref(label);
    CORBA::String_var far = back->more()[3]->describe(), near = back->more()[2]->describe();
    WANT(back->more().length() == 4 && !strcmp(back->note(), "behind") && CORBA::is_nil(back->more()[1]));
    WANT(!strcmp(far, "object far") && !strcmp(near, "value near"));
    CORBA::ValueBase_var one = back->what()->_to_value(), two = back->more()[2]->_to_value();
    WANT(one.in() && one.in() == two.in());
  });
}

static void marks(Values_ptr values, bool cut) {
  check("measure", [&] {
    Mark_var sent = mark(3);
    WANT(values->measure(sent) == (cut ? 0.0 : 11.5));
  });
  check("mark", [&] {
    Mark_var sent = mark(4);
    Point_var c, result;
    Point* b = point(1, 2);
    result = values->echo_point(sent, b, c);
    Mark* got = Mark::_downcast(result);
    WANT(b && b->y() == 2 && result->x() == 4 && result.in() == c.in() && !got == cut);
    WANT(cut || (got->trail()->next() == got->tail() && !strcmp(got->note(), "a mark")));
    CORBA::remove_ref(b);
  });
  check("made", [&] {
    Point_var made = values->make_mark(9);
    Mark* got = Mark::_downcast(made);
    WANT(got && got->y() == -9 && got->weight() == 0.5 && got->trail()->next() == got->tail() && got->tail()->next()->number() == 3);
  });
}

int main(int argc, char** argv) {
  try {
    exitAfter(opt(argc, argv, "--seconds", "300"));
    CORBA::ORB_var orb = initOrb(argc, argv, {{"traceLevel", "0"}});
    know(orb, true);
    std::ifstream file(opt(argc, argv, "--ior", "values.ior"));
    std::string ior;
    file >> ior;
    CORBA::Object_var obj = orb->string_to_object(ior.c_str());
    Values_var values = Values::_narrow(obj);
    bool cut = flag(argc, argv, "--cut");
    if (!cut) echoes(values);
    if (!cut) described(values);
    marks(values, cut);
    orb->destroy();
    return failed ? 1 : 0;
  } catch (CORBA::Exception& e) {
    std::cerr << "client: " << e._name() << '\n';
    return 2;
  }
}
