import bench.AlignedRecord;
import bench.PaddedRecord;

/** The elements of the test series, which both sides have. */
final class SeriesPattern {
    private SeriesPattern() { }

    static short ofShort(int i) { return (short) (i * 31 + 7); }
    static int ofLong(int i) { return i * 65537 + 7; }
    static float ofFloat(int i) { return i * 0.5f - 7; }
    static double ofDouble(int i) { return i * 0.25 - 7; }

    static short[] shorts(int n) {
        short[] s = new short[n];
        for (int i = 0; i < n; i++) s[i] = ofShort(i);
        return s;
    }

    static int[] longs(int n) {
        int[] s = new int[n];
        for (int i = 0; i < n; i++) s[i] = ofLong(i);
        return s;
    }

    static float[] floats(int n) {
        float[] s = new float[n];
        for (int i = 0; i < n; i++) s[i] = ofFloat(i);
        return s;
    }

    static double[] doubles(int n) {
        double[] s = new double[n];
        for (int i = 0; i < n; i++) s[i] = ofDouble(i);
        return s;
    }

    static AlignedRecord[] aligned(int n) {
        AlignedRecord[] s = new AlignedRecord[n];
        for (int i = 0; i < n; i++)
            s[i] = new AlignedRecord(ofDouble(i), -ofDouble(i), ofLong(i), ofFloat(i), ofShort(i), (short) ~ofShort(i), ~ofLong(i));
        return s;
    }

    static PaddedRecord[] padded(int n) {
        PaddedRecord[] s = new PaddedRecord[n];
        for (int i = 0; i < n; i++)
            s[i] = new PaddedRecord(ofShort(i), ofDouble(i), (short) ~ofShort(i), ofLong(i), (byte) i, ofFloat(i));
        return s;
    }

    static boolean same(AlignedRecord[] a, AlignedRecord[] b) {
        if (a.length != b.length) return false;
        for (int i = 0; i < a.length; i++)
            if (a[i].d != b[i].d || a[i].e != b[i].e || a[i].l != b[i].l || a[i].f != b[i].f
                || a[i].s != b[i].s || a[i].t != b[i].t || a[i].m != b[i].m) return false;
        return true;
    }

    static boolean same(PaddedRecord[] a, PaddedRecord[] b) {
        if (a.length != b.length) return false;
        for (int i = 0; i < a.length; i++)
            if (a[i].s != b[i].s || a[i].d != b[i].d || a[i].t != b[i].t || a[i].l != b[i].l
                || a[i].o != b[i].o || a[i].f != b[i].f) return false;
        return true;
    }
}
