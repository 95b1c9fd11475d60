// --ior PATH [--seconds S]: what the interface repository whose reference is in PATH says of all that is in it, by omniORB's stubs of CORBA 2.3.
// --object PATH [--seconds S]: what the object says of its interface, and a call that is made by that alone.
// Numbers are those of CORBA::TCKind and CORBA::DefinitionKind. Status 0: all was shown, which ends with SHOWN.
// omniORB has the stubs of an interface repository for those who ask for them.
#define ENABLE_CLIENT_IR_SUPPORT
#include <fstream>
#include <iostream>
#include <omniORB4/CORBA.h>
#include "options.h"

using std::cout;

static void ids(const char* what, const CORBA::RepositoryIdSeq& all) {
  for (CORBA::ULong i = 0; i < all.length(); i++) cout << what << all[i];
}

static void operation(const CORBA::OperationDescription& one) {
  cout << ' ' << one.result->kind() << (one.mode == CORBA::OP_ONEWAY ? " oneway (" : " (");
  for (CORBA::ULong i = 0; i < one.parameters.length(); i++)
    cout << ' ' << one.parameters[i].mode << ' ' << one.parameters[i].name << ' ' << one.parameters[i].type->kind();
  cout << " ) raises";
  for (CORBA::ULong i = 0; i < one.exceptions.length(); i++) cout << ' ' << one.exceptions[i].id;
  for (CORBA::ULong i = 0; i < one.contexts.length(); i++) cout << " context " << one.contexts[i];
}

// A struct in an any is taken out only if its type is omniORB's own.
static bool details(CORBA::Contained_ptr contained, CORBA::DefinitionKind kind, const CORBA::Any& value) {
  switch (kind) {
  case CORBA::dk_Module: {
    const CORBA::ModuleDescription* d;
    return value >>= d;
  }
  case CORBA::dk_Constant: {
    const CORBA::ConstantDescription* d;
    if (!(value >>= d)) return false;
    CORBA::TypeCode_var type = d->value.type();
    cout << ' ' << d->type->kind() << ' ' << type->kind();
    return type->equivalent(d->type);
  }
  case CORBA::dk_Interface:
  case CORBA::dk_AbstractInterface: {
    const CORBA::InterfaceDescription* d;
    if (!(value >>= d)) return false;
    ids(" base ", d->base_interfaces);
    return true;
  }
  case CORBA::dk_Operation: {
    const CORBA::OperationDescription* d;
    if (!(value >>= d)) return false;
    operation(*d);
    return true;
  }
  case CORBA::dk_Attribute: {
    const CORBA::AttributeDescription* d;
    if (!(value >>= d)) return false;
    cout << ' ' << d->mode << ' ' << d->type->kind();
    return true;
  }
  case CORBA::dk_Exception: {
    const CORBA::ExceptionDescription* d;
    if (!(value >>= d)) return false;
    cout << ' ' << d->type->member_count();
    return true;
  }
  case CORBA::dk_ValueMember: {
    const CORBA::ValueMember* d;
    if (!(value >>= d)) return false;
    cout << ' ' << d->access << ' ' << d->type->kind();
    return true;
  }
  case CORBA::dk_Value: {
    const CORBA::ValueDescription* d;
    if (!(value >>= d)) return false;
    cout << (d->is_abstract ? " abstract" : "") << (d->is_custom ? " custom" : "") << (d->is_truncatable ? " truncatable" : "");
    if (*d->base_value) cout << " base " << d->base_value;
    ids(" abstract base ", d->abstract_base_values);
    ids(" supports ", d->supported_interfaces);
    CORBA::ValueDef_var definition = CORBA::ValueDef::_narrow(contained);
    CORBA::ValueDef::FullValueDescription_var full = definition->describe_value();
    cout << " operations " << full->operations.length() << " attributes " << full->attributes.length() << " members " << full->members.length();
    for (CORBA::ULong i = 0; i < full->initializers.length(); i++) {
      cout << " factory " << full->initializers[i].name << " (";
      for (CORBA::ULong j = 0; j < full->initializers[i].members.length(); j++)
        cout << ' ' << full->initializers[i].members[j].name << ' ' << full->initializers[i].members[j].type->kind();
      cout << " )";
    }
    return full->type->kind() == CORBA::tk_value && !strcmp(CORBA::String_var(definition->id()), full->id);
  }
  default: {
    const CORBA::TypeDescription* d;
    if (!(value >>= d)) return false;
    CORBA::TypeCode_ptr type = d->type;
    cout << ' ' << type->kind();
    switch (type->kind()) {
    case CORBA::tk_struct:
    case CORBA::tk_union:
    case CORBA::tk_enum:
      for (CORBA::ULong i = 0; i < type->member_count(); i++) cout << ' ' << type->member_name(i);
      break;
    case CORBA::tk_alias: {
      CORBA::TypeCode_var content = type->content_type();
      cout << ' ' << content->kind();
      break;
    }
    default: break;
    }
    return !strcmp(type->id(), d->id);
  }
  }
}

static bool show(CORBA::Container_ptr container, int depth) {
  bool good = true;
  CORBA::ContainedSeq_var all = container->contents(CORBA::dk_all, true);
  for (CORBA::ULong i = 0; i < all->length(); i++) {
    CORBA::Contained_ptr one = all[i];
    CORBA::String_var id = one->id(), version = one->version();
    cout << std::string(2 * depth, ' ') << id << ' ' << version;
    try {
      CORBA::Contained::Description_var described = one->describe();
      cout << " kind " << described->kind;
      bool known = described->kind == one->def_kind() && details(one, described->kind, described->value);
      if (!known) cout << " NOT AS IT SHOULD BE";
      good = good && known;
    } catch (CORBA::MARSHAL&) {
      // Local interfaces are of a kind that CORBA 2.3 has not, and omniORB reads no type codes of native types.
      cout << " UNKNOWN";
    }
    cout << '\n';
    CORBA::Container_var inner = CORBA::Container::_narrow(one);
    if (!CORBA::is_nil(inner)) good = show(inner, depth + 1) && good;
  }
  return good;
}

static void call(CORBA::Object_ptr object) {
  CORBA::InterfaceDef_var definition = object->_get_interface();
  CORBA::InterfaceDef::FullInterfaceDescription_var full = definition->describe_interface();
  cout << "interface " << full->id << " of " << full->defined_in << ", " << full->version << ", " << full->type->kind() << '\n';
  cout << "bases";
  ids(" ", full->base_interfaces);
  cout << '\n';
  for (CORBA::ULong i = 0; i < full->attributes.length(); i++)
    cout << "attribute " << full->attributes[i].id << ' ' << full->attributes[i].mode << ' ' << full->attributes[i].type->kind() << '\n';
  for (CORBA::ULong i = 0; i < full->operations.length(); i++) {
    const CORBA::OperationDescription& one = full->operations[i];
    cout << "operation " << one.id;
    operation(one);
    cout << '\n';
    // What gives a double for a double is called.
    if (one.parameters.length() != 1 || one.result->kind() != CORBA::tk_double) continue;
    CORBA::Request_var request = object->_request(one.name);
    request->add_in_arg(one.parameters[0].name) <<= CORBA::Double(2.5);
    request->set_return_type(one.result);
    request->invoke();
    CORBA::Double result = 0;
    if (request->env()->exception() || !(request->return_value() >>= result)) throw CORBA::UNKNOWN();
    cout << one.name << " gives " << result << '\n';
  }
}

int main(int argc, char** argv) {
  try {
    exitAfter(opt(argc, argv, "--seconds", "60"));
    CORBA::ORB_var orb = initOrb(argc, argv, {{"nativeCharCodeSet", "UTF-8"}, {"traceLevel", "0"}});
    std::string repository = opt(argc, argv, "--ior", ""), object = opt(argc, argv, "--object", ""), ior;
    std::ifstream(repository.empty() ? object : repository) >> ior;
    CORBA::Object_var obj = orb->string_to_object(ior.c_str());
    bool good = true;
    if (repository.empty()) {
      call(obj);
    } else {
      CORBA::Repository_var all = CORBA::Repository::_narrow(obj);
      good = show(all, 0);
    }
    orb->destroy();
    if (good) cout << "SHOWN\n";
    return good ? 0 : 1;
  } catch (CORBA::Exception& e) {
    cout.flush();
    std::cerr << "ir-browser: " << e._name() << '\n';
    return 2;
  }
}
