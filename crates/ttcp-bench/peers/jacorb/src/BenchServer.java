import bench.*;
import java.nio.file.*;
import java.util.concurrent.atomic.AtomicLong;
import org.omg.CORBA.LongHolder;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.PortableServer.*;

/**
 * BenchServer --ior PATH [--host ADDRESS] --port P [--objects N [--serving map|ids|default]] [--seconds S] [--poa multi|single] [--sockbuf BYTES] [--check]
 * --check: compare each element with what clients send, and end with 4 where one differs.
 * Writes the IOR of Ttcp to PATH and those of the others to PATH.wide and so on;
 * corbaloc names them corbaloc::ADDRESS:P/ttcp, /wide and so on.
 */
public final class BenchServer {
    static class TtcpImpl extends TtcpPOA {
        private final AtomicLong bytes = new AtomicLong();

        private final boolean check;

        TtcpImpl(boolean check) { this.check = check; }

        private void add(int n, long each, BenchPattern.Element element) {
            if (check) BenchPattern.demand(n, element);
            bytes.addAndGet(each * n);
        }

        public void sendShortSeq(short[] s) { add(s.length, 2, i -> s[i] == BenchPattern.letter(i)); }
        public void sendLongSeq(int[] s) { add(s.length, 4, i -> s[i] == BenchPattern.letter(i)); }
        public void sendDoubleSeq(double[] s) { add(s.length, 8, i -> s[i] == BenchPattern.letter(i)); }
        public void sendCharSeq(char[] s) { add(s.length, 1, i -> s[i] == BenchPattern.letter(i)); }
        public void sendOctetSeq(byte[] s) { add(s.length, 1, i -> s[i] == BenchPattern.letter(i)); }
        public void sendStructSeq(BinStruct[] s) { add(s.length, 24, i -> BenchPattern.same(s[i], BenchPattern.struct(i))); }
        public long sync() { return bytes.getAndSet(0); }
        public void ping() { }
        public byte[] echoOctets(byte[] s) { return s; }
        public BinStruct[] echoStructs(BinStruct[] s) { return s; }
    }

    /** Calls of the last operations of all interfaces, and of their others, since they were asked for. */
    static final AtomicLong lasts = new AtomicLong(), others = new AtomicLong();

    static final class TallyImpl extends TallyPOA {
        public void take(LongHolder last, LongHolder other) {
            last.value = lasts.getAndSet(0);
            other.value = others.getAndSet(0);
        }
    }

    public static void main(String[] args) throws Exception {
        BenchOptions o = new BenchOptions(args);
        o.exitAfter("3600");
        ORB orb = o.orb("OAIAddr", o.get("--host", "127.0.0.1"), "OAPort", o.get("--port", "47003"),
                       // A thread a connection, of which there are 1000 otherwise.
                       "jacorb.connection.server.max_receptor_threads", "20000");
        POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        ThreadPolicyValue threads = o.get("--poa", "multi").equals("single")
            ? ThreadPolicyValue.SINGLE_THREAD_MODEL : ThreadPolicyValue.ORB_CTRL_MODEL;
        POA poa = root.create_POA("bench", root.the_POAManager(), new Policy[] { root.create_thread_policy(threads) });
        poa.the_POAManager().activate();
        Path path = Paths.get(o.get("--ior", "server.ior"));
        BenchObjects.activate(orb, root, o, path, () -> new TtcpImpl(o.has("--check")));
        Servant[] rest = { new WideImpl(), new SeriesImpl(), new WideOnewayImpl(), new ThousandImpl(), new ThousandOnewayImpl(), new TallyImpl() };
        String[] keys = { "wide", "series", "wide-oneway", "thousand", "thousand-oneway", "tally" };
        for (int i = 0; i < rest.length; i++) publish(orb, poa, rest[i], keys[i], Paths.get(path + "." + keys[i]));
        publish(orb, poa, new TtcpImpl(o.has("--check")), "ttcp", path);
        System.out.println("READY " + path);
        orb.run();
    }

    private static void publish(ORB orb, POA poa, Servant servant, String key, Path path) throws Exception {
        org.omg.CORBA.Object ref = poa.id_to_reference(poa.activate_object(servant));
        ((org.jacorb.orb.ORB) orb).addObjectKey(key, ref);
        Files.write(path, (orb.object_to_string(ref) + "\n").getBytes());
    }
}
