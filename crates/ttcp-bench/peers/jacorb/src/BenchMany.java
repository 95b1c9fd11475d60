import bench.*;
import java.io.IOException;
import java.nio.file.*;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.omg.CORBA.ORB;

/** Tests objects and clients. */
final class BenchMany {
    /**
     * Calls the objects of PATH.objects in an order that is drawn. Before that each gets a number of octets and has to confirm them, so
     * it is the one that is meant.
     */
    static void objects(ORB orb, String ior, int n) throws IOException {
        List<String> lines = Files.readAllLines(Paths.get(ior + ".objects"));
        Ttcp[] all = new Ttcp[lines.size()];
        for (int i = 0; i < all.length; i++) all[i] = TtcpHelper.narrow(orb.string_to_object(lines.get(i)));
        for (int i = 0; i < all.length; i++) all[i].sendOctetSeq(BenchPattern.octets(octets(i)));
        for (int i = 0; i < all.length; i++) {
            long got = 0, start = System.nanoTime();
            while (got < octets(i) && System.nanoTime() - start < 10e9) got += all[i].sync();
            if (got != octets(i)) throw new IllegalStateException("object " + i + " of those called is another");
        }
        BenchDraws draws = new BenchDraws();
        BenchClient.latency("objects", "\"objects\":" + all.length + ",", n, () -> all[draws.below(all.length)].ping());
    }

    private static int octets(int place) { return place % 97 + 1; }

    /**
     * So many threads call at once, each with an ORB of its own: connections belong to it. All begin together, and share the calls, so
     * that they end together. Each has an echo of its own octets first, which are compared.
     */
    static void clients(BenchOptions o, String ior, int count, int n) throws Exception {
        AtomicInteger left = new AtomicInteger(n), failed = new AtomicInteger();
        CountDownLatch ready = new CountDownLatch(count), begin = new CountDownLatch(1);
        double[][] us = new double[count][];
        Thread[] threads = new Thread[count];
        for (int i = 0; i < count; i++) {
            int number = i;
            threads[i] = new Thread(() -> {
                Ttcp t = null;
                try {
                    t = TtcpHelper.narrow(o.orb().string_to_object(ior));
                    byte[] own = new byte[64];
                    for (int k = 0; k < own.length; k++) own[k] = (byte) (number + k);
                    if (!Arrays.equals(own, t.echoOctets(own))) throw new IllegalStateException("echo differs");
                    for (int k = 0; k < Math.max(1, n / 10 / count); k++) t.ping();
                } catch (Throwable e) {
                    System.err.println("client: " + e);
                    failed.incrementAndGet();
                    left.set(0);
                }
                double[] mine = new double[n];
                int calls = 0;
                ready.countDown();
                try {
                    begin.await();
                    while (left.getAndDecrement() > 0) {
                        long start = System.nanoTime();
                        t.ping();
                        mine[calls++] = (System.nanoTime() - start) / 1e3;
                    }
                } catch (Throwable e) {
                    System.err.println("client: " + e);
                    failed.incrementAndGet();
                    left.set(0);
                }
                us[number] = Arrays.copyOf(mine, calls);
            });
            threads[i].start();
        }
        ready.await();
        long start = System.nanoTime();
        begin.countDown();
        for (Thread thread : threads) thread.join();
        double secs = (System.nanoTime() - start) / 1e9;
        double[] all = Arrays.stream(us).flatMapToDouble(Arrays::stream).toArray();
        if (failed.get() > 0 || all.length != n) throw new IllegalStateException("a client failed");
        BenchClient.tell("clients", String.format(Locale.ROOT, "\"depth\":%d,\"calls_s\":%.3f,\"secs\":%.6f,", count, n / secs, secs), all);
    }
}
