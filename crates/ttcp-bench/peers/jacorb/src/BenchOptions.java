import java.util.Arrays;
import java.util.Properties;
import org.omg.CORBA.ORB;

/** Command line and ORB set-up of server and client. */
final class BenchOptions {
    private final String[] args;

    BenchOptions(String[] args) { this.args = args; }

    String get(String name, String dflt) {
        for (int i = 0; i + 1 < args.length; i++)
            if (args[i].equals(name)) return args[i + 1];
        return dflt;
    }

    boolean has(String name) { return Arrays.asList(args).contains(name); }

    int num(String name, int dflt) { return Integer.parseInt(get(name, "" + dflt)); }

    /** Ends the process after --seconds, so that nothing is left behind when what started it dies. */
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

    /** System properties (-D) override the settings chosen here. */
    ORB orb(String... more) {
        Properties p = new Properties();
        set(p, "org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB",
               "org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton",
               "jacorb.log.default.verbosity", "1",
               "jacorb.poa.queue_wait", "on",         // else oneways beyond queue_max are thrown away
               "jacorb.poa.thread_pool_max", "128",
               "jacorb.maxManagedBufSize", "28");     // pool buffers up to 2^28 bytes
        String sockbuf = get("--sockbuf", null);
        if (sockbuf != null)
            set(p, "bench.sockbuf", sockbuf,
                   "jacorb.net.socket_factory", "BenchSockets",
                   "jacorb.net.server_socket_factory", "BenchSockets");
        set(p, more);
        return ORB.init(args, p);
    }

    private static void set(Properties p, String... pairs) {
        for (int i = 0; i < pairs.length; i += 2)
            p.setProperty(pairs[i], System.getProperty(pairs[i], pairs[i + 1]));
    }
}
