/** Numbers that look drawn, and are the same in every peer. */
final class BenchDraws {
    private long x = 0x5eed;

    int below(long end) {
        x = x * 6364136223846793005L + 1442695040888963407L;
        return (int) ((x >>> 33) % end);
    }

    /** Which of so many objects are called, in their order: all, or one out of each thousandth. */
    static int[] called(long objects) {
        int parts = (int) Math.min(objects, 1000);
        BenchDraws draws = new BenchDraws();
        int[] all = new int[parts];
        for (int part = 0; part < parts; part++) {
            long from = part * objects / parts, to = (part + 1) * objects / parts;
            all[part] = (int) (from + draws.below(to - from));
        }
        return all;
    }
}
