import bench.*;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.file.*;
import java.util.Arrays;
import java.util.Locale;
import org.omg.CORBA.LongHolder;
import org.omg.CORBA.ORB;

/**
 * BenchClient ttcp|ping|echo|demux|pipeline|series|last|objects|clients --ior PATH|corbaloc:iiop:[V@]HOST:PORT
 *        [--seconds S] [--type T] [--size BYTES] [--total BYTES] [--n N] [--depth D] [--sockbuf BYTES]
 *        [--samples FILE] [--kind KIND] [--mode call|oneway] [--units N] [--frame MICROSECONDS]
 * pipeline: D threads that share one connection. clients: D threads, each with an ORB and so a connection of its own.
 *        [--operations 100|1000] [--oneway] [--iterations I]
 * last: the last of so many operations, 100 times an iteration, which the server counts.
 * batch [--seconds S]: runs each line of its input as such a command line, with tabs for blanks, in this virtual machine, and says
 *        END STATUS behind it.
 */
public final class BenchClient {
    static void json(String test, String format, Object... values) {
        System.out.println("{\"peer\":\"jacorb\",\"test\":\"" + test + "\","
                           + String.format(Locale.ROOT, format, values) + "}");
    }

    /** A oneway send of a buffer of size user bytes. */
    private static Runnable sender(Ttcp t, String type, int size) {
        int n = Math.max(1, size / width(type));
        switch (type) {
            case "octet": { byte[] s = BenchPattern.octets(n); return () -> t.sendOctetSeq(s); }
            case "char": { char[] s = BenchPattern.chars(n); return () -> t.sendCharSeq(s); }
            case "short": { short[] s = BenchPattern.shorts(n); return () -> t.sendShortSeq(s); }
            case "long": { int[] s = BenchPattern.longs(n); return () -> t.sendLongSeq(s); }
            case "double": { double[] s = BenchPattern.doubles(n); return () -> t.sendDoubleSeq(s); }
            default: { BinStruct[] s = BenchPattern.structs(n); return () -> t.sendStructSeq(s); }
        }
    }

    private static int width(String type) {
        switch (type) {
            case "octet": case "char": return 1;
            case "short": return 2;
            case "long": return 4;
            case "double": return 8;
            case "struct": return 24;
            default: throw new IllegalArgumentException("unknown type " + type);
        }
    }

    private static int syncs;    // of the last send

    /**
     * Sends until total bytes are sent and confirmed; returns the seconds it took. The
     * server may run sync() before the last oneways: it is repeated until they are in.
     */
    private static double send(Ttcp t, Runnable op, long size, long total) {
        long sent = 0, got = 0, start = System.nanoTime();
        for (; sent < total; sent += size) op.run();
        for (syncs = 0; got < sent && System.nanoTime() - start < 600e9; syncs++) got += t.sync();
        double secs = (System.nanoTime() - start) / 1e9;
        if (got != sent) throw new IllegalStateException("sent " + sent + " bytes, " + got + " confirmed");
        return secs;
    }

    private static void ttcp(Ttcp t, String type, int size, long total) {
        Runnable op = sender(t, type, size);
        long bytes = Math.max(1, size / width(type)) * (long) width(type);
        t.sync();
        send(t, op, bytes, total / 10);
        double secs = send(t, op, bytes, total);
        json("ttcp", "\"type\":\"%s\",\"size\":%d,\"mbit_s\":%.6f,\"secs\":%.6f,\"syncs\":%d", type, size,
             (total + bytes - 1) / bytes * bytes * 8 / secs / 1e6, secs, syncs);
    }

    /** Where the time of each call goes, nanoseconds, a line each; null: nowhere. */
    private static String samples;

    static void latency(String test, String more, int n, Runnable call) throws IOException {
        for (int i = 0; i < n / 10; i++) call.run();
        double[] us = new double[n];
        for (int i = 0; i < n; i++) {
            long start = System.nanoTime();
            call.run();
            us[i] = (System.nanoTime() - start) / 1e3;
        }
        tell(test, more, us);
    }

    /** The line of calls that took so long each. */
    static void tell(String test, String more, double[] us) throws IOException {
        int n = us.length;
        if (samples != null) {
            try (PrintWriter file = new PrintWriter(samples)) {
                for (double u : us) file.println((long) (u * 1e3));
                if (file.checkError()) throw new IOException("cannot write " + samples);
            }
        }
        double sum = Arrays.stream(us).sum();
        Arrays.sort(us);
        json(test, "%s\"n\":%d,\"mean_us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"max_us\":%.3f",
             more, n, sum / n, us[n / 2], us[(int) (n * 99L / 100)], us[n - 1]);
    }

    private static void echo(Ttcp t, String type, int size, int n) throws IOException {
        String more = "\"type\":\"" + type + "\",\"size\":" + size + ",";
        if (type.equals("octet")) {
            byte[] s = new byte[Math.max(1, size)];
            for (int i = 0; i < s.length; i++) s[i] = (byte) i;
            if (!Arrays.equals(s, t.echoOctets(s))) throw new IllegalStateException("echo differs");
            latency("echo", more, n, () -> t.echoOctets(s));
        } else {
            BinStruct[] s = BenchPattern.structs(Math.max(1, size / 24)), r = t.echoStructs(s);
            for (int i = 0; i < s.length; i++)
                if (r.length != s.length || !BenchPattern.same(r[i], s[i])) throw new IllegalStateException("echo differs");
            latency("echo", more, n, () -> t.echoStructs(s));
        }
    }

    private static double pings(Ttcp t, int depth, int n) throws InterruptedException {
        Thread[] threads = new Thread[depth];
        long start = System.nanoTime();
        for (int i = 0; i < depth; i++) {
            int first = i;
            threads[i] = new Thread(() -> { for (int k = first; k < n; k += depth) t.ping(); });
            threads[i].start();
        }
        for (Thread th : threads) th.join();
        return (System.nanoTime() - start) / 1e9;
    }

    /**
     * So many calls of an operation, and the seconds until they are counted. The server may answer
     * before the last oneways are done, so it is asked until they are.
     */
    private static double[] count(Tally tally, int n, Runnable call) {
        long start = System.nanoTime();
        for (int i = 0; i < n; i++) call.run();
        double secs = (System.nanoTime() - start) / 1e9;
        long last = 0, others = 0;
        while (others == 0 && last < n && (System.nanoTime() - start) / 1e9 < secs + 10) {
            LongHolder l = new LongHolder(), o = new LongHolder();
            tally.take(l, o);
            last += l.value;
            others += o.value;
        }
        double counted = (System.nanoTime() - start) / 1e9;
        if (last != n || others != 0)
            throw new IllegalStateException("the last operation was called " + n + " times: the server counted " + last
                                            + " calls of it and " + others + " of others");
        return new double[] { secs, counted };
    }

    private static org.omg.CORBA.Object find(ORB orb, String at, String key) throws IOException {
        if (at.startsWith("corbaloc:")) return orb.string_to_object(at + "/" + key);
        return orb.string_to_object(new String(Files.readAllBytes(Paths.get(at + "." + key))).trim());
    }

    private static void last(ORB orb, String at, int operations, boolean oneway, int iterations) throws IOException {
        if ((operations != 100 && operations != 1000) || iterations < 1) throw new IllegalArgumentException("bad arguments");
        Tally tally = TallyHelper.narrow(find(orb, at, "tally"));
        org.omg.CORBA.Object obj = find(orb, at, (operations == 100 ? "wide" : "thousand") + (oneway ? "-oneway" : ""));
        Runnable call;
        if (operations == 100 && oneway) call = WideOnewayHelper.narrow(obj)::m099;
        else if (operations == 100) call = WideHelper.narrow(obj)::m099;
        else if (oneway) call = ThousandOnewayHelper.narrow(obj)::m999;
        else call = ThousandHelper.narrow(obj)::m999;
        int n = 100 * iterations;
        tally.take(new LongHolder(), new LongHolder());
        count(tally, n / 10, call);
        double[] secs = count(tally, n, call);
        json("last", "\"operations\":%d,\"oneway\":%b,\"iterations\":%d,\"counted\":%d,\"secs\":%.9f,\"counted_secs\":%.9f",
             operations, oneway, iterations, n, secs[0], secs[1]);
    }

    public static void main(String[] args) throws Exception {
        new BenchOptions(args).exitAfter("3600");
        if (args.length > 0 && args[0].equals("batch")) batch();
        else run(args);
        // Those of several clients have threads that would not end.
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void batch() throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null;) {
            int status = 0;
            try {
                run(line.split("\t"));
            } catch (Throwable e) {
                e.printStackTrace(System.out);
                status = 1;
            }
            System.out.println("END " + status);
            System.out.flush();
        }
    }

    private static void run(String[] args) throws Exception {
        BenchOptions o = new BenchOptions(args);
        samples = o.get("--samples", null);
        String test = args.length > 0 ? args[0] : "", type = o.get("--type", "octet"), ior = o.get("--ior", "server.ior");
        int size = o.num("--size", 65536), depth = o.num("--depth", 16);
        int n = o.num("--n", test.equals("echo") ? 5000 : test.equals("clients") ? 50000 : test.equals("pipeline") ? 100000 : test.equals("series") ? 50 : 20000);
        long total = Long.parseLong(o.get("--total", "268435456"));
        if (test.equals("last")) {
            ORB orb = o.orb();
            last(orb, ior, o.num("--operations", 100), Arrays.asList(args).contains("--oneway"), o.num("--iterations", 100));
            orb.shutdown(true);
            return;
        }
        if (test.equals("objects")) {
            ORB orb = o.orb();
            BenchMany.objects(orb, ior, n);
            orb.shutdown(true);
            return;
        }
        String other = test.equals("demux") ? "wide" : test.equals("series") ? "series" : null;
        if (ior.startsWith("corbaloc:")) ior += "/" + (other == null ? "ttcp" : other);
        else ior = new String(Files.readAllBytes(Paths.get(other == null ? ior : ior + "." + other))).trim();

        if (test.equals("clients")) {
            BenchMany.clients(o, ior, depth, n);
            return;
        }
        ORB orb = o.orb();
        org.omg.CORBA.Object obj = orb.string_to_object(ior);
        if (test.equals("series")) {
            new SeriesClient(SeriesHelper.narrow(obj), orb, o, n).run();
        } else if (other != null) {
            Wide w = WideHelper.narrow(obj);
            latency("demux", "", n, w::m099);
        } else {
            Ttcp t = TtcpHelper.narrow(obj);
            switch (test) {
                case "ttcp": ttcp(t, type, size, total); break;
                case "ping": latency("ping", "", n, t::ping); break;
                case "echo": echo(t, type, size, n); break;
                case "pipeline":
                    pings(t, depth, n / 10);
                    double secs = pings(t, depth, n);
                    json("pipeline", "\"depth\":%d,\"n\":%d,\"threads\":%d,\"calls_s\":%.3f,\"secs\":%.6f",
                         depth, n, depth, n / secs, secs);
                    break;
                default: throw new IllegalArgumentException("unknown test " + test);
            }
        }
        orb.shutdown(true);
    }
}
