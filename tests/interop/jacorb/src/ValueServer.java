import InteropValues.*;
import java.io.Serializable;
import java.nio.file.*;
import java.util.IdentityHashMap;
import org.omg.CORBA.ORB;
import org.omg.PortableServer.*;

/**
 * ValueServer --ior PATH [--port P] [--seconds S] [--unknown]
 * Serves InteropValues::Values of values.idl on 127.0.0.1 (port: any) until SIGTERM, or for S
 * seconds (900). Writes the reference to PATH; its plain key is `values`. Prints READY
 * and the IOR. --unknown: does not know Mark, so that its values are cut to a Point.
 */
public final class ValueServer extends ValuesPOA {
    static final class PointState extends Point {}
    static final class LinkState extends Link {}
    static final class MarkState extends Mark {}
    static final class SpotState extends Spot {}
    static final class TreeState extends Tree {
        TreeState() {
            kids = new Tree[0];
            pairs = new Pair[0];
        }
    }
    static final class LabelState extends Label {
        public String describe() { return "value " + text; }
    }

    static final class TagState extends Tag {
        TagState() { more = new Describable[0]; }
    }

    private static final class ThingServant extends ThingPOA {
        private final String text;
        ThingServant(String text) { this.text = text; }
        public String describe() { return "object " + text; }
    }

    private final POA poa;

    private ValueServer(POA poa) { this.poa = poa; }

    public Point echo_point(Point a, PointHolder b, PointHolder c) { return c.value = a; }
    public Link echo_link(Link a, LinkHolder b, LinkHolder c) { return c.value = a; }
    public Tree echo_tree(Tree a) { return a; }
    public String echo_text(String a) { return a; }
    public byte[] echo_blob(byte[] a) { return a; }
    public Serializable echo_base(Serializable a) { return a; }
    public Describable echo_describable(Describable a) { return a; }
    public Tag echo_tag(Tag a) { return a; }

    static Link link(int number, Link next) {
        Link made = new LinkState();
        made.number = number;
        made.next = next;
        return made;
    }

    /** A circle of so many links, numbered from 1. */
    static Link ring(int length) {
        if (length < 1) return null;
        Link last = link(length, null), first = last;
        for (int number = length - 1; number > 0; number--) first = link(number, first);
        last.next = first;
        return first;
    }

    /** How many links there are until one comes again; 0 where there is an end. */
    static int lengthOf(Link first) {
        IdentityHashMap<Link, Link> seen = new IdentityHashMap<>();
        for (Link at = first; at != null; at = at.next)
            if (seen.put(at, at) != null) return seen.size();
        return 0;
    }

    /** At x, -x with the trail 1, 2, 3 and a tail that begins with the second of them. */
    static Mark mark(int x) {
        Link tail = link(2, link(3, null));
        Mark mark = new MarkState();
        mark.x = x;
        mark.y = -x;
        mark.trail = link(1, tail);
        mark.note = "a mark";
        mark.tail = tail;
        mark.weight = 0.5;
        return mark;
    }

    public Link make_ring(int length) { return ring(length); }

    public int ring_length(Link first) { return lengthOf(first); }

    public boolean is_same(Link a, Link b) { return a == b; }

    public Point make_mark(int x) { return mark(x); }

    public double measure(Point p) {
        if (p == null) return 0;
        double sum = (double) p.x + p.y;
        if (p instanceof Mark) {
            Mark mark = (Mark) p;
            sum += mark.weight;
            for (Link at = mark.trail; at != null; at = at.next) sum += at.number;
            for (Link at = mark.tail; at != null; at = at.next) sum += at.number;
        }
        return sum;
    }

    public String description(Describable d) { return d == null ? "nothing" : d.describe(); }

    public Thing make_thing(String text) {
        try {
            return ThingHelper.narrow(poa.servant_to_reference(new ThingServant(text)));
        } catch (org.omg.CORBA.UserException e) {
            throw new org.omg.CORBA.INTERNAL(e.getMessage());
        }
    }

    public void refuse(Point why) throws Refused { throw new Refused(why); }

    /** Makes the ORB's values of a type by `made`. */
    private static void known(ORB orb, String id, java.util.function.Supplier<Serializable> made) {
        org.omg.CORBA.portable.ValueFactory factory = in -> in.read_value(made.get());
        ((org.omg.CORBA_2_3.ORB) orb).register_value_factory(id, factory);
    }

    /** Makes the types known to the ORB. */
    static void know(ORB orb, boolean marks) {
        known(orb, "IDL:InteropValues/Point:1.0", PointState::new);
        known(orb, "IDL:InteropValues/Link:1.0", LinkState::new);
        if (marks) known(orb, "IDL:InteropValues/Mark:1.0", MarkState::new);
        known(orb, "IDL:InteropValues/Spot:1.0", SpotState::new);
        known(orb, "IDL:InteropValues/Tree:1.0", TreeState::new);
        known(orb, "IDL:InteropValues/Label:1.0", LabelState::new);
        known(orb, "IDL:InteropValues/Tag:1.0", TagState::new);
    }

    public static void main(String[] args) throws Exception {
        Options o = new Options(args);
        o.exitAfter("900");
        ORB orb = o.peerOrb("UTF-8", Orbs.server(o.get("--port", "0"), "1.2"));
        know(orb, !o.flag("--unknown"));
        POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        root.the_POAManager().activate();
        org.omg.CORBA.Object ref = root.servant_to_reference(new ValueServer(root));
        Orbs.name(orb, "values", ref);
        String ior = orb.object_to_string(ref);
        Path file = Paths.get(o.get("--ior", "values.ior")), unfinished = Paths.get(file + ".new");
        Files.write(unfinished, (ior + "\n").getBytes());
        Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE);
        System.out.println("READY " + ior);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));
        orb.run();
    }
}
