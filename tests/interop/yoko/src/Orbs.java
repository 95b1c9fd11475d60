import org.apache.yoko.orb.OB.BootManagerHelper;
import org.omg.CORBA.ORB;

/** What only Yoko has; see JacORB's class of this name. */
final class Orbs {
    static final String NAME = "Yoko";

    private static final String ENDPOINT = "iiop --host 127.0.0.1 --bind 127.0.0.1";

    private Orbs() { }

    /** The native code set is ISO 8859-1 always: Yoko refuses UTF-8 for it. */
    static String[] properties(boolean utf8) {
        return new String[] {
            "org.omg.CORBA.ORBClass", "org.apache.yoko.orb.CORBA.ORB",
            "org.omg.CORBA.ORBSingletonClass", "org.apache.yoko.orb.CORBA.ORBSingleton",
            "yoko.orb.policy.request_timeout", "30000",
            "yoko.orb.oa.endpoint", ENDPOINT};
    }

    static String[] server(String port, String giop, String... more) {
        String[] own = {"yoko.orb.oa.endpoint", ENDPOINT + (port.equals("0") ? "" : " --port " + port), "yoko.orb.oa.version", giop};
        String[] all = java.util.Arrays.copyOf(own, own.length + more.length);
        System.arraycopy(more, 0, all, own.length, more.length);
        return all;
    }

    static String[] locating() { return new String[0]; }

    /** The server answers requests for such a key by LOCATION_FORWARD. */
    static void name(ORB orb, String key, org.omg.CORBA.Object object) throws Exception {
        BootManagerHelper.narrow(orb.resolve_initial_references("BootManager")).add_binding(key.getBytes(), object);
    }

    /** This client sends none where it has no code set. */
    static String refusal(Checks x) { return x.codeSets ? null : "INV_OBJREF 0x4f4d0002 COMPLETED_NO"; }

    static String known(String check) {
        return check.equals("any_fixed") ? "known defect of Yoko: it writes a fixed value in an any without its leading zeros" : null;
    }

    static String known(String check, Checks x) {
        String defect = "known defect of Yoko's client: ";
        if (!x.codeSets) return null;
        if (check.equals("utf8_text")) return defect + "it sends no text beyond ISO 8859-1, in UTF-8 either";
        if (x.minor == 1 && (PeerClient.WIDE.contains(check) || check.equals("wide_greeting")))
            return defect + "in GIOP 1.1 it reads wide text as big-endian, in little-endian messages too";
        if (check.equals("echo_wstring")) return defect + "it can not send a surrogate pair";
        return null;
    }
}
