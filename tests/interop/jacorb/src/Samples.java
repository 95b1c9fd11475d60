import Interop.*;
import Interop.Names.Option;
import Interop.Names.Result;
import Interop.Names.Words;
import java.math.BigDecimal;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.IntFunction;

/**
 * The values that the checks send: sample i travels as `a` together with sample i + 1
 * as `b`. The same values are in ../omniorb/checks_echo.cc.
 */
final class Samples {
    private Samples() { }

    /** By operation. */
    static final Map<String, Object[]> ALL = new LinkedHashMap<>();

    private static void add(String operation, Object... values) { ALL.put(operation, values); }

    private static final long FAR = Long.MIN_VALUE;

    private static Person person(String name, int age, Color favourite) { return new Person(name, age, favourite); }

    static Mixed mixed(int n) {
        return new Mixed((byte) n, n * 1.5, (short) -n, (long) n << 40, (char) ('a' + n % 26), n % 2 == 1, n / 4f, (short) (65535 - n),
                         0x80000000 + n, 0x0102030405060708L + n, (byte) (255 - n));
    }

    private static double[][] matrix(double first) {
        double[][] m = new double[2][3];
        for (int i = 0; i < 6; i++) m[i / 3][i % 3] = first + i;
        return m;
    }

    private static Team team(int n) {
        Person[] members = new Person[n];
        for (int i = 0; i < n; i++) members[i] = person(i % 2 == 1 ? "Ada" : "", i, Color.from_int(i % 3));
        int[] scores = new int[n % 5];
        for (int i = 0; i < scores.length; i++) scores[i] = 10 * i;
        byte[] digest = new byte[5];
        for (int i = 0; i < 5; i++) digest[i] = (byte) (16 * n + i);
        int[][] table = new int[2][2];
        for (int i = 0; i < 4; i++) table[i / 2][i % 2] = 1000 * n + i;
        return new Team(person("Grace", n, Color.green), members, new Point(n, -n), new Point(100 * n, 0),
                        n % 2 == 1 ? "Odd" : "Even number team", scores, digest, table);
    }

    private static Tree tree(int value, int depth) {
        Tree[] children = new Tree[depth];
        for (int i = 0; i < depth; i++) children[i] = tree(10 * value + i, depth - 1);
        return new Tree(value, children);
    }

    private static <U> U made(U union, Consumer<U> set) {
        set.accept(union);
        return union;
    }

    static ByLong byLong(int d) {
        return made(new ByLong(), u -> {
            if (d == 1) u.a((short) 0x0102);
            else if (d == 2 || d == 3) u.b(d, "Union");
            else u.c(d, 2.5);
        });
    }

    private static Person[][] grid(int n) {
        Person[][] g = new Person[2][2];
        for (int i = 0; i < 4; i++) g[i / 2][i % 2] = person(i > 0 ? "Someone" : "", n + i, Color.from_int(i % 3));
        return g;
    }

    private static int[] bigArray(int factor) {
        int[] a = new int[1500];
        for (int i = 0; i < 1500; i++) a[i] = i * factor;
        return a;
    }

    private static <T> T[] run(T[] out, IntFunction<T> element) {
        for (int i = 0; i < out.length; i++) out[i] = element.apply(i);
        return out;
    }

    private static byte[] octets(int... values) {
        byte[] out = new byte[values.length];
        for (int i = 0; i < out.length; i++) out[i] = (byte) values[i];
        return out;
    }

    private static Words words(int type, String fn, boolean loop, Result r) { return new Words(type, fn, loop, new Option(-type, r)); }

    static {
        scalars();
        texts();
        structs();
        unions();
        arrays();
        sequences();
        decimals();
    }

    private static void scalars() {
        add("echo_short", (short) 0x0102, Short.MIN_VALUE, Short.MAX_VALUE, (short) -2);
        add("echo_ushort", (short) 0x0102, (short) 65535, (short) 0);
        add("echo_long", 0x01020304, Integer.MIN_VALUE, Integer.MAX_VALUE, -3);
        add("echo_ulong", 0x01020304, -1, 0);
        add("echo_longlong", 0x0102030405060708L, FAR, ~FAR, -4L);
        add("echo_ulonglong", 0x0102030405060708L, -1L, 0L);
        add("echo_octet", (byte) 1, (byte) 255, (byte) 0);
        add("echo_boolean", true, false);
        add("echo_char", 'A', 'z', '\0', '~');
        add("echo_float", 1.5f, -0.0f, Float.MAX_VALUE, Float.POSITIVE_INFINITY);
        add("echo_double", 1.5, -0.0, Double.MAX_VALUE, Double.MIN_VALUE, Double.NEGATIVE_INFINITY);
        add("echo_color", Color.red, Color.blue, Color.green);
        add("echo_tiny", (short) 0x0102, (short) -5);
        add("echo_stamp", 0x0102030405060708L, 1L);
        add("echo_paint", Color.green, Color.blue);
    }

    private static void texts() {
        add("echo_string", "hello", "", "A longer Line, of 33 characters ...");
        add("echo_text", "alias", "Of String");
        add("echo_code", "sixteen letters!", "Ab", "");
        add("echo_wchar", 'A', '\u20ac', '\u6f22', '\0');
        add("echo_wstring", "Hello", "Gr\u00fc\u00dfe, \u6f22\u5b57 \u20ac", "", "clef \ud834\udd1e", "A\ud83d", "\ude00B");
        add("echo_wchar_seq", new char[] {'a', '\u20ac', 'B'}, new char[] {'\u00e9'}, new char[0]);
        add("echo_wstring_seq", new String[] {"One", "", "\u20ac"}, new String[] {"Two"}, new String[0]);
        add("echo_caption", new Caption("Narrow", "Wide \u20ac", '\u00fc'), new Caption("", "", 'x'));
        add("echo_wide_choice", made(new WideChoice(), u -> u.text("Wide \u20ac")), made(new WideChoice(), u -> u.letter('\u20ac')),
            made(new WideChoice(), u -> u.narrow("Narrow")));
    }

    private static void structs() {
        add("echo_point", new Point(1, -2), new Point(0x01020304, Integer.MIN_VALUE));
        add("echo_mixed", mixed(1), mixed(2), mixed(200));
        add("echo_person", person("Ada", 36, Color.green), person("", -1, Color.blue));
        add("echo_team", team(3), team(0), team(4));
        add("echo_tree", tree(1, 3), tree(2, 0), tree(3, 1));
        add("echo_place", new Point(7, 8), new Point(-9, 0));
        add("echo_squad", team(1), team(2));
        add("echo_words", words(1, "Function", true, Result.err), words(-2, "", false, Result.ok));
    }

    private static void unions() {
        add("echo_by_long", byLong(1), byLong(2), byLong(3), byLong(0));
        add("echo_by_color", made(new ByColor(), u -> u.count(5)), made(new ByColor(), u -> u.spot(new Point(1, 2))), made(new ByColor(), u -> u.__default()));
        add("echo_all_colors", made(new AllColors(), u -> u.r((byte) 7)), made(new AllColors(), u -> u.g(0.5)), made(new AllColors(), u -> u.s("Sky")));
        add("echo_by_boolean", made(new ByBoolean(), u -> u.yes("Yes")), made(new ByBoolean(), u -> u.no(-1)));
        add("echo_maybe", made(new Maybe(), u -> u.some(person("Some", 1, Color.red))), made(new Maybe(), u -> u.__default()));
        add("echo_by_char", made(new ByChar(), u -> u.number(77)),
            made(new ByChar(), u -> u.people('b', new Person[] {person("Bob", 2, Color.blue)})),
            made(new ByChar(), u -> u.people('c', new Person[0])), made(new ByChar(), u -> u.other((byte) 9)));
        add("echo_by_short", made(new ByShort(), u -> u.grid(matrix(0.5))), made(new ByShort(), u -> u.list(new int[] {1, 2, 3})),
            made(new ByShort(), u -> u.__default()));
        add("echo_by_ushort", made(new ByUShort(), u -> u.flag(true)), made(new ByUShort(), u -> u.letter('q')));
        add("echo_by_ulong", made(new ByULong(), u -> u.inner(made(new ByBoolean(), b -> b.no(3)))), made(new ByULong(), u -> u.rest(5, "Rest")));
        add("echo_by_longlong", made(new ByLongLong(), u -> u.before(-6)), made(new ByLongLong(), u -> u.after(6.5)));
        add("echo_by_ulonglong", made(new ByULongLong(), u -> u.most("Most")), made(new ByULongLong(), u -> u.rest(mixed(3))));
        add("echo_by_long_seq", new ByLong[] {byLong(1), byLong(3), byLong(0)}, new ByLong[] {byLong(2)}, new ByLong[0]);
        add("echo_variant", byLong(0), byLong(1));
        add("echo_wrapped", new Wrapped((byte) 1, byLong(0), new ByLong[] {byLong(1), byLong(2)}, (byte) 2),
            new Wrapped((byte) 3, byLong(3), new ByLong[0], (byte) 4));
    }

    private static void arrays() {
        add("echo_long_array", new int[] {1, 2, 3}, new int[] {-1, 0, 0x01020304});
        add("echo_octet_array", octets(1, 2, 3, 4, 5, 6, 7), octets(255, 0, 255, 0, 255, 0, 1));
        add("echo_matrix", matrix(0.25), matrix(-100));
        add("echo_point_array", new Point[] {new Point(1, 2), new Point(3, 4)}, new Point[] {new Point(-1, -2), new Point(0, 0)});
        add("echo_string_array", new String[] {"One", "Two"}, new String[] {"", "last"});
        add("echo_person_grid", grid(1), grid(50));
        add("echo_seq_array", new int[][] {{1}, {2, 3}}, new int[][] {{}, {4, 5, 6}});
        add("echo_matrix_seq", new double[][][] {matrix(1), matrix(-0.5)}, new double[0][][]);
        add("echo_big_array", bigArray(1), bigArray(-65537));
        add("echo_triple", new int[] {4, 5, 6}, new int[] {0, -1, 1});
    }

    private static BigDecimal decimal(String digits) { return new BigDecimal(digits); }

    private static Bill bill(int items, String total, String share, String code) {
        return new Bill((byte) items, decimal(total), -items, decimal(share), decimal(code));
    }

    private static void decimals() {
        add("echo_money", decimal("1234567.89"), decimal("-0.05"), decimal("0.00"), decimal("-9999999.99"));
        add("echo_part", decimal("0.1234"), decimal("-0.0001"), decimal("0.9999"));
        add("echo_huge", decimal("9999999999999999999999999999999"), decimal("-1"), decimal("0"));
        add("echo_bill", bill(3, "19.90", "0.2500", "1234567890123456789012345678901"), bill(0, "-0.01", "0.0000", "-7"));
        add("echo_money_seq", new BigDecimal[] {decimal("1.50"), decimal("-2.25"), decimal("0.00")}, new BigDecimal[0],
            new BigDecimal[] {decimal("9999999.99")});
        add("echo_part_array", new BigDecimal[] {decimal("0.5000"), decimal("-0.0625")}, new BigDecimal[] {decimal("0.0000"), decimal("0.0010")});
    }

    private static void sequences() {
        int[] squares = new int[100];
        for (int i = 0; i < 100; i++) squares[i] = i * i;
        byte[] thousand = new byte[1000];
        for (int i = 0; i < 1000; i++) thousand[i] = (byte) i;
        add("echo_short_seq", new short[] {1, -2, 0x0304}, new short[] {-32768}, new short[0]);
        add("echo_ushort_seq", new short[] {1, -1}, new short[] {0}, new short[0]);
        add("echo_long_seq", new int[] {1, -2, 0x01020304}, new int[0], squares);
        add("echo_ulong_seq", new int[] {1, -1}, new int[] {0}, new int[0]);
        add("echo_longlong_seq", new long[] {1, FAR}, new long[] {0x0102030405060708L}, new long[0]);
        add("echo_ulonglong_seq", new long[] {1, -1}, new long[0]);
        add("echo_octet_seq", octets(1, 2, 255), octets(), thousand);
        add("echo_boolean_seq", new boolean[] {true, false, true}, new boolean[] {false}, new boolean[0]);
        add("echo_char_seq", new char[] {'a', 'B', 'c'}, new char[] {'~'}, new char[0]);
        add("echo_float_seq", new float[] {1.5f, -0.25f}, new float[0], new float[] {Float.MAX_VALUE});
        add("echo_double_seq", new double[] {1.5, -0.25}, new double[0], new double[] {Double.MAX_VALUE, Double.MIN_VALUE, Double.POSITIVE_INFINITY});
        add("echo_string_seq", new String[] {"a", "Bcd", ""}, new String[0], new String[] {"one"});
        add("echo_color_seq", new Color[] {Color.red, Color.blue, Color.green}, new Color[] {Color.green}, new Color[0]);
        add("echo_point_seq", new Point[] {new Point(1, 2), new Point(3, 4)}, new Point[0], run(new Point[50], i -> new Point(i, -i)));
        add("echo_mixed_seq", new Mixed[] {mixed(1), mixed(2), mixed(3)}, new Mixed[0], run(new Mixed[10], Samples::mixed));
        add("echo_person_seq", new Person[] {person("Ada", 36, Color.green), person("", 0, Color.red)}, new Person[0],
            new Person[] {person("Bob", 5, Color.blue)});
        add("echo_long_seq_seq", new int[][] {{1, 2}, {}, {3}}, new int[0][], new int[][] {{}});
        add("echo_few_longs", new int[] {1, 2, 3, 4}, new int[0], new int[] {5});
        add("echo_few_octets", octets(1, 2, 3, 4, 5, 6, 7, 8), octets(), octets(9));
        add("echo_few_codes", new String[] {"One", "sixteen letters!", ""}, new String[0], new String[] {"Two"});
    }
}
