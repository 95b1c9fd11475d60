import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.omg.CORBA.ORB;
import org.omg.CosNaming.Binding;
import org.omg.CosNaming.BindingHolder;
import org.omg.CosNaming.BindingIteratorHolder;
import org.omg.CosNaming.BindingListHolder;
import org.omg.CosNaming.BindingType;
import org.omg.CosNaming.NameComponent;
import org.omg.CosNaming.NamingContextExt;
import org.omg.CosNaming.NamingContextExtHelper;
import org.omg.CosNaming.NamingContextPackage.AlreadyBound;
import org.omg.CosNaming.NamingContextPackage.InvalidName;
import org.omg.CosNaming.NamingContextPackage.NotEmpty;
import org.omg.CosNaming.NamingContextPackage.NotFound;
import org.omg.CosNaming.NamingContextPackage.NotFoundReason;

/**
 * A JacORB program that works with a naming service: Names URL REFERENCE. The service has one name, `from zorb`. It leaves `left/Java`, bound to the
 * object of that reference, and prints `all is well`.
 */
public class Names {
  private static ORB orb;

  public static void main(String[] args) throws Exception {
    Properties properties = new Properties();
    properties.put("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
    properties.put("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
    properties.put("jacorb.log.default.verbosity", "0");
    orb = ORB.init(new String[] {"-ORBInitRef", "NameService=" + args[0]}, properties);
    NamingContextExt root = NamingContextExtHelper.narrow(orb.resolve_initial_references("NameService"));
    org.omg.CORBA.Object object = orb.string_to_object(args[1]);

    same(root.resolve_str("from zorb"), object);
    NameComponent[] context = {new NameComponent("left", "")};
    NameComponent[] name = {new NameComponent("left", ""), new NameComponent("Java", "")};
    NamingContextExt inner = NamingContextExtHelper.narrow(root.bind_new_context(context));
    root.bind(name, object);
    same(root.resolve(name), object);
    same(inner.resolve_str("Java"), object);
    same(orb.string_to_object("corbaname:rir:#left/Java"), object);
    same(orb.string_to_object(root.to_url(address(args[0]), "left/Java")), object);

    try {
      root.bind(name, object);
      wrong("a name is bound twice");
    } catch (AlreadyBound expected) {
    }
    try {
      root.resolve_str("left/nobody/x");
      wrong("nobody is found");
    } catch (NotFound expected) {
      check(expected.why == NotFoundReason.missing_node, "why");
      check(expected.rest_of_name.length == 2 && expected.rest_of_name[0].id.equals("nobody"), "the rest");
    }
    try {
      root.resolve(new NameComponent[0]);
      wrong("no name is a name");
    } catch (InvalidName expected) {
    }
    try {
      inner.destroy();
      wrong("a context with names is destroyed");
    } catch (NotEmpty expected) {
    }

    NameComponent odd = new NameComponent("a/b.c\\d \u00e9", "k.k");
    String text = root.to_string(new NameComponent[] {odd});
    NameComponent[] back = root.to_name(text);
    check(back.length == 1 && back[0].id.equals(odd.id) && back[0].kind.equals(odd.kind), text);
    inner.bind(back, object);
    same(inner.resolve_str(text), object);
    inner.rebind(back, null);
    check(inner.resolve(back) == null, "nil");
    inner.unbind(back);

    for (int i = 0; i < 25; i++) {
      inner.bind(new NameComponent[] {new NameComponent("n" + i, "k")}, object);
    }
    List<String> all = list(inner);
    check(all.size() == 26 && all.contains("Java.") && all.contains("n24.k"), all.toString());
    for (int i = 0; i < 25; i++) {
      inner.unbind(new NameComponent[] {new NameComponent("n" + i, "k")});
    }
    // Names lead through a context that is bound again, in a circle.
    inner.bind_context(new NameComponent[] {new NameComponent("up", "")}, root);
    same(root.resolve_str("left/up/left/Java"), object);
    inner.unbind(new NameComponent[] {new NameComponent("up", "")});
    NamingContextExt free = NamingContextExtHelper.narrow(root.new_context());
    free.destroy();
    check(free._non_existent(), "it is destroyed");
    System.out.println("all is well");
    orb.destroy();
  }

  /** By pages of seven, with one name alone between. */
  private static List<String> list(NamingContextExt context) {
    BindingListHolder page = new BindingListHolder();
    BindingIteratorHolder rest = new BindingIteratorHolder();
    context.list(7, page, rest);
    List<String> all = new ArrayList<>();
    add(all, page.value);
    BindingHolder one = new BindingHolder();
    while (rest.value != null && rest.value.next_one(one)) {
      add(all, one.value);
      if (rest.value.next_n(7, page)) {
        add(all, page.value);
      }
    }
    if (rest.value != null) {
      rest.value.destroy();
    }
    return all;
  }

  private static void add(List<String> all, Binding... bindings) {
    for (Binding binding : bindings) {
      check(binding.binding_type == BindingType.nobject, "the type of a binding");
      all.add(binding.binding_name[0].id + "." + binding.binding_name[0].kind);
    }
  }

  /** What stands in `corbaloc:ADDRESS/NameService`. */
  private static String address(String url) {
    return url.substring("corbaloc:".length(), url.lastIndexOf('/'));
  }

  private static void same(org.omg.CORBA.Object found, org.omg.CORBA.Object object) {
    check(found != null && found._is_equivalent(object), "another object: " + orb.object_to_string(found));
  }

  private static void check(boolean holds, String what) {
    if (!holds) {
      wrong(what);
    }
  }

  private static void wrong(String what) {
    throw new AssertionError(what);
  }
}
