import InteropValues.*;
import java.io.Serializable;
import java.nio.file.*;
import org.omg.CORBA.ORB;

/**
 * ValueClient --ior PATH [--cut] [--seconds S]
 * Calls InteropValues::Values of values.idl, and prints `ok NAME` or `FAIL NAME: why` for each
 * check. --cut: the server knows no Mark, so that it takes one for a Point. Status 0:
 * nothing failed, 1: something failed.
 */
public final class ValueClient {
    private interface Body { void run() throws Exception; }

    private static int failed;

    private static void check(String name, Body body) {
        try {
            body.run();
            System.out.println("ok " + name);
        } catch (Throwable e) {
            failed++;
            System.out.println("FAIL " + name + ": " + e);
        }
    }

    private static void want(boolean what) {
        if (!what) throw new AssertionError("line " + Thread.currentThread().getStackTrace()[2].getLineNumber());
    }

    private static Point point(int x, int y) {
        Point made = new ValueServer.PointState();
        made.x = x;
        made.y = y;
        return made;
    }

    private static void echoes(Values values) {
        check("null", () -> {
            PointHolder b = new PointHolder(point(1, 2)), c = new PointHolder();
            want(values.echo_point(null, b, c) == null);
            want(c.value == null && b.value.x == 1 && b.value.y == 2);
        });
        check("point", () -> {
            PointHolder b = new PointHolder(), c = new PointHolder();
            Point result = values.echo_point(point(3, 4), b, c);
            want(result.x == 3 && result.y == 4 && result == c.value && b.value == null);
        });
        check("spot", () -> {
            Spot spot = new ValueServer.SpotState();
            spot.x = 5;
            spot.depth = -7;
            PointHolder b = new PointHolder(), c = new PointHolder();
            Spot result = (Spot) values.echo_point(spot, b, c);
            want(result.x == 5 && result.depth == -7 && result == c.value);
        });
        check("links", () -> {
            Link links = ValueServer.link(1, ValueServer.link(2, null));
            LinkHolder b = new LinkHolder(links), c = new LinkHolder();
            Link result = values.echo_link(links, b, c);
            want(result.next.number == 2 && result.next.next == null && result == c.value && result == b.value);
        });
        check("rings", () -> {
            for (int length : new int[] {1, 2, 100}) {
                want(values.ring_length(ValueServer.ring(length)) == length);
                Link made = values.make_ring(length);
                want(ValueServer.lengthOf(made) == length && made.number == 1);
                Link back = values.echo_link(ValueServer.ring(length), new LinkHolder(), new LinkHolder());
                want(ValueServer.lengthOf(back) == length);
            }
            want(values.ring_length(ValueServer.link(1, ValueServer.link(2, null))) == 0);
        });
        check("identity", () -> {
            Link a = ValueServer.link(1, ValueServer.link(2, null)), b = ValueServer.link(1, ValueServer.link(2, null));
            want(values.is_same(a, a) && !values.is_same(a, b) && values.is_same(a.next, a.next) && !values.is_same(a, a.next));
        });
        check("tree", () -> {
            Tree leaf = new ValueServer.TreeState(), root = new ValueServer.TreeState();
            leaf.label = "leaf";
            root.label = "root";
            root.kids = new Tree[] {leaf, null, root, leaf};
            root.pairs = new Pair[] {new Pair(leaf, 'x', point(8, 9))};
            Tree result = values.echo_tree(root);
            want(result.label.equals("root") && result.kids.length == 4);
            want(result.kids[0] == result.kids[3] && result.kids[2] == result && result.kids[1] == null);
            want(result.kids[0].label.equals("leaf"));
            want(result.pairs[0].left == result.kids[0] && result.pairs[0].between == 'x' && result.pairs[0].right.y == 9);
        });
        check("boxes", () -> {
            want(values.echo_text("hello").equals("hello"));
            want(values.echo_text(null) == null);
            byte[] blob = new byte[100000];
            for (int i = 0; i < blob.length; i++) blob[i] = (byte) (i % 251);
            want(java.util.Arrays.equals(values.echo_blob(blob), blob));
        });
        check("refused", () -> {
            try {
                values.refuse(point(1, 2));
                want(false);
            } catch (Refused refused) {
                want(refused.why.x == 1 && refused.why.y == 2);
            }
        });
    }

    private static Label label(String text) {
        Label made = new ValueServer.LabelState();
        made.text = text;
        return made;
    }

    /** Objects and values where either may come. */
    private static void described(Values values) {
        check("description", () -> {
            want(values.description(values.make_thing("far")).equals("object far"));
            want(values.description(label("near")).equals("value near"));
            want(values.description(null).equals("nothing"));
        });
        check("describable", () -> {
            Thing thing = values.make_thing("far");
            Describable back = values.echo_describable(thing);
            want(back.describe().equals("object far") && thing._is_equivalent((org.omg.CORBA.Object) back));
            Label value = (Label) values.echo_describable(label("near"));
            want(value.describe().equals("value near"));
            want(values.echo_describable(null) == null);
        });
        check("tag", () -> {
            Thing thing = values.make_thing("far");
            Tag tag = new ValueServer.TagState();
            tag.what = label("near");
            tag.more = new Describable[] {thing, null, tag.what, thing};
            tag.note = "behind";
            Tag back = values.echo_tag(tag);
            want(back.more.length == 4 && back.note.equals("behind") && back.more[1] == null);
            want(back.more[3].describe().equals("object far") && back.more[2].describe().equals("value near"));
            want(back.what == back.more[2]);
        });
    }

    private static void marks(Values values, boolean cut) {
        check("measure", () -> want(values.measure(ValueServer.mark(3)) == (cut ? 0.0 : 11.5)));
        check("mark", () -> {
            PointHolder b = new PointHolder(point(1, 2)), c = new PointHolder();
            Point result = values.echo_point(ValueServer.mark(4), b, c);
            want(b.value.y == 2 && result.x == 4 && result == c.value && result instanceof Mark != cut);
            if (!cut) want(((Mark) result).trail.next == ((Mark) result).tail && ((Mark) result).note.equals("a mark"));
        });
        check("made", () -> {
            Mark made = (Mark) values.make_mark(9);
            want(made.y == -9 && made.weight == 0.5 && made.trail.next == made.tail && made.tail.next.number == 3);
        });
    }

    public static void main(String[] args) throws Exception {
        Options o = new Options(args);
        o.exitAfter("300");
        ORB orb = o.peerOrb("UTF-8");
        ValueServer.know(orb, true);
        String ior = new String(Files.readAllBytes(Paths.get(o.get("--ior", "values.ior")))).trim();
        Values values = ValuesHelper.narrow(orb.string_to_object(ior));
        if (!o.flag("--cut")) echoes(values);
        if (!o.flag("--cut")) described(values);
        marks(values, o.flag("--cut"));
        System.out.flush();
        Runtime.getRuntime().halt(failed > 0 ? 1 : 0);
    }
}
