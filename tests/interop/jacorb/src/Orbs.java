import org.omg.CORBA.ORB;

/** What only JacORB has. Each ORB for Java has a class of this name with these methods, and shares the other classes. */
final class Orbs {
    static final String NAME = "JacORB";

    private Orbs() { }

    /** The properties of every ORB, names and values. utf8: the native code set is UTF-8, not ISO 8859-1. */
    static String[] properties(boolean utf8) {
        return new String[] {
            "org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB",
            "org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton",
            "jacorb.native_char_codeset", utf8 ? "05010001" : "00010001",
            "jacorb.native_wchar_codeset", "00010109",
            "jacorb.poa.queue_wait", "on",         // else oneways beyond queue_max are thrown away
            "jacorb.retries", "0",
            "jacorb.connection.client.pending_reply_timeout", "30000",
            "OAIAddr", "127.0.0.1"};
    }

    /** Of a server at this port (0: any), with this version in its references, and more. */
    static String[] server(String port, String giop, String... more) {
        String[] own = {"OAPort", port, "jacorb.giop_minor_version", giop.substring(2)}, all = java.util.Arrays.copyOf(own, own.length + more.length);
        System.arraycopy(more, 0, all, own.length, more.length);
        return all;
    }

    /** Of a client that begins with a LocateRequest. */
    static String[] locating() { return new String[] {"jacorb.locate_on_bind", "on", "org.omg.CORBA.ORBServerId", "locating"}; }

    /** Makes `corbaloc:iiop:HOST:PORT/key` reach the object. */
    static void name(ORB orb, String key, org.omg.CORBA.Object object) throws Exception { ((org.jacorb.orb.ORB) orb).addObjectKey(key, object); }

    /** What must come of wide arguments where there is no code set for them; null where they are sent. This client sends them even in GIOP 1.0. */
    static String refusal(Checks x) {
        if (x.minor > 0) return null;
        return x.server.equals("JacORB") ? "MARSHAL 0x00000005 COMPLETED_NO" : "MARSHAL 0x4f4d0005 COMPLETED_NO";
    }

    /** Why this ORB can not pass the check of anys, "any_" and its name, or have the sample; null where it can. */
    static String known(String check) { return null; }

    /** The same of the client's checks of a server. */
    static String known(String check, Checks x) {
        if (x.minor == 1 && x.server.equals("omniORB")) {
            if (PeerClient.WIDE.contains(check) || check.equals("wide_greeting")) return "omniORB has no wide text in GIOP 1.1";
            if (PeerClient.LARGE.contains(check)) return "JacORB takes no GIOP 1.1 fragments, which omniORB sends";
        }
        if (check.equals("utf8_text") && !x.codeSets) return "known defect of JacORB's client: it cuts characters beyond ISO 8859-1 to eight bits";
        return null;
    }
}
