import bench.BinStruct;

/** What test buffers hold, made and compared. */
final class BenchPattern {
    private BenchPattern() { }

    /** At position i: small letters in turn. */
    static char letter(int i) { return (char) ('a' + i % 26); }

    static BinStruct struct(int i) { return new BinStruct((short) i, letter(i), i, (byte) i, i * 0.5); }

    static boolean same(BinStruct a, BinStruct b) {
        return a.s == b.s && a.c == b.c && a.l == b.l && a.o == b.o && a.d == b.d;
    }

    static byte[] octets(int n) {
        byte[] s = new byte[n];
        for (int i = 0; i < n; i++) s[i] = (byte) letter(i);
        return s;
    }

    static char[] chars(int n) {
        char[] s = new char[n];
        for (int i = 0; i < n; i++) s[i] = letter(i);
        return s;
    }

    static short[] shorts(int n) {
        short[] s = new short[n];
        for (int i = 0; i < n; i++) s[i] = (short) letter(i);
        return s;
    }

    static int[] longs(int n) {
        int[] s = new int[n];
        for (int i = 0; i < n; i++) s[i] = letter(i);
        return s;
    }

    static double[] doubles(int n) {
        double[] s = new double[n];
        for (int i = 0; i < n; i++) s[i] = letter(i);
        return s;
    }

    static BinStruct[] structs(int n) {
        BinStruct[] s = new BinStruct[n];
        for (int i = 0; i < n; i++) s[i] = struct(i);
        return s;
    }

    /** Whether an element is what was sent at its position. */
    interface Element { boolean belongsAt(int i); }

    /** Ends the process with 4 where one is not. */
    static void demand(int n, Element element) {
        for (int i = 0; i < n; i++) {
            if (element.belongsAt(i)) continue;
            System.err.println("contents differ: element " + i + " of a sequence of " + n + " is not what was sent");
            Runtime.getRuntime().halt(4);
        }
    }
}
