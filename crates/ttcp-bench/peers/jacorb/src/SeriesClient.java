import bench.*;
import bench.SeriesPackage.RecordSeqHelper;
import java.util.Arrays;
import java.util.Comparator;
import java.util.concurrent.locks.LockSupport;
import org.omg.CORBA.Any;
import org.omg.CORBA.ORB;

/** The client of the test series: messages of one kind and size, one a frame. */
final class SeriesClient {
    private static final int LOOKED_AT = 3;

    /** Sends one, and returns when it arrived, if it is answered; else 0. */
    private interface Message { long send(long at, int number); }

    private final Series series;
    private final ORB orb;
    private final String kind, mode;
    private final int units, n;
    private final long frameUs;
    /** Of each message: when it began, how long it took, when it arrived by its answer. */
    private long[] at, took, answered;

    SeriesClient(Series series, ORB orb, BenchOptions o, int n) {
        this.series = series;
        this.orb = orb;
        this.n = n;
        kind = o.get("--kind", "");
        mode = o.get("--mode", "call");
        units = o.num("--units", 4);
        frameUs = o.num("--frame", 70000);
        if (!(mode.equals("call") || mode.equals("oneway")) || units < 1 || n < 1 || frameUs < 1)
            throw new IllegalArgumentException("bad arguments");
    }

    void run() {
        boolean oneway = mode.equals("oneway");
        switch (kind) {
            case "short": {
                short[] s = SeriesPattern.shorts(16 * units);
                test(16 * units, oneway ? (at, i) -> { series.sendShort(at, i, s); return 0; } : (at, i) -> series.callShort(at, i, s));
                break;
            }
            case "long": {
                int[] s = SeriesPattern.longs(8 * units);
                test(8 * units, oneway ? (at, i) -> { series.sendLong(at, i, s); return 0; } : (at, i) -> series.callLong(at, i, s));
                break;
            }
            case "float": {
                float[] s = SeriesPattern.floats(8 * units);
                test(8 * units, oneway ? (at, i) -> { series.sendFloat(at, i, s); return 0; } : (at, i) -> series.callFloat(at, i, s));
                break;
            }
            case "double": {
                double[] s = SeriesPattern.doubles(4 * units);
                test(4 * units, oneway ? (at, i) -> { series.sendDouble(at, i, s); return 0; } : (at, i) -> series.callDouble(at, i, s));
                break;
            }
            case "record": {
                AlignedRecord[] s = SeriesPattern.aligned(units);
                test(units, oneway ? (at, i) -> { series.sendRecord(at, i, s); return 0; } : (at, i) -> series.callRecord(at, i, s));
                break;
            }
            case "na-record": {
                PaddedRecord[] s = SeriesPattern.padded(units);
                test(units, oneway ? (at, i) -> { series.sendPadded(at, i, s); return 0; } : (at, i) -> series.callPadded(at, i, s));
                break;
            }
            case "any": {
                AlignedRecord[] s = SeriesPattern.aligned(units);
                test(units, oneway ? (at, i) -> { series.sendAny(at, i, any(s)); return 0; } : (at, i) -> series.callAny(at, i, any(s)));
                break;
            }
            default: throw new IllegalArgumentException("unknown kind");
        }
    }

    /** An any is made of the records each time, as a program has to. */
    private Any any(AlignedRecord[] s) {
        Any any = orb.create_any();
        RecordSeqHelper.insert(any, s);
        return any;
    }

    private void test(int elements, Message message) {
        series.begin(elements);
        forget(LOOKED_AT);
        for (int i = 0; i < LOOKED_AT; i++) timed(message, i);
        int bad = confirmed(LOOKED_AT).bad;
        if (bad != 0) throw new IllegalStateException(bad + " messages came with other contents than they left");

        series.begin(0);
        forget(n);
        long origin = System.nanoTime(), due = origin, frame = frameUs * 1000;
        for (int i = 0; i < n; i++) {
            for (long left; (left = due - System.nanoTime()) > 0;) LockSupport.parkNanos(left);
            timed(message, i);
            due = origin + (at[i] + took[i] - origin + frame - 1) / frame * frame;
        }
        Arrival[] all = confirmed(n).all;
        long[] start = new long[n], latency = new long[n];
        for (int i = 0; i < n; i++) {
            start[i] = at[i] - origin;
            latency[i] = all[i].arrived - all[i].sent;
        }
        BenchClient.json("series",
            "\"kind\":\"%s\",\"mode\":\"%s\",\"units\":%d,\"size\":%d,\"n\":%d,\"frame_us\":%d,\"checked\":%d,\"arrived\":%d,"
            + "\"mean_us\":%.3f,\"start_ns\":%s,\"time_ns\":%s,\"latency_ns\":%s",
            kind, mode, units, 16 + 32L * units, n, frameUs, LOOKED_AT, all.length, Arrays.stream(took).average().orElse(0) / 1e3,
            list(start), list(took), list(latency));
    }

    private static String list(long[] all) { return Arrays.toString(all).replace(" ", ""); }

    private void forget(int messages) {
        at = new long[messages];
        took = new long[messages];
        answered = new long[messages];
    }

    private void timed(Message message, int i) {
        at[i] = System.nanoTime();
        answered[i] = message.send(at[i], i);
        took[i] = System.nanoTime() - at[i];
    }

    /** What the server has, once it has all: in the order of the numbers, each as it was sent. */
    private Seen confirmed(int messages) {
        Seen seen = series.arrivals();
        for (long begun = System.nanoTime(); seen.all.length < messages && System.nanoTime() - begun < 10_000_000_000L;) {
            LockSupport.parkNanos(1_000_000);
            seen = series.arrivals();
        }
        if (seen.all.length != messages)
            throw new IllegalStateException(messages + " messages were sent, " + seen.all.length + " arrived");
        Arrays.sort(seen.all, Comparator.comparingInt(a -> a.number));
        for (int i = 0; i < messages; i++) {
            Arrival a = seen.all[i];
            if (a.number != i || a.sent != at[i] || a.arrived < a.sent || (answered[i] != 0 && answered[i] != a.arrived))
                throw new IllegalStateException("message " + i + " came otherwise than it left");
        }
        return seen;
    }
}
