import Interop.*;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Object references in every position, inheritance, callbacks, objects that are gone. */
final class ReferenceChecks {
    private final Checks x;

    ReferenceChecks(Checks x) { this.x = x; }

    void addTo(Map<String, Checks.Check> all) {
        all.put("nodes", this::nodes);
        all.put("echo_references", this::echoReferences);
        all.put("inheritance", this::inheritance);
        all.put("callbacks", this::callbacks);
        all.put("gone", this::gone);
    }

    private static void expect(boolean ok, String what) { Checks.expect(ok, what); }

    private static void same(Object got, Object wanted, String what) throws Exception { Checks.same(got, wanted, what); }

    private void nodes() throws Exception {
        Node node = x.peer.make_node("one");
        same(node.label(), "one", "label");
        same(node.add(5), 5, "add(5)");
        same(node.add(-7), -2, "add(-7)");
        same(node.twin().label(), "one'", "the twin's label");
        Node[] made = x.peer.make_nodes(new String[] {"x", "y", "z"});
        expect(made.length == 3, "make_nodes made another number of nodes");
        same(made[2].label(), "z", "the last label");
        same(x.peer.label_of(made[1]), "y", "label_of");
        same(x.peer.label_of(null), "nil", "label_of nil");
    }

    private void echoReferences() throws Exception {
        Node a = x.peer.make_node("a");
        NodeHolder b = new NodeHolder(x.peer.make_node("b")), c = new NodeHolder();
        Node r = x.peer.echo_node(a, b, c);
        expect(r._is_equivalent(a) && c.value._is_equivalent(a), "the result or c is another object");
        expect(b.value == null, "b is not nil");
        r = x.peer.echo_node(null, b, c);
        expect(r == null && c.value == null, "nil came back as an object");
        expect(b.value != null, "b is nil");
        same(b.value.label(), "fresh", "b's label");

        org.omg.CORBA.ObjectHolder anyB = new org.omg.CORBA.ObjectHolder(), anyC = new org.omg.CORBA.ObjectHolder();
        org.omg.CORBA.Object any = x.peer.echo_object(a, anyB, anyC);
        expect(any._is_equivalent(a) && anyC.value._is_equivalent(a) && anyB.value != null, "echo_object is wrong");
        Node fresh = NodeHelper.narrow(anyB.value);

        NodeSeqHolder seqB = new NodeSeqHolder(new Node[] {a, null, fresh}), seqC = new NodeSeqHolder();
        Node[] seq = x.peer.echo_node_seq(seqB.value, seqB, seqC);
        expect(seq.length == 3 && seqC.value.length == 3 && seqB.value.length == 3, "a sequence of another length came back");
        expect(seq[0]._is_equivalent(a) && seq[1] == null, "the result is wrong");
        expect(seqB.value[0]._is_equivalent(fresh) && seqB.value[1] == null && seqB.value[2]._is_equivalent(a), "b is not reversed");

        NodePair pair = new NodePair("Pair", a, null);
        NodePairHolder pairB = new NodePairHolder(pair), pairC = new NodePairHolder();
        same(x.peer.echo_node_pair(pair, pairB, pairC), pair, "the pair");
        same(pairC.value, pair, "c of the pair");
        expect(Echo.text(pairB.value).equals("{\"pAIR\",reference,nil}") && pairB.value.first._is_equivalent(a), "b of the pair is " + Echo.text(pairB.value));

        NodeOrText vertex = new NodeOrText(), words = new NodeOrText();
        vertex.vertex(a);
        words.words("Words");
        NodeOrTextHolder unionB = new NodeOrTextHolder(words), unionC = new NodeOrTextHolder();
        NodeOrText union = x.peer.echo_node_or_text(vertex, unionB, unionC);
        expect(union.discriminator() && union.vertex()._is_equivalent(a) && unionC.value.discriminator(), "the union with a node is wrong");
        same(Echo.text(unionB.value), "(false:\"wORDS\")", "b of the union");
    }

    private void inheritance() throws Exception {
        Bottom bottom = x.peer.make_bottom();
        same(bottom.bottom_name(), "bottom", "bottom_name");
        same(bottom.left_name(), "left of bottom", "left_name");
        same(bottom.right_name(2), "right right", "right_name");
        same(bottom.base_name(), "base of bottom", "base_name");
        same(bottom.rank(), 4, "rank");
        bottom.motto("Up");
        same(bottom.motto(), "Up", "motto");

        Base base = BaseHelper.narrow(bottom);
        same(base.base_name(), "base of bottom", "base_name by Base");
        Left left = LeftHelper.narrow(base);
        Right right = RightHelper.narrow(left);
        same(right.right_name(1), "right", "right_name by Right");
        same(x.peer.describe(left), "base of bottom of rank 4", "describe(Left)");
        BaseHolder b = new BaseHolder(), c = new BaseHolder();
        bottom = BottomHelper.narrow(x.peer.echo_base(right, b, c));
        same(x.peer.describe(b.value), "base of rank 1", "describe(b)");

        for (String id : new String[] {"IDL:Interop/Base:1.0", "IDL:Interop/Left:1.0", "IDL:Interop/Right:1.0", "IDL:Interop/Bottom:1.0",
                                       "IDL:omg.org/CORBA/Object:1.0"})
            expect(bottom._is_a(id), "a Bottom says that it is no " + id);
        expect(!bottom._is_a("IDL:Interop/Node:1.0") && !b.value._is_a("IDL:Interop/Left:1.0"), "_is_a says yes to a wrong interface");
        for (String id : new String[] {"IDL:Interop/Scalars:1.0", "IDL:Interop/Names/Keywords:1.0", "IDL:Interop/Peer:1.0"})
            expect(x.peer._is_a(id), "the peer says that it is no " + id);
        try {
            NodeHelper.narrow(bottom);
            throw new Checks.Failure("a Bottom was narrowed to a Node");
        } catch (org.omg.CORBA.BAD_PARAM wrong) {
            // as Java's mapping has it
        }
        expect(!x.peer._non_existent(), "_non_existent says yes");
    }

    private static final class ListenerImpl extends ListenerPOA {
        private final List<String> heard = new ArrayList<>();

        public synchronized int ring(String message, int number) throws Detailed {
            if (message.equals("refuse")) throw new Detailed("refused", number, Color.green, new int[0]);
            heard.add(message);
            return 10 * number;
        }

        public synchronized void hint(String message) {
            heard.add(message);
            notifyAll();
        }

        /** What it heard, as soon as there are n messages, and after 5 s in any case. */
        synchronized List<String> await(int n) throws InterruptedException {
            for (int i = 0; i < 50 && heard.size() < n; i++) wait(100);
            List<String> all = new ArrayList<>(heard);
            heard.clear();
            return all;
        }
    }

    private static final class OwnNode extends NodePOA {
        public String label() { return "mine"; }
        public int add(int amount) { return amount; }
        public Node twin() { return null; }
        public void retire() { }
    }

    private void callbacks() throws Exception {
        ListenerImpl listener = new ListenerImpl();
        Listener ref = ListenerHelper.narrow(x.poa.servant_to_reference(listener));
        same(x.peer.ring_back(ref, "hello", 3), 30, "ring_back");
        expect(listener.await(3).equals(List.of("hello", "hello", "hello")), "the listener heard something else");
        try {
            x.peer.ring_back(ref, "refuse", 1);
            throw new Checks.Failure("the listener's exception got lost");
        } catch (Detailed e) {
            expect(e.why.equals("refused") && e.code == 0 && e.shade == Color.green && e.trail.length == 0, "the listener's exception is wrong");
        }
        x.peer.hint_back(ref, "psst");
        expect(listener.await(1).equals(List.of("psst")), "the listener did not get the hint");

        Node mine = NodeHelper.narrow(x.poa.servant_to_reference(new OwnNode()));
        same(x.peer.label_of(mine), "mine", "label_of the client's node");
        Node back = x.peer.echo_node(mine, new NodeHolder(), new NodeHolder());
        same(back.label(), "mine", "the client's node that came back");
    }

    private void gone() throws Exception {
        Node node = x.peer.make_node("short-lived");
        node.retire();
        String got = Checks.raised(node::label);
        expect(got.startsWith("OBJECT_NOT_EXIST "), "a retired node raised " + got);
        expect(node._non_existent(), "_non_existent of a retired node says no");
    }
}
