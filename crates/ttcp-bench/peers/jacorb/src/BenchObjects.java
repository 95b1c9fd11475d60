import bench.*;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.PortableServer.*;
import org.omg.PortableServer.CurrentPackage.NoContext;

/**
 * The many objects of a server: --objects N more, each with a servant of its own, or with --serving default one default servant for
 * all. PATH.objects gets the references to up to 1000 of them, drawn as all servers draw them.
 */
final class BenchObjects {
    /** One servant for all objects: it counts the octets that each gets. */
    private static final class ForAll extends BenchServer.TtcpImpl {
        private final Current current;
        private final ConcurrentHashMap<String, Long> bytes = new ConcurrentHashMap<>();

        ForAll(Current current, boolean check) {
            super(check);
            this.current = current;
        }

        private String id() {
            try {
                return new String(current.get_object_id());
            } catch (NoContext e) {
                throw new org.omg.CORBA.INTERNAL();
            }
        }

        @Override public void sendOctetSeq(byte[] s) { bytes.merge(id(), (long) s.length, Long::sum); }

        @Override public long sync() {
            Long got = bytes.remove(id());
            return got == null ? 0 : got;
        }
    }

    static void activate(ORB orb, POA root, BenchOptions o, Path path, Supplier<Servant> servant) throws Exception {
        int objects = o.num("--objects", 0);
        if (objects == 0) return;
        String serving = o.get("--serving", "map");
        boolean all = serving.equals("default"), own = serving.equals("ids");
        if (!all && !own && !serving.equals("map")) throw new IllegalArgumentException("--serving takes map, ids or default");
        Policy ids = root.create_id_assignment_policy(IdAssignmentPolicyValue.USER_ID);
        Policy[] policies = own ? new Policy[] { ids } : !all ? new Policy[0] : new Policy[] {
            ids,
            root.create_request_processing_policy(RequestProcessingPolicyValue.USE_DEFAULT_SERVANT),
            root.create_servant_retention_policy(ServantRetentionPolicyValue.NON_RETAIN),
            root.create_id_uniqueness_policy(IdUniquenessPolicyValue.MULTIPLE_ID),
        };
        POA poa = root.create_POA("objects", root.the_POAManager(), policies);
        if (all) {
            Current current = CurrentHelper.narrow(orb.resolve_initial_references("POACurrent"));
            poa.set_servant(new ForAll(current, o.has("--check")));
        }
        int[] called = BenchDraws.called(objects);
        int next = 0;
        try (PrintWriter file = new PrintWriter(path + ".objects")) {
            for (int object = 0; object < objects; object++) {
                byte[] id = Integer.toString(object).getBytes();
                if (own) poa.activate_object_with_id(id, servant.get());
                else if (!all) id = poa.activate_object(servant.get());
                if (next == called.length || called[next] != object) continue;
                next++;
                file.println(orb.object_to_string(all ? poa.create_reference_with_id(id, TtcpHelper.id()) : poa.id_to_reference(id)));
            }
            if (file.checkError()) throw new IOException("cannot write the references");
        }
    }
}
