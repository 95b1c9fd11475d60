import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;

/** References as text: their GIOP version and port, and the same reference with others. */
final class Reference {
    final String text;
    final int minor;            // IIOP 1.minor
    final int port;
    final boolean codeSets;     // it may carry code sets: an IOR above 1.0

    /**
     * given: an IOR, a corbaloc of one address (without a key: /key), or a path to a file
     * with one of them. version: "1.0" ...; "" leaves an IOR's, and is 1.0 for a corbaloc
     * without one. toPort: 0 leaves the port.
     */
    Reference(String given, String version, String key, int toPort) throws IOException {
        String t = given.startsWith("IOR:") || given.startsWith("corbaloc:") ? given : new String(Files.readAllBytes(Paths.get(given))).trim();
        if (t.startsWith("IOR:")) {
            byte[] ior = new byte[(t.length() - 4) / 2];
            for (int i = 0; i < ior.length; i++) ior[i] = (byte) Integer.parseInt(t.substring(4 + 2 * i, 6 + 2 * i), 16);
            int at = (8 + number(ior, 4, ior[0] == 1, 4) + 3) / 4 * 4;       // behind the type id
            if (number(ior, at, ior[0] == 1, 4) < 1 || number(ior, at + 4, ior[0] == 1, 4) != 0)
                throw new IOException("the IOR does not start with an IIOP profile");
            int profile = at + 12;
            boolean little = ior[profile] == 1;
            if (!version.isEmpty()) ior[profile + 2] = (byte) Math.min(ior[profile + 2], version.charAt(2) - '0');
            minor = ior[profile + 2];
            int portAt = (8 + number(ior, profile + 4, little, 4) + 1) / 2 * 2 + profile;
            port = number(ior, portAt, little, 2);
            if (toPort != 0) {
                ior[portAt + (little ? 0 : 1)] = (byte) toPort;
                ior[portAt + (little ? 1 : 0)] = (byte) (toPort >> 8);
            }
            StringBuilder out = new StringBuilder("IOR:");
            for (byte b : ior) out.append(String.format("%02x", b));
            text = out.toString();
            codeSets = minor > 0;
        } else {
            if (t.indexOf('/') < 0) t += "/" + key;
            if (t.indexOf('@') < 0) {
                int host = t.indexOf(':', 9) + 1;
                t = t.substring(0, host) + (version.isEmpty() ? "1.0" : version) + "@" + t.substring(host);
            }
            minor = t.charAt(t.indexOf('@') - 1) - '0';
            int slash = t.indexOf('/'), portAt = t.lastIndexOf(':', slash) + 1;
            port = Integer.parseInt(t.substring(portAt, slash));
            text = toPort == 0 ? t : t.substring(0, portAt) + toPort + t.substring(slash);
            codeSets = false;
        }
    }

    private static int number(byte[] from, int at, boolean little, int n) {
        int v = 0;
        for (int i = 0; i < n; i++) v |= (from[at + i] & 0xff) << 8 * (little ? i : n - 1 - i);
        return v;
    }
}
