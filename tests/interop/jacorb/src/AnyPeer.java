import Anys.*;
import java.math.BigDecimal;
import java.nio.file.*;
import java.util.Arrays;
import org.omg.CORBA.*;
import org.omg.PortableServer.*;

/**
 * AnyPeer server --ior PATH [--seconds S]: serves anys.idl until SIGTERM, writes its reference to PATH, prints READY.
 * AnyPeer client --ior PATH [--seconds S]: drives such a server; prints `ok NAME` or `FAIL NAME: why` for each check.
 * AnyPeer dii-client --ior PATH [--seconds S]: the same by the dynamic invocation interface.
 * Status 0: all ok. What the samples are, tests/interop/anys/mod.rs says as well.
 */
public final class AnyPeer extends PeerPOA {
    static final class LinkState extends Link {}
    static final class PlaceState extends Place {}
    static final class SpotState extends Spot {}

    private static ORB orb;
    private Peer self;

    private static Point point(int x, int y) { return new Point(x, y); }

    private static Node node(int v, Node... kids) { return new Node(v, kids); }

    private static Figure figure() {
        return new Figure("triangle", new Point[] {point(0, 0), point(1, -1), point(2, -2)}, point(7, 8), Color.green, Color.blue);
    }

    private static Node node() { return node(1, node(2, node(3)), node(4)); }

    private static Numbers numbers() {
        return new Numbers(true, (byte) 200, (short) -2, (short) -1, -3, -1, -(1L << 40), -1L, 1.5f, -2.25, 'z');
    }

    private static Texts texts() { return new Texts("plain", "zw\u00f6lf \u20ac", '\u20ac', "12345678"); }

    static Link link(int number, Link next) {
        Link made = new LinkState();
        made.number = number;
        made.next = next;
        return made;
    }

    private static Link ring() {
        Link second = link(2, null), first = link(1, second);
        second.next = first;
        return first;
    }

    private static Spot spot() {
        Spot made = new SpotState();
        made.x = 4;
        made.note = "spot";
        Link last = link(2, null);
        made.way = new Ends(link(1, last), last);
        return made;
    }

    private interface Fill { void into(Any any); }

    private static Any any(Fill fill) {
        Any made = orb.create_any();
        fill.into(made);
        return made;
    }

    /** A sample that this ORB may not be able to have: a number stands for it then. */
    private static Any any(String kind, Fill fill) { return Orbs.known("any_" + kind) == null ? any(fill) : anyOf(5); }

    private static boolean isThere(Any any, int at) {
        if (any.type().kind() != TCKind.tk_long) return true;
        want(at, any.extract_long() == 5);
        return false;
    }

    private static Any anyOf(int value) { return any(a -> a.insert_long(value)); }

    private Any[] samples(Peer self) {
        Choice second = new Choice(), third = new Choice();
        second.b(3, "second");
        third.c(point(9, 9));      // the only default that JacORB has
        Flag flag = new Flag();
        flag.__default();
        byte[] octets = new byte[5000];
        for (int i = 0; i < octets.length; i++) octets[i] = (byte) i;
        Link shared = link(1, null);
        return new Any[] {
            orb.create_any(),
            anyOf(-5),
            any(a -> a.insert_string("text")),
            any(a -> a.insert_boolean(true)),
            any(a -> a.insert_octet((byte) 200)),
            any("char", a -> a.insert_char('c')),
            any(a -> a.insert_wchar('\u20ac')),
            any(a -> a.insert_wstring("wide \u20ac")),
            any(a -> a.insert_double(1.5)),
            any(a -> a.insert_ulonglong(-1L)),
            any(a -> CodeHelper.insert(a, "bounded")),
            any(a -> a.insert_float(0.25f)),
            any(a -> ColorHelper.insert(a, Color.green)),
            any(a -> PointHelper.insert(a, point(1, 2))),
            any(a -> FigureHelper.insert(a, figure())),
            any(a -> NodeHelper.insert(a, node())),
            any("char", a -> NumbersHelper.insert(a, numbers())),
            any(a -> TextsHelper.insert(a, texts())),
            any(a -> ChoiceHelper.insert(a, second)),
            any(a -> ChoiceHelper.insert(a, third)),
            any("flag", a -> FlagHelper.insert(a, flag)),
            any(a -> GridHelper.insert(a, new int[][] {{0, 1, 2}, {3, 4, 5}})),
            any(a -> DoublesHelper.insert(a, new double[] {0.5, 1.5, 2.5})),
            any(a -> OctetsHelper.insert(a, octets)),
            any(a -> BadHelper.insert(a, new Bad("because", anyOf(5)))),
            any(a -> a.insert_TypeCode(NodeHelper.type())),
            any(a -> a.insert_any(any(b -> FigureHelper.insert(b, figure())))),
            any(a -> HolderHelper.insert(a, new Holder(any(b -> PointHelper.insert(b, point(3, 4))), ChoiceHelper.type(), self))),
            any(a -> PeerHelper.insert(a, self)),
            any(a -> Anys.AnySeqHelper.insert(a, new Any[] {any(b -> b.insert_short((short) 1)), any(b -> b.insert_string("two"))})),
            any("value", a -> LinkHelper.insert(a, ring())),
            anyOf(5),      // JacORB writes a box of a string in an any as a value of Java's
            any("value", a -> EndsHelper.insert(a, new Ends(shared, shared))),
            any("value", a -> SpotHelper.insert(a, spot())),
            any("value", a -> Anys.AnySeqHelper.insert(a, new Any[] {any(b -> LinkHelper.insert(b, shared)), any(b -> LinkHelper.insert(b, shared))})),
        };
    }

    private static void want(int at, boolean what) {
        if (!what) throw new AssertionError("sample " + at + ", line " + Thread.currentThread().getStackTrace()[2].getLineNumber());
    }

    private static boolean same(Point a, Point b) { return a.x == b.x && a.y == b.y; }

    private static boolean same(Node a, Node b) {
        if (a.v != b.v || a.kids.length != b.kids.length) return false;
        for (int i = 0; i < a.kids.length; i++)
            if (!same(a.kids[i], b.kids[i])) return false;
        return true;
    }

    private static boolean same(Figure a, Figure b) {
        if (a.corners.length != b.corners.length) return false;
        for (int i = 0; i < a.corners.length; i++)
            if (!same(a.corners[i], b.corners[i])) return false;
        return a.name.equals(b.name) && same(a.centre, b.centre) && a.fill == b.fill && a.line == b.line;
    }

    /** JacORB takes no type of recursive values for equal to any. */
    private static boolean same(TypeCode a, TypeCode b) throws Exception {
        if (a.equal(b)) return true;
        int kind = a.kind().value();
        return kind == b.kind().value() && (kind == TCKind._tk_value || kind == TCKind._tk_struct) && a.id().equals(b.id())
            && a.name().equals(b.name()) && a.member_count() == b.member_count();
    }

    private static String wrongWith(Any[] s) {
        try {
            compare(s);
            return "";
        } catch (Throwable e) {
            return e.toString();
        }
    }

    private static void compare(Any[] s) {
        want(0, s.length == 35);
        want(0, s[0].type().kind() == TCKind.tk_null);
        want(1, s[1].extract_long() == -5);
        want(2, s[2].extract_string().equals("text"));
        want(3, s[3].extract_boolean());
        want(4, s[4].extract_octet() == (byte) 200);
        if (isThere(s[5], 5)) want(5, s[5].extract_char() == 'c');
        want(6, s[6].extract_wchar() == '\u20ac');
        want(7, s[7].extract_wstring().equals("wide \u20ac"));
        want(8, s[8].extract_double() == 1.5);
        want(9, s[9].extract_ulonglong() == -1L);
        want(10, s[10].extract_string().equals("bounded"));
        want(11, s[11].extract_float() == 0.25f);
        want(12, ColorHelper.extract(s[12]) == Color.green);
        want(13, same(PointHelper.extract(s[13]), point(1, 2)));
        want(14, same(FigureHelper.extract(s[14]), figure()));
        want(15, same(NodeHelper.extract(s[15]), node()));
        if (isThere(s[16], 16)) {
            Numbers n = NumbersHelper.extract(s[16]), m = numbers();
            want(16, n.b == m.b && n.o == m.o && n.s == m.s && n.us == m.us && n.l == m.l && n.ul == m.ul);
            want(16, n.ll == m.ll && n.ull == m.ull && n.f == m.f && n.d == m.d && n.c == m.c);
        }
        Texts x = TextsHelper.extract(s[17]), y = texts();
        want(17, x.s.equals(y.s) && x.w.equals(y.w) && x.wc == y.wc && x.mark.equals(y.mark));
        Choice choice = ChoiceHelper.extract(s[18]);
        want(18, choice.discriminator() == 3 && choice.b().equals("second"));
        choice = ChoiceHelper.extract(s[19]);
        want(19, choice.discriminator() == 0 && same(choice.c(), point(9, 9)));
        if (isThere(s[20], 20)) want(20, !FlagHelper.extract(s[20]).discriminator());
        want(21, Arrays.deepEquals(GridHelper.extract(s[21]), new int[][] {{0, 1, 2}, {3, 4, 5}}));
        want(22, Arrays.equals(DoublesHelper.extract(s[22]), new double[] {0.5, 1.5, 2.5}));
        byte[] octets = OctetsHelper.extract(s[23]);
        want(23, octets.length == 5000 && octets[4999] == (byte) 4999);
        if (isThere(s[24], 24)) {
            Bad bad = BadHelper.extract(s[24]);
            want(24, bad.why.equals("because") && bad.detail.extract_long() == 5);
        }
        want(25, s[25].extract_TypeCode().equivalent(NodeHelper.type()));
        want(26, same(FigureHelper.extract(s[26].extract_any()), figure()));
        Holder holder = HolderHelper.extract(s[27]);
        want(27, same(PointHelper.extract(holder.inner), point(3, 4)) && holder.shape.equivalent(ChoiceHelper.type()));
        want(27, !holder.self._non_existent());
        want(28, !PeerHelper.extract(s[28])._non_existent());
        Any[] list = Anys.AnySeqHelper.extract(s[29]);
        want(29, list.length == 2 && list[0].extract_short() == 1 && list[1].extract_string().equals("two"));
        if (isThere(s[30], 30)) {
            Link first = LinkHelper.extract(s[30]);
            want(30, first.number == 1 && first.next.number == 2 && first.next.next == first);
        }
        if (isThere(s[31], 31)) want(31, LabelHelper.extract(s[31]).equals("boxed"));
        if (isThere(s[32], 32)) {
            Ends ends = EndsHelper.extract(s[32]);
            want(32, ends.first.number == 1 && ends.first == ends.last);
        }
        if (isThere(s[33], 33)) {
            Spot spot = SpotHelper.extract(s[33]);
            want(33, spot.x == 4 && spot.note.equals("spot") && spot.way.first.next == spot.way.last && spot.way.last.number == 2);
        }
        if (isThere(s[34], 34))
            for (Any one : Anys.AnySeqHelper.extract(s[34])) want(34, LinkHelper.extract(one).number == 1);
        TypeCode[] own = {ColorHelper.type(), PointHelper.type(), FigureHelper.type(), NodeHelper.type(), NumbersHelper.type(), TextsHelper.type()};
        for (int i = 0; i < own.length; i++) want(12 + i, s[12 + i].type().kind() == TCKind.tk_long || s[12 + i].type().equal(own[i]));
    }

    public Any[] samples() { return samples(self); }
    public String check(Any[] values) { return wrongWith(values); }
    public Any echo(Any a, AnyHolder b, AnyHolder c) {
        c.value = b.value;
        Any inner = b.value;
        b.value = any(outer -> outer.insert_any(inner));
        return a;
    }
    public TypeCode type_of(Any a) { return a.type(); }
    public TypeCode echo_type(TypeCode a, TypeCodeHolder b, TypeCodeHolder c) {
        c.value = b.value;
        b.value = a;
        return a;
    }
    public void fail(Any detail) throws Bad { throw new Bad("asked for", detail); }

    private interface Body { String run() throws Exception; }

    private static int failed;

    private static void run(String name, Body body) {
        String why, known = Orbs.known("any_" + name);
        if (known != null) {
            System.out.println("skip " + name + ": " + known);
            return;
        }
        try {
            why = body.run();
        } catch (Throwable e) {
            why = e.toString();
        }
        if (!why.isEmpty()) failed++;
        System.out.println(why.isEmpty() ? "ok " + name : "FAIL " + name + ": " + why);
    }

    private void drive(Peer peer) {
        Any[] own = samples(self), theirs = peer.samples();
        run("samples", () -> wrongWith(theirs));
        run("check", () -> peer.check(own));
        run("passed_on", () -> {
            for (int i = 0; i < own.length; i++) {
                AnyHolder b = new AnyHolder(i == 31 ? own[i] : theirs[i]), c = new AnyHolder();
                Any[] again = own.clone();
                again[i] = peer.echo(own[i], b, c);
                String wrong = wrongWith(again);
                if (!wrong.isEmpty()) return "a: " + wrong;
                again[i] = c.value;
                wrong = wrongWith(again);
                if (!wrong.isEmpty()) return "c: " + wrong;
                again[i] = b.value.extract_any();
                wrong = wrongWith(again);
                if (!wrong.isEmpty()) return "b: " + wrong;
            }
            return "";
        });
        run("types", () -> {
            for (Any any : own) {
                if (!same(peer.type_of(any), any.type())) return "type_of " + any.type();
                TypeCodeHolder b = new TypeCodeHolder(NodeHelper.type()), c = new TypeCodeHolder();
                TypeCode a = peer.echo_type(any.type(), b, c);
                if (!same(a, any.type()) || !same(b.value, any.type()) || !c.value.equal(NodeHelper.type())) return "" + any.type();
            }
            return "";
        });
        run("fixed", () -> {
            Any money = any(a -> MoneyHelper.insert(a, new BigDecimal("-123.45")));
            AnyHolder b = new AnyHolder(money), c = new AnyHolder();
            BigDecimal back = MoneyHelper.extract(peer.echo(money, b, c));
            Any priced = any(a -> PricedHelper.insert(a, new Priced("lamp", new BigDecimal("-123.45"))));
            Priced same = PricedHelper.extract(peer.echo(priced, b, c));
            return back.equals(new BigDecimal("-123.45")) && same.price.equals(back) ? "" : "" + back;
        });
        run("fail", () -> {
            try {
                peer.fail(own[14]);
                return "no exception";
            } catch (Bad e) {
                return same(FigureHelper.extract(e.detail), figure()) && e.why.equals("asked for") ? "" : "another detail";
            }
        });
    }

    /** Calls by the names of operations, with arguments in anys: no stub is used. */
    private void driveByNames(org.omg.CORBA.Object peer) {
        Any[] own = samples(self);
        Any[][] theirs = new Any[1][];
        run("dii_samples", () -> {
            Request request = peer._request("samples");
            request.set_return_type(Anys.AnySeqHelper.type());
            theirs[0] = Anys.AnySeqHelper.extract(invoked(request));
            return wrongWith(theirs[0]);
        });
        run("dii_check", () -> {
            Request request = peer._request("check");
            Anys.AnySeqHelper.insert(request.add_in_arg(), own);
            request.set_return_type(orb.get_primitive_tc(TCKind.tk_string));
            return invoked(request).extract_string();
        });
        run("dii_echo", () -> {
            for (int i = 0; i < own.length; i++) {
                Request request = peer._request("echo");
                request.add_in_arg().insert_any(own[i]);
                Any b = request.add_inout_arg(), c = request.add_out_arg();
                b.insert_any(i == 31 ? own[i] : theirs[0][i]);
                c.type(orb.get_primitive_tc(TCKind.tk_any));
                request.set_return_type(orb.get_primitive_tc(TCKind.tk_any));
                Any[] again = own.clone();
                again[i] = invoked(request).extract_any();
                String wrong = wrongWith(again);
                if (!wrong.isEmpty()) return "a: " + wrong;
                again[i] = c.extract_any();
                wrong = wrongWith(again);
                if (!wrong.isEmpty()) return "c: " + wrong;
                again[i] = b.extract_any().extract_any();
                wrong = wrongWith(again);
                if (!wrong.isEmpty()) return "b: " + wrong;
            }
            return "";
        });
        run("dii_types", () -> {
            for (Any any : own) {
                Request request = peer._request("echo_type");
                request.add_in_arg().insert_TypeCode(any.type());
                Any b = request.add_inout_arg(), c = request.add_out_arg();
                b.insert_TypeCode(NodeHelper.type());
                c.type(orb.get_primitive_tc(TCKind.tk_TypeCode));
                request.set_return_type(orb.get_primitive_tc(TCKind.tk_TypeCode));
                TypeCode a = invoked(request).extract_TypeCode();
                if (!same(a, any.type()) || !same(b.extract_TypeCode(), any.type())) return "" + any.type();
                if (!c.extract_TypeCode().equal(NodeHelper.type())) return "" + any.type();
            }
            return "";
        });
        run("dii_fail", () -> {
            Request request = peer._request("fail");
            request.add_in_arg().insert_any(own[14]);
            request.exceptions().add(BadHelper.type());
            request.invoke();
            if (!(request.env().exception() instanceof UnknownUserException unknown)) return "" + request.env().exception();
            Bad bad = BadHelper.extract(unknown.except);
            return same(FigureHelper.extract(bad.detail), figure()) && bad.why.equals("asked for") ? "" : "another detail";
        });
        run("dii_deferred", () -> {
            Request[] both = {peer._request("type_of"), peer._request("type_of")};
            for (int i = 0; i < both.length; i++) {
                both[i].add_in_arg().insert_any(own[i + 14]);
                both[i].set_return_type(orb.get_primitive_tc(TCKind.tk_TypeCode));
                both[i].send_deferred();
            }
            for (int i = 0; i < both.length; i++) {
                both[i].get_response();
                if (!same(both[i].return_value().extract_TypeCode(), own[i + 14].type())) return "request " + i;
            }
            return "";
        });
        run("dii_unknown", () -> {
            Request request = peer._request("nothing_of_it");
            try {
                request.invoke();
            } catch (BAD_OPERATION e) {
                return "";
            }
            return request.env().exception() instanceof BAD_OPERATION ? "" : "" + request.env().exception();
        });
    }

    private static Any invoked(Request request) throws Exception {
        request.invoke();
        if (request.env().exception() != null) throw request.env().exception();
        return request.return_value();
    }

    public static void main(String[] args) throws Exception {
        Options o = new Options(args);
        o.exitAfter("300");
        orb = o.peerOrb("UTF-8");
        POA poa = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        poa.the_POAManager().activate();
        var values = (org.omg.CORBA_2_3.ORB) orb;
        factory(values, "Link", LinkState::new);
        factory(values, "Place", PlaceState::new);
        factory(values, "Spot", SpotState::new);
        values.register_value_factory("IDL:Anys/Label:1.0", in -> in.read_string());
        AnyPeer servant = new AnyPeer();
        servant.self = PeerHelper.narrow(poa.servant_to_reference(servant));
        Path path = Path.of(o.get("--ior", "anys.ior"));
        if (args[0].endsWith("client")) {
            org.omg.CORBA.Object peer = orb.string_to_object(Files.readString(path).trim());
            if (args[0].equals("client")) servant.drive(PeerHelper.narrow(peer));
            else servant.driveByNames(peer);
            System.exit(failed == 0 ? 0 : 1);
        }
        String ior = orb.object_to_string(servant.self);
        Path made = Path.of(path + ".new");
        Files.writeString(made, ior + "\n");
        Files.move(made, path, StandardCopyOption.ATOMIC_MOVE);
        System.out.println("READY " + ior);
        orb.run();
    }

    private static void factory(org.omg.CORBA_2_3.ORB orb, String name, java.util.function.Supplier<java.io.Serializable> make) {
        orb.register_value_factory("IDL:Anys/" + name + ":1.0", in -> in.read_value(make.get()));
    }
}
