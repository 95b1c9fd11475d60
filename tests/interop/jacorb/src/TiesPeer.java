import InteropTies.*;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.*;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.omg.BiDirPolicy.BIDIRECTIONAL_POLICY_TYPE;
import org.omg.BiDirPolicy.BOTH;
import org.omg.BiDirPolicy.BidirectionalPolicyValueHelper;
import org.omg.CORBA.Any;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.CORBA.StringHolder;
import org.omg.CORBA.SystemException;
import org.omg.PortableServer.*;

/**
 * server --ior PATH [--port P] [--seconds S]: serves ties.idl until SIGTERM: a Tower that calls back over the
 * connections that its clients opened (PATH) and a Lasting (PATH.lasting), both of a persistent POA, and under the
 * plain keys `tower` and `lasting`. Prints READY, and STAYS for each call that stays.
 * client --tower REF --lasting REF,.. [--seconds S]: has a Bell that is called back over its connection. Prints READY,
 * then does what the lines of its input say, each in a thread of its own, and prints `LINE = RESULT`:
 *   ring N, pass N, hint N   by the tower, of the own bell; pass: N octets, the result is how many came back as they were
 *   speak                    has the tower talk to the own bell
 *   keep, kept N             has the tower keep the bell, and ring the one that it keeps
 *   next I N, stay I         the I-th Lasting
 *   end                      closes the connections in order
 */
public final class TiesPeer {
    private static final String GREETING = "Gr\u00fc\u00df dich \u20ac";

    private static synchronized void print(String line) { System.out.println(line); }

    private static String raised(SystemException e) {
        String[] completions = {"YES", "NO", "MAYBE"};
        return e.getClass().getSimpleName() + " COMPLETED_" + completions[e.completed.value()];
    }

    private static void staysHere() {
        print("STAYS");
        while (true) {
            try {
                Thread.sleep(60_000);
            } catch (InterruptedException e) {
                // stays
            }
        }
    }

    private static final class BellImpl extends BellPOA {
        private final AtomicInteger sum = new AtomicInteger();

        public int ring(int number) {
            if (number < 0) staysHere();
            return 10 * number;
        }

        public byte[] echo(byte[] data) { return data; }

        public void hint(int number) { sum.addAndGet(number); }

        public int hinted() { return sum.getAndSet(0); }

        public void speak(StringHolder text, StringHolder wide) {
            text.value += "!";
            wide.value += "!";
        }
    }

    private static final class TowerImpl extends TowerPOA {
        private volatile Bell kept;

        public int ring(Bell target, int times) {
            int sum = 0;
            for (int i = 0; i < times; i++) sum += target.ring(i);
            return sum;
        }

        public byte[] pass(Bell target, byte[] data) { return target.echo(data); }

        public int hint(Bell target, int times) {
            for (int i = 0; i < times; i++) target.hint(1);
            int sum = 0;                    // oneways may be overtaken
            while (sum < times) sum += target.hinted();
            return sum;
        }

        public boolean speak(Bell target) {
            StringHolder text = new StringHolder(GREETING), wide = new StringHolder(GREETING);
            target.speak(text, wide);
            return text.value.equals(GREETING + "!") && wide.value.equals(GREETING + "!");
        }

        public void keep(Bell target) { kept = target; }

        public String ring_kept(int number) {
            try {
                return "" + kept.ring(number);
            } catch (SystemException e) {
                return raised(e);
            }
        }
    }

    private static final class LastingImpl extends LastingPOA {
        public int next(int number) { return number + 1; }

        public void stay() { staysHere(); }
    }

    private static ORB orb;
    private static Tower tower;
    private static Bell bell;
    private static final List<Lasting> lasting = new ArrayList<>();

    private static String done(String line) {
        String[] words = (line + " 0 0").split(" ");
        try {
            int a = Integer.parseInt(words[1]);
            switch (words[0]) {
                case "ring": return "" + tower.ring(bell, a);
                case "hint": return "" + tower.hint(bell, a);
                case "pass": {
                    byte[] sent = new byte[a];
                    for (int i = 0; i < a; i++) sent[i] = (byte) (i * 7);
                    return Arrays.equals(tower.pass(bell, sent), sent) ? "" + a : "others";
                }
                case "speak": return tower.speak(bell) ? "understood" : "others";
                case "keep": tower.keep(bell); return "kept";
                case "kept": return tower.ring_kept(a);
                case "next": return "" + lasting.get(a).next(Integer.parseInt(words[2]));
                case "stay": lasting.get(a).stay(); return "left";
                default: return "no such line";
            }
        } catch (SystemException e) {
            return raised(e);
        }
    }

    private static void publish(POA poa, String name, Servant servant, String path) throws Exception {
        poa.activate_object_with_id(name.getBytes(), servant);
        org.omg.CORBA.Object object = poa.id_to_reference(name.getBytes());
        ((org.jacorb.orb.ORB) orb).addObjectKey(name, object);
        Path made = Path.of(path + ".new");
        Files.writeString(made, orb.object_to_string(object) + "\n");
        Files.move(made, Path.of(path), StandardCopyOption.ATOMIC_MOVE);
    }

    public static void main(String[] args) throws Exception {
        Options o = new Options(args);
        o.exitAfter("300");
        boolean client = args[0].equals("client");
        orb = o.peerOrb("UTF-8", "OAPort", o.get("--port", "0"), "jacorb.implname", "ties",
                        "org.omg.PortableInterceptor.ORBInitializerClass.bidir", "org.jacorb.orb.giop.BiDirConnectionInitializer");
        POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        Any both = orb.create_any();
        BidirectionalPolicyValueHelper.insert(both, BOTH.value);
        List<Policy> policies = new ArrayList<>();
        policies.add(orb.create_policy(BIDIRECTIONAL_POLICY_TYPE.value, both));
        if (!client) {
            policies.add(root.create_lifespan_policy(LifespanPolicyValue.PERSISTENT));
            policies.add(root.create_id_assignment_policy(IdAssignmentPolicyValue.USER_ID));
        }
        POA poa = root.create_POA("ties", root.the_POAManager(), policies.toArray(new Policy[0]));
        root.the_POAManager().activate();
        if (!client) {
            String path = o.get("--ior", "ties.ior");
            publish(poa, "lasting", new LastingImpl(), path + ".lasting");
            publish(poa, "tower", new TowerImpl(), path);
            print("READY " + Files.readString(Path.of(path)).trim());
            orb.run();
            return;
        }
        bell = BellHelper.narrow(poa.id_to_reference(poa.activate_object(new BellImpl())));
        if (o.get("--tower", null) != null) tower = TowerHelper.unchecked_narrow(orb.string_to_object(o.get("--tower", "")));
        for (String reference : o.get("--lasting", "").split(","))
            if (!reference.isEmpty()) lasting.add(LastingHelper.unchecked_narrow(orb.string_to_object(reference)));
        print("READY");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null && !line.equals("end"); line = lines.readLine()) {
            String what = line;
            Thread thread = new Thread(() -> print(what + " = " + done(what)));
            thread.setDaemon(true);
            thread.start();
        }
        orb.shutdown(true);
        print("end = ended");
        Runtime.getRuntime().halt(0);
    }
}
