import InteropLogin.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.Properties;
import org.jacorb.sasPolicy.SASPolicyValues;
import org.jacorb.sasPolicy.SASPolicyValuesHelper;
import org.jacorb.sasPolicy.SAS_POLICY_TYPE;
import org.jacorb.security.sas.GssUpContext;
import org.jacorb.security.sas.SASInitializer;
import org.omg.CORBA.Any;
import org.omg.CORBA.NO_PERMISSION;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.CSIIOP.EstablishTrustInClient;
import org.omg.IOP.Codec;
import org.omg.PortableServer.*;

/**
 * server --ior PATH [--seconds S]: serves login.idl for the user ann with the password `a secret` until SIGTERM. Prints READY.
 * client --ior PATH [--seconds S]: logs in at a server of login.idl which knows that user. Prints `ok NAME` or `FAIL NAME: why` for each check.
 */
public final class LoginPeer {
    private static final String SAS = "org.omg.PortableInterceptor.ORBInitializerClass.org.jacorb.security.sas.SASInitializer";

    /** JacORB decodes logins, but has nobody who looks at the password. */
    public static final class Passwords extends GssUpContext {
        public boolean validateContext(ORB orb, Codec codec, byte[] token) {
            if (!super.validateContext(orb, codec, token)) return false;
            return text(initialContextToken.username).equals("ann") && text(initialContextToken.password).equals("a secret");
        }

        private static String text(byte[] octets) { return new String(octets, StandardCharsets.UTF_8); }
    }

    private static final class DoorImpl extends DoorPOA {
        private final ORB orb;

        DoorImpl(ORB orb) { this.orb = orb; }

        public String caller() {
            try {
                org.omg.PortableInterceptor.Current current =
                    (org.omg.PortableInterceptor.Current) orb.resolve_initial_references("PICurrent");
                return current.get_slot(SASInitializer.sasPrincipalNamePIC).extract_string();
            } catch (Exception e) {
                return e.toString();
            }
        }

        public int plus_one(int number) { return number + 1; }
    }

    private static void serve(Options o) throws Exception {
        ORB orb = o.peerOrb("UTF-8", SAS, "", "jacorb.security.sas.contextClass", Passwords.class.getName());
        POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        Any sas = orb.create_any();
        short login = (short) EstablishTrustInClient.value;
        SASPolicyValuesHelper.insert(sas, new SASPolicyValues(login, login, true));
        Policy[] policies = {orb.create_policy(SAS_POLICY_TYPE.value, sas)};
        POA guarded = root.create_POA("guarded", root.the_POAManager(), policies);
        root.the_POAManager().activate();
        org.omg.CORBA.Object door = guarded.id_to_reference(guarded.activate_object(new DoorImpl(orb)));
        Path file = Paths.get(o.get("--ior", "login.ior"));
        Files.write(file, (orb.object_to_string(door) + "\n").getBytes());
        System.out.println("READY " + orb.object_to_string(door));
        orb.run();
    }

    private static int failed;

    private interface Check {
        void run() throws Exception;
    }

    private static void check(String name, Check check) {
        try {
            check.run();
            System.out.println("ok " + name);
        } catch (Throwable e) {
            failed++;
            System.out.println("FAIL " + name + ": " + e);
        }
    }

    private static void expect(Object expected, Object found) {
        if (!expected.equals(found)) throw new IllegalStateException("`" + found + "`, not `" + expected + "`");
    }

    private static int orbs;

    /** The server's object, called by an ORB with a connection of its own. JacORB has one login for all of them. */
    private static Door door(Options o, String stateful, String user, String password) throws Exception {
        GssUpContext.setUsernamePassword(user, password);
        String[] common = {"org.omg.CORBA.ORBServerId", "login" + orbs++, "jacorb.security.sas.stateful", stateful,
                           "jacorb.security.sas.contextClass", GssUpContext.class.getName(), SAS, ""};
        String[] none = {"org.omg.CORBA.ORBServerId", "login" + orbs++};
        ORB orb = o.peerOrb("UTF-8", user == null ? none : common);
        return DoorHelper.unchecked_narrow(orb.string_to_object(Files.readString(Paths.get(o.get("--ior", "login.ior"))).trim()));
    }

    private static void refused(Door door, int minor) {
        for (int i = 0; i < 2; i++) {
            try {
                door.plus_one(1);
            } catch (NO_PERMISSION e) {
                expect(Integer.toHexString(minor), Integer.toHexString(e.minor));
                expect(1, e.completed.value());
                continue;
            }
            throw new IllegalStateException("it was not refused");
        }
    }

    private static void call(Options o) {
        for (String stateful : new String[] {"true", "false"}) {
            check("login_stateful_" + stateful, () -> {
                Door door = door(o, stateful, "ann", "a secret");
                for (int i = 0; i < 4; i++) {
                    expect("Login ann", door.caller());
                    expect(i + 1, door.plus_one(i));
                }
            });
            check("wrong_password_stateful_" + stateful, () -> refused(door(o, stateful, "ann", "another"), 0x5a4f0002));
        }
        // Its length takes two octets.
        check("long_password", () -> expect("Login zoe", door(o, "true", "zoe", "z".repeat(300)).caller()));
        check("no_login", () -> refused(door(o, "false", null, null), 0x5a4f0001));
    }

    public static void main(String[] args) throws Exception {
        Options o = new Options(args);
        o.exitAfter("300");
        if (args.length > 0 && args[0].equals("server")) serve(o);
        else call(o);
        System.out.flush();
        Runtime.getRuntime().halt(failed > 0 ? 1 : 0);
    }
}
