//! Graphs of values: sharing is preserved, nothing leaks, and depth is not limited by the stack.

use std::collections::VecDeque;

use crate::values::*;
use bytes::Bytes;
use giop_codec::cdr::{CdrDecode, CdrEncode, DecodeLimits, Decoder, Encoder, Segments, Seq};
use giop_codec::value::{GraphBuilder, Value, ValueBase, ValueForm};
use giop_codec::{ByteOrder, DecodeErrorKind, EncodeErrorKind, Version};
use proptest::prelude::*;

const DEEP: i32 = 100_000;

fn chain(length: i32) -> Option<Value<LNode>> {
    let mut graph = GraphBuilder::new();
    let mut next = None;
    for v in 0..length {
        next = Some(graph.add(LNode { v, next }));
    }
    next.map(|first| graph.finish(&first))
}

fn read<V: ValueForm>(octets: &[u8], order: ByteOrder) -> Option<Value<V>> {
    let factories = all();
    let mut d = Decoder::new(octets, order, Version::V1_2).with_context(&factories);
    d.set_limits(DecodeLimits { alloc: 1 << 30, ..d.limits() });
    let value = CdrDecode::decode(&mut d).unwrap();
    assert_eq!(d.remaining(), 0);
    value
}

#[test]
fn a_chain_of_a_hundred_thousand_values_needs_no_stack() {
    // A small stack, on which recursion would overflow.
    let walk = || {
        for chunked in [false, true] {
            let chain = chain(DEEP);
            let octets = encoded(ByteOrder::Little, |e| match chunked {
                false => chain.encode(e),
                true => Some(Value::new(Tp { a: chain.clone(), ..Tp::default() }).upcast::<Hdr>()).encode(e),
            });
            let read = match chunked {
                false => read::<LNode>(&octets, ByteOrder::Little),
                true => {
                    let tp = read::<Hdr>(&octets, ByteOrder::Little).unwrap().downcast::<Tp>().unwrap();
                    tp.get().a.clone()
                }
            };
            assert_eq!(read, chain);
            assert!(format!("{read:?}").ends_with("..))"), "only a hundred are shown");
            let mut length = 0;
            let mut next = read;
            while let Some(node) = next {
                length += 1;
                next = node.get().next.clone();
            }
            assert_eq!(length, DEEP);
        }
        // Separate graphs, each held by the previous one.
        let links = (0..DEEP).fold(None, |next, v| Some(Value::new(LNode { v, next })));
        assert!(links == chain(DEEP));
        assert_eq!(links.clone().map(|link| link.get().v), Some(DEEP - 1));
        drop(links);
    };
    let thread = std::thread::Builder::new().stack_size(64 * 1024).spawn(walk).unwrap();
    thread.join().unwrap();
}

#[test]
fn a_chain_that_takes_more_memory_than_the_limit_is_refused() {
    let octets = encoded(ByteOrder::Big, |e| chain(DEEP).encode(e));
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2);
    d.set_limits(DecodeLimits { depth: 64, alloc: 1 << 20 });
    assert_eq!(Option::<Value<LNode>>::decode(&mut d).unwrap_err().kind, DecodeErrorKind::AllocLimit);
}

fn nest(levels: usize) -> Option<Value<Tree>> {
    let pair = |left| Pair { left, o: 1, right: None };
    (0..levels).fold(None, |inner, _| Some(Value::new(Tree { pairs: vec![pair(inner)], ..Tree::default() })))
}

#[test]
fn values_in_structs_nest_as_structs_do() {
    let octets = encoded(ByteOrder::Big, |e| nest(20).encode(e));
    assert_eq!(read::<Tree>(&octets, ByteOrder::Big), nest(20));
    let octets = encoded(ByteOrder::Big, |e| nest(63).encode(e));
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2);
    assert_eq!(Option::<Value<Tree>>::decode(&mut d).unwrap_err().kind, DecodeErrorKind::DepthLimit);
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    assert_eq!(nest(1000).encode(&mut e).unwrap_err().kind, EncodeErrorKind::DepthLimit);
}

#[test]
fn handles_keep_their_graph_alive_and_cycles_do_not() {
    let name = Bytes::from(vec![1; 100]);
    let mut graph = GraphBuilder::new();
    let wrap = graph.add(Wrap { data: name.clone(), ..Wrap::default() });
    let tree = graph.reserve::<Tree>();
    let any = Some(wrap.upcast::<ValueBase>());
    assert!(graph.set(&tree, Tree { kids: vec![Some(tree.clone()), None], any, ..Tree::default() }));
    assert!(!graph.set(&Value::new(Tree::default()), Tree::default()), "not of this graph");
    let tree = graph.finish(&tree);
    drop(wrap);

    // A handle from a field outlives the handle through which it was obtained.
    let any = tree.get().any.clone().unwrap();
    let again = tree.get().kids[0].clone().unwrap();
    assert!(again.is_same(&tree));
    drop((tree, again));
    let wrap = any.downcast::<Wrap>().unwrap();
    drop(any);
    assert_eq!(wrap.get().data, name);
    assert!(!name.is_unique());
    let state = wrap.get();
    drop(wrap);
    assert_eq!(state.data, name);
    drop(state);
    assert!(name.is_unique(), "the cycle is gone");
}

#[test]
fn a_decoded_cycle_is_gone_with_its_last_handle() {
    let mut graph = GraphBuilder::new();
    let tree = graph.reserve::<Tree>();
    let wrap = Wrap { tree: Some(tree.clone()), data: Bytes::from(vec![7; 5000]), ..Wrap::default() };
    let any = Some(graph.add(wrap).upcast());
    assert!(graph.set(&tree, Tree { any, ..Tree::default() }));
    let tree = graph.finish(&tree);
    let octets = Bytes::from(encoded(ByteOrder::NATIVE, |e| Some(tree).encode(e)));
    let factories = all();
    let mut d = Decoder::from_bytes(&octets, ByteOrder::NATIVE, Version::V1_2).with_context(&factories);
    let read = Option::<Value<Tree>>::decode(&mut d).unwrap().unwrap();
    drop(d);
    let wrap = read.get().any.clone();
    assert!(!octets.is_unique(), "its octets are a view of the message");
    drop(read);
    assert!(!octets.is_unique());
    drop(wrap);
    assert!(octets.is_unique());
}

#[test]
fn values_are_shown_with_what_they_share() {
    let mut graph = GraphBuilder::new();
    let first = graph.reserve::<LNode>();
    let second = graph.add(LNode { v: 2, next: Some(first.clone()) });
    assert!(graph.set(&first, LNode { v: 1, next: Some(second) }));
    assert_eq!(format!("{first:?}"), "Value(#0 = (incomplete))");
    let ring = graph.finish(&first);
    assert_eq!(
        format!("{ring:?}"),
        "Value(#0 = LNode { v: 1, next: Some(#1) }, #1 = LNode { v: 2, next: Some(#0) })"
    );
    // The same ring after one full cycle.
    assert_eq!(ring, ring.get().next.clone().unwrap().get().next.clone().unwrap());
    assert_ne!(ring, ring.get().next.clone().unwrap());
}

#[test]
fn equal_are_graphs_that_look_the_same() {
    let shared = Value::new(Tree { name: "x".into(), ..Tree::default() });
    let kids = |a: &Value<Tree>, b: &Value<Tree>| {
        Value::new(Tree { kids: vec![Some(a.clone()), Some(b.clone())], ..Tree::default() })
    };
    let other = Value::new(Tree { name: "x".into(), ..Tree::default() });
    let different = Value::new(Tree { name: "y".into(), ..Tree::default() });
    assert_eq!(kids(&shared, &shared), kids(&shared, &other));
    assert!(!kids(&shared, &shared).is_same(&kids(&shared, &shared)));
    assert_ne!(kids(&shared, &shared), kids(&shared, &different));
    // Values of different types differ, even if their bases are equal.
    let base = Value::new(Base { b: 1 });
    let derived = Value::new(Derived { base: Base { b: 1 }, d: 0 }).upcast::<Base>();
    assert_eq!(derived.get().b, base.get().b);
    assert_ne!(derived, base);
    assert_eq!(derived.repository_id(), "IDL:T/Derived:1.0");
    assert!(base.downcast::<Derived>().is_none());
    assert!(derived.downcast::<LNode>().is_none());
}

#[test]
fn a_value_read_by_two_parameters_is_one() {
    let shared = chain(3);
    let tree = |any: &Option<Value<LNode>>| {
        Some(Value::new(Tree { any: any.as_ref().map(Value::upcast), ..Tree::default() }))
    };
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let octets = encoded(order, |e| {
            tree(&shared).encode(e)?;
            7u8.encode(e)?;
            shared.as_ref().map(|node| node.get().next.clone()).unwrap().encode(e)?;
            tree(&shared).encode(e)
        });
        let factories = all();
        let mut d = Decoder::new(&octets, order, Version::V1_2).with_context(&factories);
        let first = Option::<Value<Tree>>::decode(&mut d).unwrap().unwrap();
        assert_eq!(d.read_u8().unwrap(), 7);
        let second = Option::<Value<LNode>>::decode(&mut d).unwrap().unwrap();
        let third = Option::<Value<Tree>>::decode(&mut d).unwrap().unwrap();
        assert_eq!(d.remaining(), 0);
        let node = first.get().any.clone().unwrap().downcast::<LNode>().unwrap();
        assert!(node.get().next.as_ref().unwrap().is_same(&second));
        assert!(third.get().any.as_ref().unwrap().is_same(&node));
        // The third handle keeps the graph of the first alive.
        drop((first, second, node));
        let node = third.get().any.clone().unwrap().downcast::<LNode>().unwrap();
        assert_eq!(Some(node), shared);
    }
}

/// Bytes within chunks that are not copied.
#[test]
fn shared_octets_lie_in_chunks_and_in_blocks() {
    let data = Bytes::from(vec![3; 100_000]);
    let numbers: Seq<f64> = (0..20_000).map(f64::from).collect();
    let tree = Some(Value::new(Tree { name: "t".into(), ..Tree::default() }));
    let wrap = Wrap { tree, data: data.clone(), numbers, tail: 9, base: Hdr { h: 1 } };
    let value = Some(Value::new(wrap));
    let hdr = value.as_ref().map(Value::upcast::<Hdr>);
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let mut e = Encoder::new(order, Version::V1_2);
        value.encode(&mut e).unwrap();
        3u8.encode(&mut e).unwrap();
        hdr.encode(&mut e).unwrap();
        Some(Value::new(Wrap::clone(&value.as_ref().unwrap().get())).upcast::<Hdr>()).encode(&mut e).unwrap();
        assert!(e.chunk_count() >= 2, "they were not copied");
        let mut pieces = VecDeque::new();
        e.drain_into(&mut pieces);

        let flat = Bytes::from(pieces.make_contiguous().concat());
        let mut segments = Segments::default();
        let control: Bytes = pieces.iter().filter(|piece| piece.len() < 50_000).flatten().copied().collect();
        let mut at = 0;
        for piece in &pieces {
            if piece.len() < 50_000 {
                segments.push_control(at, piece.len());
                at += piece.len();
            } else {
                segments.push_block(piece.clone());
            }
        }
        let factories = all();
        let flat = Decoder::from_bytes(&flat, order, Version::V1_2);
        let segmented = Decoder::from_bytes(&control, order, Version::V1_2).with_segments(&segments);
        for mut d in [flat, segmented] {
            d.set_limits(DecodeLimits::for_data(1 << 20));
            let mut d = d.with_context(&factories);
            let first = Option::<Value<Wrap>>::decode(&mut d).unwrap();
            assert_eq!(first, value);
            assert_eq!(d.read_u8().unwrap(), 3);
            let second = Option::<Value<Hdr>>::decode(&mut d).unwrap();
            assert!(second.unwrap().is_same(&first.unwrap()));
            let third = Option::<Value<Hdr>>::decode(&mut d).unwrap().unwrap().downcast::<Wrap>().unwrap();
            assert_eq!(Some(third), value);
            assert_eq!(d.remaining(), 0);
        }
    }
}

#[test]
fn hostile_indirections_are_refused() {
    // Forwards, to itself, before the message, into a value, to an id, to a list, to a value of another type.
    for octets in [
        "ffffffff 00000004 7fffff00 0001",
        "ffffffff fffffffc",
        "ffffffff fffffff8",
        "ffffffff 80000000",
        "7fffff00 0001 0000 ffffffff fffffff8",
        "7fffff02 0000000f 49444c3a542f426173653a312e3000 00 0001 0000 ffffffff ffffffe4",
        "7fffff02 ffffffff fffffff8 0001",
        "7fffff06 ffffffff fffffff8 0001",
        "7fffff04 0001",
        "7fffff10 0001",
        "7fffff01 ffffffff fffffff8 0001",
        "7fffff06 00000041 0001",
        "7fffff06 ffffff00 0001",
        "7fffff02 000f0000 0001",
        "00000005",
        "80000000",
    ] {
        let octets = hex(octets);
        for take in 0..=octets.len() {
            let factories = all();
            let mut d = Decoder::new(&octets[..take], ByteOrder::Big, Version::V1_2).with_context(&factories);
            let mut read = || {
                let first = Option::<Value<Base>>::decode(&mut d)?;
                d.align(4)?;
                Option::<Value<Base>>::decode(&mut d).map(|second| (first, second))
            };
            assert!(read().is_err(), "{octets:x?}");
        }
    }
    // A base where a derived value is expected.
    let octets = hex("7fffff00 0001 0000 ffffffff fffffff4");
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2);
    assert!(Option::<Value<Base>>::decode(&mut d).is_ok());
    assert!(Option::<Value<Derived>>::decode(&mut d.clone()).is_err());
    assert!(Option::<Value<ValueBase>>::decode(&mut d).is_ok());
}

#[test]
fn chunks_too_short_for_anything_are_walked_without_recursion() {
    // Chunks of four bytes, between which an 8-aligned number can never start.
    let mut octets = hex("7fffff08 00000004 00000000 00000004 00000000");
    for _ in 0..200_000 {
        octets.extend([0, 0, 0, 4, 0, 0, 0, 0]);
    }
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2);
    assert!(Option::<Value<Wrap>>::decode(&mut d).is_err());
}

#[test]
fn ends_must_match_beginnings() {
    for octets in [
        "7fffff08 00000004 00000001 fffffffe", // a level that does not exist
        "7fffff08 00000004 00000001 00000004 00000000", // no end
        "7fffff08 00000008 00000001 00000000 00000001 07 ffffffff", // more data than members
        "7fffff08 00000004 00000001 7fffff00 00000002 00000000 ffffffff", // a value without chunks in chunks
        "7fffff08 ffffffff",                   // ends before it begins
        "7fffff08 00000000",
        "7fffff08 7ffffeff 00000001",
        "7fffff08 00000004 00000001 7fffff08 00000008 00000002 00000000 ffffffff ffffffff extra",
    ] {
        let octets = hex(&octets.replace("extra", ""));
        let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2);
        let value = Option::<Value<LNode>>::decode(&mut d);
        assert!(value.is_err() || d.remaining() > 0, "{octets:x?}");
    }
}

/// A node of a random graph: its kind, a number, and the targets of its edges.
type Plan = Vec<(u8, i32, Vec<prop::sample::Index>)>;

fn build(plan: &Plan) -> Option<Value<Tree>> {
    let mut graph = GraphBuilder::new();
    let mut trees = Vec::new();
    let mut nodes = Vec::new();
    let mut bases = Vec::new();
    let mut all: Vec<Value<ValueBase>> = Vec::new();
    for (kind, v, _) in plan {
        let base = Base { b: *v as i16 };
        match kind % 8 {
            0 => nodes.push(graph.reserve::<LNode>()),
            1 => bases.push(graph.add(base)),
            2 => bases.push(graph.add(Derived { base, d: *v }).upcast()),
            3 => bases.push(graph.add(Vb2 { base, d: *v }).upcast()),
            4 => all.push(graph.add(BoxStr(v.to_string())).upcast()),
            _ => trees.push(graph.reserve::<Tree>()),
        }
    }
    all.extend(trees.iter().map(Value::upcast));
    all.extend(nodes.iter().map(Value::upcast));
    all.extend(bases.iter().map(Value::upcast));
    fn pick<V>(from: &[Value<V>], at: Option<&prop::sample::Index>) -> Option<Value<V>> {
        at.filter(|_| !from.is_empty()).map(|at| at.get(from).clone())
    }
    for (node, (_, v, edges)) in nodes.iter().zip(plan) {
        assert!(graph.set(node, LNode { v: *v, next: pick(&nodes, edges.first()) }));
    }
    for (tree, (_, v, edges)) in trees.iter().zip(plan) {
        let pair = |at: &prop::sample::Index| Pair { left: None, o: 1, right: pick(&bases, Some(at)) };
        let state = Tree {
            name: v.to_string(),
            kids: edges.iter().map(|at| pick(&trees, Some(at)).filter(|_| v % 3 != 0)).collect(),
            pairs: edges.iter().take(2).map(pair).collect(),
            any: pick(&all, edges.last()),
        };
        assert!(graph.set(tree, state));
    }
    trees.first().map(|root| graph.finish(root))
}

proptest! {
    #[test]
    fn random_graphs_arrive_as_they_are(
        plan in prop::collection::vec((any::<u8>(), any::<i32>(), prop::collection::vec(any::<prop::sample::Index>(), 0..4)), 0..40),
        order in prop::sample::select(vec![ByteOrder::Big, ByteOrder::Little]),
        lead in 0u8..9,
    ) {
        let root = build(&plan);
        let wrap = Wrap { tree: root.clone(), tail: 5, base: Hdr { h: 3 }, ..Wrap::default() };
        let wrapped = Some(Value::new(wrap).upcast::<Hdr>());
        let base = root.as_ref().map(Value::upcast::<ValueBase>);
        let octets = encoded(order, |e| {
            (0..lead).for_each(|octet| e.put_u8(octet));
            wrapped.encode(e)?;
            root.encode(e)?;
            base.encode(e)
        });
        let alone = encoded(order, |e| {
            (0..lead).for_each(|octet| e.put_u8(octet));
            root.encode(e)
        });

        let factories = all();
        let mut d = Decoder::new(&octets, order, Version::V1_2).at(lead.into()).with_context(&factories);
        let read_wrapped = Option::<Value<Hdr>>::decode(&mut d).unwrap();
        let read_root = Option::<Value<Tree>>::decode(&mut d).unwrap();
        let read_base = Option::<Value<ValueBase>>::decode(&mut d).unwrap();
        prop_assert_eq!(d.remaining(), 0);
        prop_assert_eq!(&read_wrapped, &wrapped);
        prop_assert_eq!(&read_root, &root);
        // Shared values have the same number.
        prop_assert_eq!(format!("{read_wrapped:?}"), format!("{wrapped:?}"));
        if let (Some(root), Some(base)) = (&read_root, &read_base) {
            prop_assert!(root.is_same(base));
        }
        let mut d = Decoder::new(&alone, order, Version::V1_2).at(lead.into()).with_context(&factories);
        let read_alone = Option::<Value<Tree>>::decode(&mut d).unwrap();
        prop_assert_eq!(format!("{read_alone:?}"), format!("{root:?}"));
        // Encoding the decoded value again yields the same bytes.
        prop_assert_eq!(encoded(order, |e| {
            (0..lead).for_each(|octet| e.put_u8(octet));
            read_alone.encode(e)
        }), alone);

        // Truncated data is an error, or null.
        let step = (octets.len() / 50).max(1);
        for cut in (usize::from(lead)..octets.len()).step_by(step) {
            let mut d = Decoder::new(&octets[..cut], order, Version::V1_2).at(lead.into()).with_context(&factories);
            let mut read = || {
                Option::<Value<Hdr>>::decode(&mut d)?;
                Option::<Value<Tree>>::decode(&mut d)?;
                Option::<Value<ValueBase>>::decode(&mut d)
            };
            prop_assert!(read().is_err());
        }
        // A receiver that knows only the base reads the base.
        let mut d = Decoder::new(&octets, order, Version::V1_2).at(lead.into());
        let head = Option::<Value<Hdr>>::decode(&mut d).unwrap();
        prop_assert_eq!(head, Some(Value::new(Hdr { h: 3 })));
    }
}
