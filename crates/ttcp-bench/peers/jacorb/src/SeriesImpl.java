import bench.*;
import bench.SeriesPackage.RecordSeqHelper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntPredicate;
import org.omg.CORBA.Any;

/** Notes when it had each message. System.nanoTime is the monotonic clock of the machine, which the client has too. */
final class SeriesImpl extends SeriesPOA {
    private static final int MOST = 1 << 16;
    private final List<Arrival> all = new ArrayList<>();
    private int wanted, bad;

    public synchronized void begin(int elements) {
        wanted = elements;
        bad = 0;
        all.clear();
    }

    public synchronized Seen arrivals() { return new Seen(all.toArray(new Arrival[0]), bad); }

    /** right: whether it has so many elements of the pattern. */
    private long take(long sent, int number, IntPredicate right) {
        long arrived = System.nanoTime();
        synchronized (this) {
            if (all.size() < MOST) all.add(new Arrival(sent, arrived, number));
            if (wanted > 0 && !right.test(wanted)) bad++;
        }
        return arrived;
    }

    private long takeAny(long sent, int number, Any any) {
        AlignedRecord[] s = RecordSeqHelper.extract(any);
        return callRecord(sent, number, s);
    }

    public long callShort(long sent, int number, short[] s) { return take(sent, number, n -> Arrays.equals(s, SeriesPattern.shorts(n))); }
    public long callLong(long sent, int number, int[] s) { return take(sent, number, n -> Arrays.equals(s, SeriesPattern.longs(n))); }
    public long callFloat(long sent, int number, float[] s) { return take(sent, number, n -> Arrays.equals(s, SeriesPattern.floats(n))); }
    public long callDouble(long sent, int number, double[] s) { return take(sent, number, n -> Arrays.equals(s, SeriesPattern.doubles(n))); }
    public long callRecord(long sent, int number, AlignedRecord[] s) { return take(sent, number, n -> SeriesPattern.same(s, SeriesPattern.aligned(n))); }
    public long callPadded(long sent, int number, PaddedRecord[] s) { return take(sent, number, n -> SeriesPattern.same(s, SeriesPattern.padded(n))); }
    public long callAny(long sent, int number, Any s) { return takeAny(sent, number, s); }

    public void sendShort(long sent, int number, short[] s) { callShort(sent, number, s); }
    public void sendLong(long sent, int number, int[] s) { callLong(sent, number, s); }
    public void sendFloat(long sent, int number, float[] s) { callFloat(sent, number, s); }
    public void sendDouble(long sent, int number, double[] s) { callDouble(sent, number, s); }
    public void sendRecord(long sent, int number, AlignedRecord[] s) { callRecord(sent, number, s); }
    public void sendPadded(long sent, int number, PaddedRecord[] s) { callPadded(sent, number, s); }
    public void sendAny(long sent, int number, Any s) { takeAny(sent, number, s); }
}
