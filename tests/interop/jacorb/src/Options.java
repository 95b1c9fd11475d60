import java.util.Properties;
import org.omg.CORBA.ORB;

/** Command line and ORB set-up of servers and clients. */
final class Options {
    private final String[] args;

    Options(String[] args) { this.args = args; }

    String get(String name, String dflt) {
        for (int i = 0; i + 1 < args.length; i++)
            if (args[i].equals(name)) return args[i + 1];
        return dflt;
    }

    int num(String name, int dflt) { return Integer.parseInt(get(name, "" + dflt)); }

    boolean flag(String name) { return java.util.Arrays.asList(args).contains(name); }

    /** Ends the process after --seconds, so that nothing is left behind when the test that started it dies. */
    void exitAfter(String seconds) {
        long millis = 1000L * Integer.parseInt(get("--seconds", seconds));
        Thread end = new Thread(() -> {
            try {
                Thread.sleep(millis);
            } catch (InterruptedException e) {
                return;
            }
            System.err.println("time is up");
            Runtime.getRuntime().halt(3);
        });
        end.setDaemon(true);
        end.start();
    }

    /** Of the interoperability tests. chars: the native code set unless --chars says another. */
    ORB peerOrb(String chars, String... more) {
        java.util.logging.LogManager.getLogManager().reset();    // an exception sent to a client is no news
        Properties p = new Properties();
        set(p, Orbs.properties(get("--chars", chars).equals("UTF-8")));
        set(p, more);
        return ORB.init(args, p);
    }

    private static void set(Properties p, String... pairs) {
        for (int i = 0; i < pairs.length; i += 2)
            p.setProperty(pairs[i], System.getProperty(pairs[i], pairs[i + 1]));
    }
}
