import bench.*;
import java.nio.file.*;
import java.util.concurrent.atomic.AtomicLong;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.PortableServer.*;

/**
 * BenchServer --ior PATH [--host ADDRESS] --port P [--objects N [--serving map|ids|default]] [--seconds S] [--poa multi|single] [--sockbuf BYTES] [--check]
 * --check: compare each element with what clients send, and end with 4 where one differs.
 * Writes the IOR of Ttcp to PATH, that of Wide to PATH.wide and that of Series to PATH.series; corbaloc names
 * them corbaloc::ADDRESS:P/ttcp, /wide and /series.
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

    static final class WideImpl extends WidePOA {
        public void m000() { } public void m001() { } public void m002() { } public void m003() { } public void m004() { }
        public void m005() { } public void m006() { } public void m007() { } public void m008() { } public void m009() { }
        public void m010() { } public void m011() { } public void m012() { } public void m013() { } public void m014() { }
        public void m015() { } public void m016() { } public void m017() { } public void m018() { } public void m019() { }
        public void m020() { } public void m021() { } public void m022() { } public void m023() { } public void m024() { }
        public void m025() { } public void m026() { } public void m027() { } public void m028() { } public void m029() { }
        public void m030() { } public void m031() { } public void m032() { } public void m033() { } public void m034() { }
        public void m035() { } public void m036() { } public void m037() { } public void m038() { } public void m039() { }
        public void m040() { } public void m041() { } public void m042() { } public void m043() { } public void m044() { }
        public void m045() { } public void m046() { } public void m047() { } public void m048() { } public void m049() { }
        public void m050() { } public void m051() { } public void m052() { } public void m053() { } public void m054() { }
        public void m055() { } public void m056() { } public void m057() { } public void m058() { } public void m059() { }
        public void m060() { } public void m061() { } public void m062() { } public void m063() { } public void m064() { }
        public void m065() { } public void m066() { } public void m067() { } public void m068() { } public void m069() { }
        public void m070() { } public void m071() { } public void m072() { } public void m073() { } public void m074() { }
        public void m075() { } public void m076() { } public void m077() { } public void m078() { } public void m079() { }
        public void m080() { } public void m081() { } public void m082() { } public void m083() { } public void m084() { }
        public void m085() { } public void m086() { } public void m087() { } public void m088() { } public void m089() { }
        public void m090() { } public void m091() { } public void m092() { } public void m093() { } public void m094() { }
        public void m095() { } public void m096() { } public void m097() { } public void m098() { } public void m099() { }
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
        publish(orb, poa, new WideImpl(), "wide", Paths.get(path + ".wide"));
        publish(orb, poa, new SeriesImpl(), "series", Paths.get(path + ".series"));
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
