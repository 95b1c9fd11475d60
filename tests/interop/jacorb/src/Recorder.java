import java.io.*;
import java.net.*;
import java.nio.file.*;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * Records the GIOP messages of chosen calls as fixtures: the client calls through a
 * relay of this process, which cuts the octets into messages.
 */
final class Recorder {
    private static final String[] KINDS = {"request", "reply", "cancel_request", "locate_request",
                                           "locate_reply", "close_connection", "message_error", "fragment"};
    private static final String[] TYPES = {"Request", "Reply", "CancelRequest", "LocateRequest",
                                           "LocateReply", "CloseConnection", "MessageError", "Fragment"};
    private final Path directory;
    private final ServerSocket listener;
    private final int server;
    private final Map<String, Integer> used = new HashMap<>();
    private String operation = "", request = "", reply = "";

    Recorder(String directory, int serverPort) throws IOException {
        this.directory = Paths.get(directory);
        server = serverPort;
        listener = new ServerSocket(0, 16, InetAddress.getByName("127.0.0.1"));
        daemon(() -> {
            for (;;) {
                Socket client = listener.accept(), up = new Socket("127.0.0.1", server);
                client.setTcpNoDelay(true);
                up.setTcpNoDelay(true);
                daemon(() -> pump(client, up));
                daemon(() -> pump(up, client));
            }
        });
    }

    int port() { return listener.getLocalPort(); }

    /** Messages from now on belong to this operation; request and reply say what their bodies hold. */
    synchronized void begin(String operation, String request, String reply) {
        this.operation = operation;
        this.request = request;
        this.reply = reply;
    }

    void end() { begin("", "", ""); }

    private interface Io { void run() throws IOException; }

    private static void daemon(Io io) {
        Thread t = new Thread(() -> {
            try {
                io.run();
            } catch (IOException end) {
                // the connection is closed
            }
        });
        t.setDaemon(true);
        t.start();
    }

    private void pump(Socket from, Socket to) throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(from.getInputStream()));
        try {
            for (;;) {
                byte[] header = new byte[12];
                in.readFully(header);
                boolean little = (header[6] & 1) == 1;
                int size = 0;
                for (int i = 0; i < 4; i++) size |= (header[8 + i] & 0xff) << 8 * (little ? i : 3 - i);
                byte[] message = Arrays.copyOf(header, 12 + size);
                in.readFully(message, 12, size);
                seen(message);
                to.getOutputStream().write(message);
            }
        } catch (EOFException end) {
            to.shutdownOutput();
        }
    }

    private synchronized void seen(byte[] m) throws IOException {
        if (operation.isEmpty()) return;
        int type = m[7];
        String name = KINDS[type] + "_" + operation.replaceFirst("^_", "") + "_1_" + m[5];
        int again = used.merge(name, 1, Integer::sum);
        if (again > 1) name += "_" + again;
        Files.write(directory.resolve(name + ".giop"), m);
        String line = String.join("\t", name + ".giop", "jacorb", "captured", "1." + m[5], (m[6] & 1) == 1 ? "LE" : "BE", TYPES[type], operation,
                                  type == 0 ? request : type == 1 ? reply : "") + "\n";
        Files.write(directory.resolve("index.tsv"), line.getBytes(), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
}
