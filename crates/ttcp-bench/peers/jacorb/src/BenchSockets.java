import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import org.jacorb.config.Configurable;
import org.jacorb.config.Configuration;
import org.jacorb.config.ConfigurationException;
import org.jacorb.orb.factory.ServerSocketFactory;
import org.jacorb.orb.factory.SocketFactory;

/** Sockets with the buffer sizes of --sockbuf. */
public final class BenchSockets implements SocketFactory, ServerSocketFactory, Configurable {
    private int size;

    public void configure(Configuration c) throws ConfigurationException {
        size = c.getAttributeAsInteger("bench.sockbuf", 0);
    }

    public Socket createSocket(String host, int port) throws IOException { return createSocket(host, port, 0); }

    public Socket createSocket(String host, int port, int timeout) throws IOException {
        Socket s = new Socket();
        s.setReceiveBufferSize(size);
        s.setSendBufferSize(size);
        s.connect(new InetSocketAddress(host, port), timeout);
        return s;
    }

    public boolean isSSL(Socket s) { return false; }

    public ServerSocket createServerSocket(int port) throws IOException { return createServerSocket(port, 50, null); }

    public ServerSocket createServerSocket(int port, int backlog) throws IOException { return createServerSocket(port, backlog, null); }

    public ServerSocket createServerSocket(int port, int backlog, InetAddress address) throws IOException {
        ServerSocket l = new ServerSocket() {
            @Override public Socket accept() throws IOException {
                Socket s = super.accept();
                s.setSendBufferSize(size);
                return s;
            }
        };
        l.setReceiveBufferSize(size);    // inherited by the accepted sockets
        l.setReuseAddress(true);
        l.bind(new InetSocketAddress(address, port), backlog);
        return l;
    }
}
