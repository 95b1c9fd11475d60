import java.util.Arrays;
import org.omg.CORBA.LocalObject;
import org.omg.PortableInterceptor.*;
import org.omg.PortableInterceptor.ORBInitInfoPackage.DuplicateName;

/**
 * Answers every request to one object by LOCATION_FORWARD to another: by an
 * interceptor, since JacORB 3.9 hangs when a servant manager raises ForwardRequest.
 */
public final class Forwarding extends LocalObject implements ORBInitializer, ServerRequestInterceptor {
    private static volatile byte[] from;
    private static volatile org.omg.CORBA.Object to;

    static void set(byte[] objectId, org.omg.CORBA.Object target) {
        to = target;
        from = objectId;
    }

    public void pre_init(ORBInitInfo info) { }

    public void post_init(ORBInitInfo info) {
        try {
            info.add_server_request_interceptor(this);
        } catch (DuplicateName e) {
            throw new IllegalStateException(e);
        }
    }

    public void receive_request(ServerRequestInfo info) throws ForwardRequest {
        if (from != null && Arrays.equals(from, info.object_id())) throw new ForwardRequest(to);
    }

    public void receive_request_service_contexts(ServerRequestInfo info) { }

    public void send_reply(ServerRequestInfo info) { }

    public void send_exception(ServerRequestInfo info) { }

    public void send_other(ServerRequestInfo info) { }

    public String name() { return "forwarding"; }

    public void destroy() { }
}
