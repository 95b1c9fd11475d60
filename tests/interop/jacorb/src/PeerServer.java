import Interop.*;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.file.*;
import org.omg.CORBA.ORB;
import org.omg.PortableServer.*;

/**
 * PeerServer --ior PATH [--port P] [--chars UTF-8|ISO-8859-1] [--giop 1.0|1.1|1.2] [--seconds S]
 * Serves types.idl and guard.idl on 127.0.0.1 (port: any) until SIGTERM, or for S
 * seconds (900). Writes the references to PATH, PATH.guard and PATH.forward; plain
 * keys: corbaloc::127.0.0.1:P/interop, /guard and /forward. Prints READY and the IOR.
 * --giop: the version published in the IOR.
 */
public final class PeerServer {
    /** Echoes are done by reflection, the other operations by Peer's methods of the same name. */
    private static PeerOperations operations(PeerImpl impl) {
        return (PeerOperations) Proxy.newProxyInstance(PeerServer.class.getClassLoader(), new Class<?>[] {PeerOperations.class}, (proxy, method, args) -> {
            Method own = impl.method(method);
            if (own == null) return impl.echo(method, args);
            try {
                return own.invoke(impl, args);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        });
    }

    public static void main(String[] args) throws Exception {
        Options o = new Options(args);
        o.exitAfter("900");
        // JacORB writes every reply in its native set, whatever was negotiated.
        ORB orb = o.peerOrb("UTF-8", Orbs.server(o.get("--port", "0"), o.get("--giop", "1.2"),
                                                 "org.omg.PortableInterceptor.ORBInitializerClass.Forwarding", ""));
        POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        root.the_POAManager().activate();
        String path = o.get("--ior", "interop.ior");
        Servant guard = new GuardPOATie(new GuardImpl());
        publish(orb, "guard", root.id_to_reference(root.activate_object(guard)), path + ".guard");
        Servant peer = new PeerPOATie(operations(new PeerImpl(orb, root)));
        org.omg.CORBA.Object ref = root.id_to_reference(root.activate_object(peer));
        byte[] forwarding = root.activate_object(new PeerPOATie(null));
        Forwarding.set(forwarding, ref);
        publish(orb, "forward", root.id_to_reference(forwarding), path + ".forward");
        publish(orb, "interop", ref, path);
        System.out.println("READY " + orb.object_to_string(ref));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(orb)));
        orb.run();
    }

    /** Closes the connections in order, unless a request hangs. */
    private static void stop(ORB orb) {
        Thread shutdown = new Thread(() -> orb.shutdown(true));
        shutdown.setDaemon(true);
        shutdown.start();
        try {
            shutdown.join(2000);
        } catch (InterruptedException e) {
            // ends anyway
        }
        Runtime.getRuntime().halt(0);
    }

    private static void publish(ORB orb, String key, org.omg.CORBA.Object ref, String path) throws Exception {
        Orbs.name(orb, key, ref);
        Path file = Paths.get(path), unfinished = Paths.get(path + ".new");
        Files.write(unfinished, (orb.object_to_string(ref) + "\n").getBytes());
        Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE);     // whole at once for who waits for it
    }
}
