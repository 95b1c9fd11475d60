import com.sun.corba.ee.impl.orb.ORBImpl;
import org.omg.CORBA.ORB;

/** What only GlassFish's ORB has; see JacORB's class of this name. */
final class Orbs {
    static final String NAME = "GlassFish";

    private Orbs() { }

    static String[] properties(boolean utf8) {
        return new String[] {
            "org.omg.CORBA.ORBClass", "com.sun.corba.ee.impl.orb.ORBImpl",
            "org.omg.CORBA.ORBSingletonClass", "com.sun.corba.ee.impl.orb.ORBSingleton",
            "com.sun.corba.ee.codeset.charsets", utf8 ? "0x05010001,0x00010001" : "0x00010001,0x05010001",
            "com.sun.corba.ee.transport.ORBWaitForResponseTimeout", "30000",
            "com.sun.corba.ee.ORBServerHost", "127.0.0.1"};
    }

    static String[] server(String port, String giop, String... more) {
        String[] own = {"com.sun.corba.ee.ORBServerPort", port, "com.sun.corba.ee.giop.ORBGIOPVersion", giop};
        String[] all = java.util.Arrays.copyOf(own, own.length + more.length);
        System.arraycopy(more, 0, all, own.length, more.length);
        return all;
    }

    static String[] locating() { return new String[0]; }

    /** The server answers requests for such a key by LOCATION_FORWARD. */
    static void name(ORB orb, String key, org.omg.CORBA.Object object) throws Exception {
        ((ORBImpl) orb).register_initial_reference(key, object);
    }

    /** In GIOP 1.0 the server refuses it, without code sets this client does. */
    static String refusal(Checks x) {
        if (x.minor == 0) return "MARSHAL 0x4f4d0005 COMPLETED_NO";
        return x.codeSets ? null : "INV_OBJREF 0x53550001 COMPLETED_NO";
    }

    static String known(String check) {
        if (check.equals("any_flag")) return "known defect of GlassFish: it does not write an any with a union that has no member";
        if (check.equals("any_fixed")) return "known defect of GlassFish: it takes a fixed value of a struct in an any for two numbers more";
        if (check.equals("any_value")) return "known defect of GlassFish: it does not read a value in an any by its factory";
        if (check.equals("any_char")) return "known defect of GlassFish: a thread whose first string was an empty one writes no character";
        return null;
    }

    static String known(String check, Checks x) {
        String defect = "known defect of GlassFish's client: ";
        if (check.equals("large_octets") && x.minor < 2)
            return defect + "it drops the connection at a message of more than 256,000 bytes, and below GIOP 1.2 zorb can not cut it";
        if (check.equals("echo_wstring") && x.codeSets) return defect + "it does not send one half of a surrogate pair";
        if (check.equals("echo_caption") && x.codeSets && x.minor == 1) return defect + "in GIOP 1.1 it can not send a wide character behind an empty wide string";
        return null;
    }
}
