import Interop.*;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.omg.CORBA.ORB;
import org.omg.CORBA.SystemException;
import org.omg.PortableServer.POAHelper;

/**
 * PeerClient --ior PATH|IOR:...|corbaloc:iiop:[V@]HOST:PORT[/KEY] [--giop 1.0|1.1|1.2]
 *            [--check NAME,...|all] [--chars UTF-8|ISO-8859-1] [--seconds S] [--list]
 *            [--record DIRECTORY]
 * Drives every operation of types.idl against any server of it. Prints "ok NAME",
 * "FAIL NAME: why" or "skip NAME: why" for each check; status 0 if nothing failed.
 * --record: stores the first call of each check as fixtures in the directory.
 * PeerClient batch [--seconds S]: drives servers by each line of its input, which has such options with tabs for blanks, and says END STATUS
 * behind it.
 */
public final class PeerClient {
    static final List<String> WIDE = Arrays.asList("echo_wchar", "echo_wstring", "echo_wchar_seq", "echo_wstring_seq", "echo_caption",
                                              "echo_wide_choice");
    static final List<String> LARGE = Arrays.asList("large_octets", "large_doubles", "large_strings", "large_structs", "large_reply",
                                               "echo_big_array");

    private static void run(String name, Checks x) throws Exception {
        String known = Orbs.known(name, x);
        if (known != null) throw new Checks.Skipped(known);
        String refusal = WIDE.contains(name) ? Orbs.refusal(x) : null;
        if (refusal != null) x.refused(x.all.get(name), refusal);
        else x.all.get(name).run();
    }

    /** The server publishes an object of this name: a file beside the IOR's, or a key. */
    private static org.omg.CORBA.Object companion(ORB orb, String ior, String version, String name) {
        try {
            String base = ior.startsWith("corbaloc:") ? ior.split("/")[0] : ior + "." + name;
            org.omg.CORBA.Object object = orb.string_to_object(new Reference(base, version, name, 0).text);
            return !name.equals("forward") && !name.equals("moved") && object._non_existent() ? null : object;
        } catch (IOException | SystemException none) {
            return null;
        }
    }

    /** A LocateRequest, which JacORB sends only when told so, and what an ORB sends that shuts down. */
    private static void recordRest(Options o, Checks x, String text) throws Exception {
        ORB locating = o.peerOrb("UTF-8", Orbs.locating());
        Peer peer = PeerHelper.unchecked_narrow(locating.string_to_object(text));
        x.recorded("locate", "", "result=false", () -> peer._non_existent());
        x.recorded("shutdown", "", "", () -> {
            locating.shutdown(true);
            Thread.sleep(200);
            return null;
        });
    }

    public static void main(String[] args) throws Exception {
        Options o = new Options(args);
        o.exitAfter("300");
        if (o.flag("--list")) {
            new Checks().all.keySet().forEach(System.out::println);
            return;
        }
        int status = 0;
        if (o.flag("batch")) batch();
        else status = drive(o);
        System.out.flush();
        Runtime.getRuntime().halt(status);
    }

    private static void batch() throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null;) {
            System.out.println("END " + drive(new Options(line.split("\t"))));
            System.out.flush();
        }
    }

    /** Runs the checks; gives the status. */
    private static int drive(Options o) throws Exception {
        Checks x = new Checks();
        String version = o.get("--giop", ""), ior = o.get("--ior", "interop.ior"), directory = o.get("--record", null);
        List<String> only = Arrays.asList(o.get("--check", "all").split(","));
        Reference reference = new Reference(ior, version, "interop", 0);
        x.minor = reference.minor;
        x.codeSets = reference.codeSets;
        x.port = reference.port;
        // Without code sets JacORB takes its native set for what it sends: it should be ISO 8859-1.
        x.orb = o.peerOrb(x.codeSets ? "UTF-8" : "ISO-8859-1");
        x.poa = POAHelper.narrow(x.orb.resolve_initial_references("RootPOA"));
        x.poa.the_POAManager().activate();
        String text = reference.text;
        if (directory != null) {
            x.recorder = new Recorder(directory, reference.port);
            text = new Reference(ior, version, "interop", x.recorder.port()).text;
        }
        int failed = 0;
        try {
            org.omg.CORBA.Object object = x.orb.string_to_object(text);
            x.peer = directory == null ? PeerHelper.narrow(object) : PeerHelper.unchecked_narrow(object);
            if (directory != null) x.recorded("first_contact", "", "result=false", () -> x.peer._non_existent());
            x.server = x.peer.server_name();
            org.omg.CORBA.Object guard = companion(x.orb, ior, version, "guard");
            x.guard = guard == null ? null : GuardHelper.narrow(guard);
            x.forward = companion(x.orb, ior, version, "forward");
            x.moved = companion(x.orb, ior, version, "moved");
        } catch (SystemException e) {
            System.err.println("client: " + Checks.describe(e) + " " + e.getMessage());
            return 2;
        }
        for (Map.Entry<String, Checks.Check> check : x.all.entrySet()) {
            String name = check.getKey();
            if (!only.contains("all") && !only.contains(name)) continue;
            String why;
            try {
                run(name, x);
                System.out.println("ok " + name);
                continue;
            } catch (Checks.Skipped e) {
                System.out.println("skip " + name + ": " + e.getMessage());
                continue;
            } catch (Checks.Failure e) {
                why = e.getMessage();
            } catch (SystemException e) {
                why = Checks.describe(e) + " " + e.getMessage();
            } catch (Exception e) {
                why = e.toString();
            }
            failed++;
            System.out.println("FAIL " + name + ": " + why.substring(0, Math.min(2000, why.length())));
        }
        if (x.recorder != null) recordRest(o, x, text);
        x.orb.shutdown(false);
        return failed > 0 ? 1 : 0;
    }
}
