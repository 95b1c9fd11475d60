import Interop.*;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.omg.CORBA.*;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.Servant;

/**
 * The operations of Peer; ../README.md says what each does. Those that are not here
 * are echoes, or return their argument plus one.
 */
public final class PeerImpl {
    private final ORB orb;
    private final POA poa;

    PeerImpl(ORB orb, POA poa) {
        this.orb = orb;
        this.poa = poa;
        reset();
    }

    /** The method of this class for an operation; null if there is none. */
    Method method(Method operation) {
        try {
            return PeerImpl.class.getMethod(operation.getName(), operation.getParameterTypes());
        } catch (NoSuchMethodException none) {
            return null;
        }
    }

    java.lang.Object echo(Method operation, java.lang.Object[] args) throws ReflectiveOperationException {
        if (!operation.getName().startsWith("echo_")) return (Integer) args[0] + 1;    // a keyword
        Field b = args[1].getClass().getField("value"), c = args[2].getClass().getField("value");
        b.set(args[1], Echo.transform(b.get(args[1])));
        c.set(args[2], args[0]);
        return args[0];
    }

    // ------------------------------------------------------------ plain operations

    public void ping() { }

    public int plus_one(int a) { return a + 1; }

    public void set_out(IntHolder c) { c.value = 4711; }

    public void negate(IntHolder b) { b.value = -b.value; }

    public int divide(int a, int b, IntHolder remainder) {
        if (b == 0) throw new BAD_PARAM(0, CompletionStatus.COMPLETED_NO);
        remainder.value = a % b;
        return a / b;
    }

    public int many(int number, String word, DoubleHolder scale, Interop.StringSeqHolder words, BooleanHolder even, ColorHolder shade,
                    PointHolder spot) throws ReflectiveOperationException {
        scale.value = -scale.value;
        words.value = (String[]) Echo.transform(words.value);
        even.value = number % 2 == 0;
        shade.value = Color.from_int(number % 3);
        spot.value = new Point(number, -number);
        return number + word.length();
    }

    public int constants(ShortHolder maxCode, ShortHolder lowest, ShortHolder highest, IntHolder mask, LongHolder farAway,
                         LongHolder biggest, ByteHolder lucky, BooleanHolder enabled, CharHolder letter, StringHolder greeting,
                         FloatHolder half, DoubleHolder ratio, ColorHolder favourite) {
        maxCode.value = (short) MAX_CODE.value;
        lowest.value = (short) LOWEST.value;
        highest.value = (short) HIGHEST.value;
        mask.value = MASK.value;
        farAway.value = FAR_AWAY.value;
        biggest.value = BIGGEST.value;
        lucky.value = LUCKY.value;
        enabled.value = ENABLED.value;
        letter.value = LETTER.value;
        greeting.value = GREETING.value;
        half.value = HALF.value;
        ratio.value = RATIO.value;
        favourite.value = FAVOURITE.value;
        return ANSWER.value;
    }

    public String join(String[] parts, String glue) { return String.join(glue, parts); }

    public String repeat(String piece, int times) { return piece.repeat(times); }

    public String wide_greeting(CharHolder mark) {
        mark.value = EURO.value;
        return WIDE_GREETING.value;
    }

    // ------------------------------------------------------------------ exceptions

    public int risky(int choice, StringHolder remark, IntHolder code) throws Plain, Detailed {
        if (choice == 1) throw new Plain();
        if (choice == 2) throw new Detailed(remark.value, -choice, Color.blue, new int[] {1, 2, 3});
        remark.value = Echo.swapCase(remark.value);
        code.value = 7;
        return choice;
    }

    public void fail_nested(Team group, ByLong selection) throws Nested { throw new Nested(group, selection); }

    public void raise_system(String kind, int minor, short completion) {
        SystemException e;
        try {
            e = (SystemException) Class.forName("org.omg.CORBA." + kind).getConstructor(int.class, CompletionStatus.class)
                .newInstance(minor, CompletionStatus.from_int((completion & 0xffff) % 3));
        } catch (ReflectiveOperationException | ClassCastException unknown) {
            e = new BAD_PARAM(0, CompletionStatus.COMPLETED_NO);
        }
        throw e;
    }

    public void raise_unlisted() { throw new IllegalStateException("not a CORBA exception"); }

    // ---------------------------------------------------------- attributes, oneways

    private int counter, impl;
    private Person owner;
    private int[] corners;
    private boolean enabledFirst, enabledSecond;
    private final List<String> lines = new ArrayList<>();
    private long total;

    public String server_name() { return Orbs.NAME; }

    public synchronized int counter() { return counter; }
    public synchronized void counter(int v) { counter = v; }
    public synchronized Person owner() { return owner; }
    public synchronized void owner(Person v) { owner = v; }
    public synchronized int[] corners() { return corners; }
    public synchronized void corners(int[] v) { corners = v; }
    public synchronized boolean enabled_first() { return enabledFirst; }
    public synchronized void enabled_first(boolean v) { enabledFirst = v; }
    public synchronized boolean enabled_second() { return enabledSecond; }
    public synchronized void enabled_second(boolean v) { enabledSecond = v; }
    public synchronized int impl() { return impl; }
    public synchronized void impl(int v) { impl = v; }

    public synchronized void reset() {
        counter = 0;
        owner = new Person("nobody", 0, Color.red);
        corners = new int[3];
        enabledFirst = enabledSecond = false;
        lines.clear();
        total = 0;
    }

    public synchronized void jot(String line) { lines.add(line); }

    public synchronized void count_up(int[] amounts) {
        for (int a : amounts) total += a;
    }

    public synchronized String[] take_lines() {
        String[] taken = lines.toArray(new String[0]);
        lines.clear();
        return taken;
    }

    public synchronized long take_total() {
        long taken = total;
        total = 0;
        return taken;
    }

    // ------------------------------------------------------------------- references

    private <T> T activated(Servant servant, Class<T> type) {
        try {
            org.omg.CORBA.Object ref = poa.id_to_reference(poa.activate_object(servant));
            return type.cast(Class.forName(type.getName() + "Helper").getMethod("narrow", org.omg.CORBA.Object.class).invoke(null, ref));
        } catch (UserException | ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private final class NodeImpl extends NodePOA {
        private final String label;
        private int sum;

        NodeImpl(String label) { this.label = label; }

        public String label() { return label; }
        public synchronized int add(int amount) { return sum += amount; }
        public Node twin() { return make_node(label + "'"); }

        public void retire() {
            try {
                poa.deactivate_object(poa.servant_to_id(this));
            } catch (UserException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    private static final class BaseImpl extends BasePOA {
        public int rank() { return 1; }
        public String base_name() { return "base"; }
    }

    private static final class BottomImpl extends BottomPOA {
        private volatile String motto = "to the bottom";

        public int rank() { return 4; }
        public String base_name() { return "base of bottom"; }
        public String left_name() { return "left of bottom"; }
        public String right_name(int times) { return "right ".repeat(times).trim(); }
        public String bottom_name() { return "bottom"; }
        public String motto() { return motto; }
        public void motto(String text) { motto = text; }
    }

    public Node echo_node(Node a, NodeHolder b, NodeHolder c) {
        b.value = b.value == null ? make_node("fresh") : null;
        return c.value = a;
    }

    public org.omg.CORBA.Object echo_object(org.omg.CORBA.Object a, ObjectHolder b, ObjectHolder c) {
        b.value = b.value == null ? make_node("fresh") : null;
        return c.value = a;
    }

    public Base echo_base(Base a, BaseHolder b, BaseHolder c) {
        b.value = b.value == null ? make_base() : null;
        return c.value = a;
    }

    public Node make_node(String name) { return activated(new NodeImpl(name), Node.class); }

    public Node[] make_nodes(String[] names) {
        Node[] made = new Node[names.length];
        for (int i = 0; i < made.length; i++) made[i] = make_node(names[i]);
        return made;
    }

    public String label_of(Node target) { return target == null ? "nil" : target.label(); }

    public Bottom make_bottom() { return activated(new BottomImpl(), Bottom.class); }

    public Base make_base() { return activated(new BaseImpl(), Base.class); }

    public String describe(Base target) { return target == null ? "nil" : target.base_name() + " of rank " + target.rank(); }

    public int ring_back(Listener target, String message, int times) throws Detailed {
        int sum = 0;
        for (int i = 0; i < times; i++) sum += target.ring(message, i);
        return sum;
    }

    public void hint_back(Listener target, String message) { target.hint(message); }

    ORB orb() { return orb; }
}
