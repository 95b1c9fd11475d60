import Interop.*;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.LinkedHashMap;
import java.util.Map;
import org.omg.CORBA.*;
import org.omg.PortableServer.POA;

/** The client's checks; ../README.md says what each does. */
final class Checks {
    interface Check { void run() throws Exception; }

    interface Call<T> { T run() throws Exception; }

    static final class Failure extends RuntimeException {
        Failure(String why) { super(why); }
    }

    static final class Skipped extends RuntimeException {
        Skipped(String why) { super(why); }
    }

    ORB orb;
    POA poa;
    Peer peer;
    Guard guard;                    // null: the server has none (omniORB)
    org.omg.CORBA.Object forward;   // null: the server has no object that forwards
    org.omg.CORBA.Object moved;     // the same, for good
    String server;                  // its server_name
    int minor;                      // of the GIOP version that calls go out with
    boolean codeSets;               // the reference names code sets
    int port;
    Recorder recorder;              // --record; else null

    final Map<String, Check> all = new LinkedHashMap<>();

    Checks() {
        all.put("ping", () -> recorded("ping", "", "", () -> { peer.ping(); return null; }));
        all.put("single_positions", this::singlePositions);
        all.put("many_results", this::manyResults);
        all.put("constants", this::constants);
        all.put("join", this::join);
        all.put("latin1_text", this::latin1Text);
        all.put("utf8_text", this::utf8Text);
        all.put("wide_greeting", this::wideGreeting);
        all.put("large_octets", () -> large("echo_octet_seq", largeOctets()));
        all.put("large_doubles", this::largeDoubles);
        all.put("large_strings", this::largeStrings);
        all.put("large_structs", this::largeStructs);
        all.put("large_reply", this::largeReply);
        all.put("user_exceptions", this::userExceptions);
        all.put("system_exceptions", this::systemExceptions);
        all.put("unlisted_exception", this::unlistedException);
        all.put("unknown_operation", this::unknownOperation);
        all.put("attributes", this::attributes);
        all.put("oneways", this::oneways);
        all.put("keywords", this::keywords);
        for (String operation : Samples.ALL.keySet()) all.put(operation, () -> echo(operation));
        new ReferenceChecks(this).addTo(all);
        all.put("location_forward", () -> elsewhere(forward, "forwards"));
        all.put("moved", () -> elsewhere(moved, "forwards for good"));
        all.put("unknown_object", this::unknownObject);
        all.put("guard", this::guard);
    }

    // ----------------------------------------------------------------- assertions

    static void expect(boolean ok, String what) {
        if (!ok) throw new Failure(what);
    }

    static void same(java.lang.Object got, java.lang.Object wanted, String what) throws ReflectiveOperationException {
        String g = Echo.text(got), w = Echo.text(wanted);
        expect(g.equals(w), what + " is " + g + ", should be " + w);
    }

    /** "BAD_PARAM 0x4f4d0001 COMPLETED_NO" */
    static String describe(SystemException e) {
        String[] completed = {"YES", "NO", "MAYBE"};
        return e.getClass().getSimpleName() + String.format(" 0x%08x", e.minor) + " COMPLETED_" + completed[e.completed.value()];
    }

    /** The system exception that the call must raise. */
    static String raised(Check call) throws Exception {
        try {
            call.run();
        } catch (SystemException e) {
            return describe(e);
        }
        return "nothing";
    }

    <T> T recorded(String operation, String request, String reply, Call<T> call) throws Exception {
        if (recorder == null) return call.run();
        recorder.begin(operation, request, reply);
        try {
            return call.run();
        } finally {
            recorder.end();
        }
    }

    // --------------------------------------------------------------------- echoes

    private static final java.util.List<String> UNSIGNED = java.util.List.of(
        "echo_ushort", "echo_ulong", "echo_ulonglong", "echo_stamp", "echo_ushort_seq", "echo_ulong_seq", "echo_ulonglong_seq");

    private void echo(String operation) throws Exception {
        java.lang.Object[] samples = Samples.ALL.get(operation);
        for (int i = 0; i < samples.length; i++) pair(operation, samples[i], samples[(i + 1) % samples.length], i == 0);
    }

    private void pair(String operation, java.lang.Object a, java.lang.Object b, boolean first) throws Exception {
        boolean unsigned = UNSIGNED.contains(operation);
        Method call = null;
        for (Method m : peer.getClass().getMethods())
            if (m.getName().equals(operation)) call = m;
        java.lang.Object holder = call.getParameterTypes()[1].getDeclaredConstructor().newInstance();
        java.lang.Object out = call.getParameterTypes()[2].getDeclaredConstructor().newInstance();
        Field value = holder.getClass().getField("value");
        value.set(holder, b);
        String request = "a=" + Echo.text(a, unsigned) + " b=" + Echo.text(b, unsigned), changed = Echo.text(Echo.transform(b), unsigned);
        String same = Echo.text(a, unsigned), reply = "result=" + same + " b=" + changed + " c=" + same;
        java.lang.Object result;
        try {
            Method m = call;
            Call<java.lang.Object> invoke = () -> m.invoke(peer, a, holder, out);
            result = first ? recorded(operation, request, reply, invoke) : invoke.run();
        } catch (InvocationTargetException e) {
            throw (Exception) e.getCause();
        }
        String got = "result=" + Echo.text(result, unsigned) + " b=" + Echo.text(value.get(holder), unsigned) + " c=" + Echo.text(value.get(out), unsigned);
        expect(got.equals(reply), request + " came back as " + got + ", should be " + reply);
    }

    // ---------------------------------------------------------- single operations

    private void singlePositions() throws Exception {
        same(recorded("plus_one", "a=41", "result=42", () -> peer.plus_one(41)), 42, "plus_one(41)");
        IntHolder c = new IntHolder(), b = new IntHolder(5), remainder = new IntHolder();
        recorded("set_out", "", "c=4711", () -> { peer.set_out(c); return null; });
        same(c.value, 4711, "set_out's c");
        recorded("negate", "b=5", "b=-5", () -> { peer.negate(b); return null; });
        same(b.value, -5, "negate's b");
        same(recorded("divide", "a=17 b=5", "result=3 remainder=2", () -> peer.divide(17, 5, remainder)), 3, "17 / 5");
        same(remainder.value, 2, "17 % 5");
        String byZero = raised(() -> peer.divide(1, 0, remainder));
        expect(byZero.equals("BAD_PARAM 0x00000000 COMPLETED_NO"), "1 / 0 raised " + byZero);
    }

    private void manyResults() throws Exception {
        DoubleHolder scale = new DoubleHolder(2.5);
        Interop.StringSeqHolder words = new Interop.StringSeqHolder(new String[] {"One", "two"});
        BooleanHolder even = new BooleanHolder();
        ColorHolder shade = new ColorHolder();
        PointHolder spot = new PointHolder();
        int result = recorded("many", "number=8 word=\"four\" scale=0x4004000000000000 words=[\"One\",\"two\"]",
                              "result=12 scale=0xc004000000000000 words=[\"TWO\",\"oNE\"] even=true shade=blue spot={8,-8}",
                              () -> peer.many(8, "four", scale, words, even, shade, spot));
        same(result, 12, "the result");
        same(scale.value, -2.5, "scale");
        same(words.value, new String[] {"TWO", "oNE"}, "words");
        expect(even.value && shade.value == Color.blue && Echo.text(spot.value).equals("{8,-8}"), "even, shade or spot is wrong");
    }

    private void constants() throws Exception {
        ShortHolder maxCode = new ShortHolder(), lowest = new ShortHolder(), highest = new ShortHolder();
        IntHolder mask = new IntHolder();
        LongHolder farAway = new LongHolder(), biggest = new LongHolder();
        ByteHolder lucky = new ByteHolder();
        BooleanHolder enabled = new BooleanHolder();
        CharHolder letter = new CharHolder();
        StringHolder greeting = new StringHolder();
        FloatHolder half = new FloatHolder();
        DoubleHolder ratio = new DoubleHolder();
        ColorHolder favourite = new ColorHolder();
        String words = "result=42 max_code_value=16 lowest_value=-32768 highest_value=65535 mask_value=65295 far_away_value=-9223372036854775807"
            + " biggest_value=18446744073709551615 lucky_value=7 enabled_value=true letter_value=122 greeting_value=\"Hello, ORB\""
            + " half_value=0x3f000000 ratio_value=" + Echo.text(RATIO.value) + " favourite_value=blue";
        int answer = recorded("constants", "", words, () -> peer.constants(
            maxCode, lowest, highest, mask, farAway, biggest, lucky, enabled, letter, greeting, half, ratio, favourite));
        same(answer, ANSWER.value, "ANSWER");
        same(maxCode.value, (short) MAX_CODE.value, "MAX_CODE");
        same(lowest.value, (short) LOWEST.value, "LOWEST");
        same(highest.value, (short) HIGHEST.value, "HIGHEST");
        same(mask.value, MASK.value, "MASK");
        same(farAway.value, FAR_AWAY.value, "FAR_AWAY");
        same(biggest.value, BIGGEST.value, "BIGGEST");
        same(lucky.value, LUCKY.value, "LUCKY");
        same(enabled.value, ENABLED.value, "ENABLED");
        same(letter.value, LETTER.value, "LETTER");
        same(greeting.value, GREETING.value, "GREETING");
        same(half.value, HALF.value, "HALF");
        same(ratio.value, RATIO.value, "RATIO");
        same(favourite.value, FAVOURITE.value, "FAVOURITE");
    }

    // ----------------------------------------------------------------------- text

    private void join() throws Exception {
        String joined = recorded("join", "parts=[\"a\",\"\",\"c\"] glue=\", \"", "result=\"a, , c\"", () -> peer.join(new String[] {"a", "", "c"}, ", "));
        same(joined, "a, , c", "the result");
        same(peer.join(new String[0], "-"), "", "nothing joined");
    }

    private void text(String operation, String sent, String changed) throws Exception {
        StringHolder b = new StringHolder(sent), c = new StringHolder();
        String t = Echo.text(sent);
        String result = recorded(operation, "a=" + t + " b=" + t, "result=" + t + " b=" + Echo.text(changed) + " c=" + t, () -> peer.echo_string(sent, b, c));
        same(result, sent, "the result");
        same(c.value, sent, "c");
        same(b.value, changed, "b");
    }

    private void latin1Text() throws Exception {
        if (server.equals("JacORB") && !codeSets) throw new Skipped("known defect of JacORB's server: it takes its native set where none was negotiated");
        text("echo_string_latin1", "Gr\u00fc\u00dfe, \u00c6 \u00ff", "gR\u00fc\u00dfE, \u00c6 \u00ff");
    }

    private void utf8Text() throws Exception {
        if (!codeSets) {
            String e = raised(() -> peer.echo_string("\u20ac", new StringHolder(""), new StringHolder()));
            expect(e.startsWith("DATA_CONVERSION "), "text beyond ISO 8859-1 raised " + e);
            return;
        }
        text("echo_string_utf8", "\u20ac \u6f22\u5b57 \ud834\udd1e Clef", "\u20ac \u6f22\u5b57 \ud834\udd1e cLEF");
    }

    /** Wide text that only the reply has. In GIOP 1.0 the server must refuse it. */
    private void wideGreeting() throws Exception {
        CharHolder mark = new CharHolder();
        Call<String> call = () -> recorded("wide_greeting", "", "result=\"Gr\\u00fc\\u00df dich\" mark=8364", () -> peer.wide_greeting(mark));
        if (minor == 0) {
            String e = raised(call::run);
            boolean good = server.equals("omniORB") ? e.equals("BAD_PARAM 0x4f4d0017 COMPLETED_YES")
                : server.equals("JacORB") ? e.equals("MARSHAL 0x00000006 COMPLETED_NO") : e.startsWith("MARSHAL 0x4f4d0006 ");
            expect(good, "a wide reply in GIOP 1.0 raised " + e);
            return;
        }
        if (Orbs.refusal(this) != null) {
            String e = raised(call::run);
            expect(e.equals("BAD_PARAM 0x4f4d0017 COMPLETED_YES"), "a wide reply without code set raised " + e);
            return;
        }
        String result = call.run();
        same(result, WIDE_GREETING.value, "the result");
        same(mark.value, EURO.value, "mark");
    }

    /** Wide text where there is none, as in GIOP 1.0: the ORB here or the server must refuse it. */
    void refused(Check wide, String refusal) throws Exception {
        String e = raised(wide);
        expect(e.equals(refusal), "wide text that can not be sent raised " + e + ", should be " + refusal);
    }

    // ---------------------------------------------------------------------- sizes

    private static byte[] largeOctets() {
        byte[] octets = new byte[100001];
        for (int i = 0; i < octets.length; i++) octets[i] = (byte) (i * 7);
        return octets;
    }

    private void large(String operation, java.lang.Object value) throws Exception { pair(operation, value, value, false); }

    private void largeDoubles() throws Exception {
        double[] doubles = new double[5000];
        for (int i = 0; i < doubles.length; i++) doubles[i] = i * 0.25;
        large("echo_double_seq", doubles);
    }

    private void largeStrings() throws Exception {
        String[] strings = new String[3000];
        for (int i = 0; i < strings.length; i++) strings[i] = "string " + i;
        large("echo_string_seq", strings);
    }

    private void largeStructs() throws Exception {
        Mixed[] structs = new Mixed[700];
        for (int i = 0; i < structs.length; i++) structs[i] = Samples.mixed(i);
        large("echo_mixed_seq", structs);
    }

    private void largeReply() throws Exception {
        String text = recorded("repeat", "piece=\"0123456789abcdef\" times=1200", "result=1200 times \"0123456789abcdef\"",
                               () -> peer.repeat("0123456789abcdef", 1200));
        expect(text.length() == 19200 && text.endsWith("0123456789abcdef"), "the text is wrong");
    }

    // ----------------------------------------------------------------- exceptions

    private void userExceptions() throws Exception {
        StringHolder remark = new StringHolder("Fine");
        IntHolder code = new IntHolder();
        int result = recorded("risky", "choice=0 remark=\"Fine\"", "result=0 remark=\"fINE\" code=7", () -> peer.risky(0, remark, code));
        expect(result == 0 && code.value == 7 && remark.value.equals("fINE"), "risky(0) is wrong");
        try {
            recorded("risky_plain", "choice=1 remark=\"fINE\"", "exception=Plain{}", () -> peer.risky(1, remark, code));
            throw new Failure("risky(1) raised nothing");
        } catch (Plain e) {
            // as it should
        }
        try {
            remark.value = "Because";
            recorded("risky_detailed", "choice=2 remark=\"Because\"", "exception=Detailed{\"Because\",-2,blue,[1,2,3]}", () -> peer.risky(2, remark, code));
            throw new Failure("risky(2) raised nothing");
        } catch (Detailed e) {
            expect(e.why.equals("Because") && e.code == -2 && e.shade == Color.blue && Echo.text(e.trail).equals("[1,2,3]"), "Detailed is wrong");
        }
        Person lead = new Person("Lead", 3, Color.red);
        Team group = new Team(lead, new Person[] {lead}, new Point(1, 2), new Point(3, 4), "label", new int[0], new byte[] {0, 1, 2, 3, 4},
                              new int[][] {{0, 1}, {2, 3}});
        ByLong selection = new ByLong();
        selection.b(3, "Chosen");
        String g = Echo.text(group), s = Echo.text(selection);
        try {
            recorded("fail_nested", "group=" + g + " selection=" + s, "exception=Nested{" + g + "," + s + "}",
                     () -> { peer.fail_nested(group, selection); return null; });
            throw new Failure("fail_nested raised nothing");
        } catch (Nested e) {
            same(e.group, group, "group");
            same(e.selection, selection, "selection");
        }
    }

    /** Not TRANSIENT and COMM_FAILURE with COMPLETED_NO, which clients may answer by a retry. */
    private void systemExceptions() throws Exception {
        java.lang.Object[][] list = {
            {"NO_PERMISSION", 0x4f4d0001, 1}, {"BAD_PARAM", 0x4f4d0019, 0}, {"NO_IMPLEMENT", 0, 2}, {"INTERNAL", 0x12345678, 2},
            {"DATA_CONVERSION", 0x4f4d0001, 1}, {"TIMEOUT", 0x4f4d0003, 2}, {"BAD_INV_ORDER", 0x4f4d0004, 1}, {"NO_RESOURCES", 1, 0},
            {"BAD_QOS", -1, 0}, {"TRANSACTION_ROLLEDBACK", 2, 0}};
        String[] completed = {"YES", "NO", "MAYBE"};
        for (java.lang.Object[] e : list) {
            String kind = (String) e[0];
            int minorCode = (Integer) e[1], completion = (Integer) e[2];
            String words = kind + String.format(" 0x%08x", minorCode) + " COMPLETED_" + completed[completion];
            Call<java.lang.Object> call = () -> { peer.raise_system(kind, minorCode, (short) completion); return null; };
            String got = raised(() -> {
                if (e == list[0])
                    recorded("raise_system", "kind=\"" + kind + "\" minor_code=" + Integer.toUnsignedString(minorCode) + " completion=" + completion,
                             "exception=" + words, call);
                else call.run();
            });
            expect(got.equals(words), words + " came as " + got);
        }
    }

    private void unlistedException() throws Exception {
        String got = raised(() -> peer.raise_unlisted());
        expect(got.startsWith("UNKNOWN "), "raise_unlisted raised " + got);
    }

    private void unknownOperation() throws Exception {
        Guard wrong = GuardHelper.unchecked_narrow(peer);
        String got = raised(() -> recorded("unknown_operation", "", "exception=BAD_OPERATION", () -> { wrong.lock(); return null; }));
        expect(got.startsWith("BAD_OPERATION "), "an unknown operation raised " + got);
    }

    // ---------------------------------------------------------- attributes, oneways

    private void attributes() throws Exception {
        peer.reset();
        same(recorded("_get_counter", "", "result=0", () -> peer.counter()), 0, "counter");
        recorded("_set_counter", "value=-77", "", () -> { peer.counter(-77); return null; });
        same(peer.counter(), -77, "counter");
        Person p = new Person("Owner", 50, Color.green);
        recorded("_set_owner", "value={\"Owner\",50,green}", "", () -> { peer.owner(p); return null; });
        same(recorded("_get_owner", "", "result={\"Owner\",50,green}", () -> peer.owner()), p, "owner");
        peer.corners(new int[] {7, 8, 9});
        same(peer.corners(), new int[] {7, 8, 9}, "corners");
        peer.enabled_second(true);
        expect(!peer.enabled_first() && peer.enabled_second(), "enabled_first or enabled_second is wrong");
        same(recorded("_get_server_name", "", "result=\"" + server + "\"", () -> peer.server_name()), server, "server_name");
        peer.reset();
        same(peer.counter(), 0, "counter after reset");
    }

    /** Oneways arrive; a server that promises it (zorb) has them all, in order, when the next call runs. */
    private void oneways() throws Exception {
        peer.reset();
        int[] amounts = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
        for (int i = 0; i < 20; i++) {
            String line = "line " + i;
            if (i == 0) {
                recorded("jot", "line=\"line 0\"", "", () -> { peer.jot(line); Thread.sleep(recorder == null ? 0 : 50); return null; });
                recorded("count_up", "amounts=" + Echo.text(amounts), "", () -> { peer.count_up(amounts); Thread.sleep(recorder == null ? 0 : 50); return null; });
            } else {
                peer.jot(line);
                peer.count_up(amounts);
            }
        }
        java.util.List<String> lines = new java.util.ArrayList<>();
        long total = 0;
        for (int tries = 0; tries < 50; tries++) {
            lines.addAll(java.util.Arrays.asList(peer.take_lines()));
            total += peer.take_total();
            if (lines.size() == 20 && total == 900 || server.equals("zorb")) break;
            Thread.sleep(100);
        }
        expect(lines.size() == 20, lines.size() + " of 20 oneways arrived");
        expect(total == 900, "the total is " + total + ", should be 900");
        for (int i = 0; server.equals("zorb") && i < 20; i++) expect(lines.get(i).equals("line " + i), "the oneways came in another order");
    }

    private void keywords() throws Exception {
        Interop.Names.Keywords k = Interop.Names.KeywordsHelper.narrow(peer);
        k.impl(12);
        same(k.impl(), 12, "impl");
        int n = 0;
        for (String name : ("type match loop fn self crate _super move async await _new delete _class template namespace _final _synchronized"
                            + " _package narrow drop with_timeout _default _interface").split(" ")) {
            int sent = n++;
            Method m = Interop.Names.KeywordsOperations.class.getMethod(name, int.class);
            Call<java.lang.Object> call = () -> m.invoke(k, sent);
            java.lang.Object got = name.equals("_default") ? recorded("default", "in=21", "result=22", call)
                : name.equals("_interface") ? recorded("interface", "module=22", "result=23", call) : call.run();
            same(got, sent + 1, name);
        }
    }

    // ------------------------------------------------------------- other objects

    /** An object that is elsewhere: the second call may go there at once. */
    private void elsewhere(org.omg.CORBA.Object object, String what) throws Exception {
        if (object == null) throw new Skipped("the server has no object that " + what);
        Peer p = PeerHelper.unchecked_narrow(object);
        try {
            same(recorded("plus_one_forwarded", "a=1", "result=2", () -> p.plus_one(1)), 2, "plus_one(1) by an object that " + what);
            same(p.plus_one(2), 3, "plus_one(2) by an object that " + what);
        } catch (OBJECT_NOT_EXIST none) {
            if (server.equals("zorb")) throw none;
            throw new Skipped("the server has no object that " + what);
        }
    }

    private void unknownObject() throws Exception {
        org.omg.CORBA.Object object = orb.string_to_object("corbaloc:iiop:1." + minor + "@127.0.0.1:" + port + "/no-such-object");
        Peer p = PeerHelper.unchecked_narrow(object);
        String got = raised(p::ping);
        expect(got.startsWith("OBJECT_NOT_EXIST "), "a call of an unknown object raised " + got);
        expect(object._non_existent(), "_non_existent of an unknown object says no");
    }

    /**
     * Attributes that raise exceptions. By hand where they do: the stubs of JacORB 3.9
     * close the reply before they read such an exception from it.
     */
    private void guard() throws Exception {
        if (guard == null) throw new Skipped("the server has no guard.idl");
        guard.unlock();
        guard.guarded("open");
        same(guard.guarded(), "open", "guarded");
        same(guard.fragile(), 4, "fragile");
        expect(refusedAccess("_set_guarded", "far too long").equals("Refused too long 12"), "a long text was not refused");
        guard.guarded("");
        expect(refusedAccess("_get_fragile", null).equals("Refused empty 0"), "fragile of an empty text was not refused");
        guard.guarded("open");
        guard.lock();
        expect(refusedAccess("_get_guarded", null).equals("Locked"), "guarded was not locked");
        guard.unlock();
    }

    private String refusedAccess(String operation, String value) throws Exception {
        org.omg.CORBA.portable.ObjectImpl object = (org.omg.CORBA.portable.ObjectImpl) guard;
        org.omg.CORBA.portable.OutputStream out = object._request(operation, true);
        if (value != null) out.write_string(value);
        try {
            object._invoke(out);
            return "nothing";
        } catch (org.omg.CORBA.portable.ApplicationException e) {
            if (e.getId().equals(LockedHelper.id())) return "Locked";
            Refused refused = RefusedHelper.read(e.getInputStream());
            return "Refused " + refused.why + " " + refused.length;
        }
    }
}
