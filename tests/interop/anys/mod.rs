//! Anys and type codes, live: zorb with itself, and with omniORB and JacORB in both roles. Each side creates
//! the same samples, sends them, and extracts those of the other from their anys by their types.

mod dynamic;

use std::fmt::Debug;
use std::sync::OnceLock;
use std::time::Duration;

use test_support::peers::matrix::{Outcome, Role, cell};
use test_support::peers::{Foreign, tell};
use zorb::prelude::*;
use zorb::values::{CdrDecode as _, Decoder};
use zorb::wire::{ByteOrder, Version};
use zorb::{GraphBuilder, Value, testing};

zorb::idl!("tests/interop/idl/anys.idl");

use anys::{
    Bad, Choice, Color, Ends, Figure, Flag, Holder, Label, Link, Money, Node, Numbers, PeerRef, PeerServant,
    Place, Point, Priced, Spot, Texts, peer,
};

/// Timeout of the other ORB's program.
const LIMIT: Duration = Duration::from_secs(120);

fn figure() -> Figure {
    Figure {
        name: "triangle".into(),
        corners: (0..3).map(|i| Point { x: i, y: -i }).collect(),
        centre: Point { x: 7, y: 8 },
        fill: Color::Green,
        line: Color::Blue,
    }
}

fn node() -> Node {
    let leaf = |v| Node { v, kids: vec![] };
    Node { v: 1, kids: vec![Node { v: 2, kids: vec![leaf(3)] }, leaf(4)] }
}

fn numbers() -> Numbers {
    Numbers {
        b: true,
        o: 200,
        s: -2,
        us: u16::MAX,
        l: -3,
        ul: u32::MAX,
        ll: -(1 << 40),
        ull: u64::MAX,
        f: 1.5,
        d: -2.25,
        c: Char(b'z'),
    }
}

fn texts() -> Texts {
    let mark = "12345678".try_into().unwrap();
    Texts { s: "plain".into(), w: "zwölf €".into(), wc: WChar(0x20AC), mark }
}

fn bad() -> Bad {
    Bad { why: "because".into(), detail: any(5_i32) }
}

fn link(number: i32, next: Option<Value<Link>>) -> Value<Link> {
    Value::new(Link { number, next })
}

/// Returns two links in a circle.
fn ring() -> Value<Link> {
    let mut graph = GraphBuilder::new();
    let first = graph.reserve::<Link>();
    let second = graph.add(Link { number: 2, next: Some(first.clone()) });
    assert!(graph.set(&first, Link { number: 1, next: Some(second) }));
    graph.finish(&first)
}

fn spot() -> Value<Spot> {
    let last = link(2, None);
    let way = Ends { first: Some(link(1, Some(last.clone()))), last: Some(last) };
    Value::new(Spot { base: Place { x: 4 }, note: "spot".into(), way })
}

fn any<T: Typed + zorb::__private::v1::CdrEncode>(value: T) -> Any {
    Any::new(value).unwrap()
}

/// Returns one any of each kind.
fn samples(own: &PeerRef) -> Vec<Any> {
    let octets: Bytes = (0..5000).map(|i| i as u8).collect();
    let shared = link(1, None);
    let holder =
        Holder { inner: any(Point { x: 3, y: 4 }), shape: Choice::type_code(), self_: Some(own.clone()) };
    vec![
        Any::default(),
        any(-5_i32),
        any("text"),
        any(true),
        any(200_u8),
        any(Char(b'c')),
        any(WChar(0x20AC)),
        any(WString::from("wide €")),
        any(1.5_f64),
        any(u64::MAX),
        any(Bounded::<String, 8>::try_from("bounded").unwrap()),
        any(0.25_f32),
        any(Color::Green),
        any(Point { x: 1, y: 2 }),
        any(figure()),
        any(node()),
        any(numbers()),
        any(texts()),
        any(Choice::B(3, "second".into())),
        any(Choice::C(0, Point { x: 9, y: 9 })),
        any(Flag::Other(false)),
        Any::with_type(&anys::grid_type_code(), [[0_i32, 1, 2], [3, 4, 5]]).unwrap(),
        Any::with_type(&anys::doubles_type_code(), Seq::from([0.5, 1.5, 2.5])).unwrap(),
        Any::with_type(&anys::octets_type_code(), octets).unwrap(),
        // omniORB sends an exception here without its id, in the form that it can read.
        any(5_i32),
        any(Node::type_code()),
        any(any(figure())),
        any(holder),
        any(own),
        Any::with_type(&anys::any_seq_type_code(), vec![any(1_i16), any("two")]).unwrap(),
        any(ring()),
        any(Value::new(Label("boxed".into()))),
        any(Ends { first: Some(shared.clone()), last: Some(shared.clone()) }),
        any(spot()),
        Any::with_type(&anys::any_seq_type_code(), vec![any(&shared), any(&shared)]).unwrap(),
    ]
}

/// Returns a description of the differences from the own samples.
async fn wrong_with(values: &[Any]) -> String {
    let compared = async {
        want(values, 0, |a| (a.type_code() == &TypeCode::NULL).then_some(()))?;
        same(values, 1, -5_i32)?;
        same(values, 2, String::from("text"))?;
        same(values, 3, true)?;
        same(values, 4, 200_u8)?;
        same(values, 5, Char(b'c'))?;
        same(values, 6, WChar(0x20AC))?;
        same(values, 7, WString::from("wide €"))?;
        same(values, 8, 1.5_f64)?;
        same(values, 9, u64::MAX)?;
        same(values, 10, Bounded::<String, 8>::try_from("bounded").unwrap())?;
        same(values, 11, 0.25_f32)?;
        same(values, 12, Color::Green)?;
        same(values, 13, Point { x: 1, y: 2 })?;
        same(values, 14, figure())?;
        same(values, 15, node())?;
        same(values, 16, numbers())?;
        same(values, 17, texts())?;
        same(values, 18, Choice::B(3, "second".into()))?;
        same(values, 19, Choice::C(0, Point { x: 9, y: 9 }))?;
        same(values, 20, Flag::Other(false))?;
        same(values, 21, [[0_i32, 1, 2], [3, 4, 5]])?;
        same(values, 22, Seq::from([0.5, 1.5, 2.5]))?;
        same(values, 23, (0..5000).map(|i| i as u8).collect::<Bytes>())?;
        want(values, 24, |a| (a.get() == Ok(5_i32) || a.get() == Ok(bad())).then_some(()))?;
        same(values, 25, Node::type_code())?;
        same(values, 26, any(figure()))?;
        let holder: Holder = want(values, 27, |a| a.get().ok())?;
        let own: Option<PeerRef> = want(values, 28, |a| a.get().ok())?;
        want(values, 27, |_| (holder.inner.get() == Ok(Point { x: 3, y: 4 })).then_some(()))?;
        // JacORB uses another order of labels.
        want(values, 27, |_| holder.shape.equivalent(&Choice::type_code()).then_some(()))?;
        for reference in [own, holder.self_] {
            let reference = reference.ok_or("a reference is nil")?;
            let gone = reference.non_existent().await.map_err(|e| e.to_string())?;
            want(values, 28, |_| (!gone).then_some(()))?;
        }
        same(values, 29, vec![any(1_i16), any("two")])?;
        let first: Option<Value<Link>> = want(values, 30, |a| a.get().ok())?;
        let in_circle = first.is_some_and(|first| {
            let second = first.get().next.clone();
            second.is_some_and(|second| second.get().next.as_ref().is_some_and(|next| next.is_same(&first)))
        });
        want(values, 30, |_| in_circle.then_some(()))?;
        same(values, 30, Some(ring()))?;
        let label = Ok(Some(Value::new(Label("boxed".into()))));
        // JacORB does not support boxes in anys.
        want(values, 31, |a| (a.get() == Ok(5_i32) || a.get() == label).then_some(()))?;
        let ends: Ends = want(values, 32, |a| a.get().ok())?;
        want(values, 32, |_| ends.first.as_ref().zip(ends.last.as_ref()).filter(|(a, b)| a.is_same(b)))?;
        same(values, 32, Ends { first: Some(link(1, None)), last: Some(link(1, None)) })?;
        same(values, 33, Some(spot()))?;
        let list: Vec<Any> = want(values, 34, |a| a.get().ok())?;
        want(values, 34, |_| (list.len() == 2).then_some(()))?;
        for one in 0..2 {
            same(&list, one, Some(link(1, None)))?;
        }
        // The type codes are those of the IDL, names and typedefs included; `Color` to `Texts`, and the named
        // ones.
        let named = [
            Color::type_code(),
            Point::type_code(),
            Figure::type_code(),
            Node::type_code(),
            Numbers::type_code(),
            Texts::type_code(),
        ];
        for (index, code) in (12..).zip(named) {
            want(values, index, |a| (a.type_code() == &code).then_some(()))?;
        }
        for (index, code) in
            [(21, anys::grid_type_code()), (22, anys::doubles_type_code()), (23, anys::octets_type_code())]
        {
            want(values, index, |a| (a.type_code() == &code).then_some(()))?;
        }
        Ok::<(), String>(())
    };
    compared.await.err().unwrap_or_default()
}

fn want<T>(values: &[Any], index: usize, f: impl FnOnce(&Any) -> Option<T>) -> Result<T, String> {
    let value = values.get(index).ok_or("there are too few samples")?;
    f(value).ok_or_else(|| format!("sample {index} is {value:?}"))
}

fn same<T>(values: &[Any], index: usize, wanted: T) -> Result<(), String>
where
    T: Typed + zorb::__private::v1::CdrDecode + PartialEq + Debug,
{
    let found = want(values, index, |a| a.get::<T>().ok())?;
    if found == wanted { Ok(()) } else { Err(format!("sample {index} is {found:?}")) }
}

#[derive(Default)]
struct Servant {
    own: OnceLock<PeerRef>,
}

impl PeerServant for std::sync::Arc<Servant> {
    async fn samples(&self) -> Result<Vec<Any>, SystemException> {
        Ok(samples(self.own.get().unwrap()))
    }

    async fn check(&self, values: &[Any]) -> Result<String, SystemException> {
        Ok(wrong_with(values).await)
    }

    async fn echo(&self, a: &Any, b: Any) -> Result<(Any, Any, Any), SystemException> {
        Ok((a.clone(), Any::new(&b)?, b))
    }

    async fn type_of(&self, a: &Any) -> Result<TypeCode, SystemException> {
        Ok(a.type_code().clone())
    }

    async fn echo_type(
        &self,
        a: &TypeCode,
        b: TypeCode,
    ) -> Result<(TypeCode, TypeCode, TypeCode), SystemException> {
        Ok((a.clone(), a.clone(), b))
    }

    async fn fail(&self, detail: &Any) -> Result<(), peer::FailError> {
        Err(Bad { why: "asked for".into(), detail: detail.clone() }.into())
    }
}

/// Returns a listening ORB with a servant.
async fn server() -> (Orb, PeerRef) {
    let orb =
        Orb::builder().listen("iiop://127.0.0.1:0").register_value_type::<Spot>().build().await.unwrap();
    let servant = std::sync::Arc::new(Servant::default());
    let reference: PeerRef = orb.activate(std::sync::Arc::clone(&servant)).unwrap();
    servant.own.set(reference.clone()).unwrap();
    (orb, reference)
}

/// Makes all requests of a client to a peer, which calls back to `own`. If `all` is not set, the peer is
/// JacORB, which does not forward everything: it writes boxes as Java values, and bounded strings without
/// their bounds.
async fn drive(peer: &PeerRef, own: &PeerRef, all: bool) {
    let theirs = peer.samples().await.unwrap();
    assert_eq!(wrong_with(&theirs).await, "");
    let samples = samples(own);
    assert_eq!(peer.check(&samples).await.unwrap(), "");
    let theirs = theirs.iter().map(|any| if any.is::<Bad>() { &samples[1] } else { any });
    for (sample, other) in samples.iter().zip(theirs) {
        if !all && (sample.is::<Value<Label>>() || sample.is::<Bounded<String, 8>>()) {
            continue;
        }
        let (a, b, c) = peer.echo(sample, other.clone()).await.unwrap();
        assert!(a.type_code() == sample.type_code() && c.type_code() == other.type_code(), "{a:?} {c:?}");
        assert_eq!(b.get::<Any>().unwrap(), c);
        // Byte for byte except in type codes, where one may spell out a type to which another refers.
        let mut again = samples.clone();
        let index = samples.iter().position(|any| std::ptr::eq(any, sample)).unwrap();
        again[index] = a;
        assert_eq!(wrong_with(&again).await, "");
        assert_eq!(&peer.type_of(sample).await.unwrap(), sample.type_code());
        let (a, b, c) = peer.echo_type(sample.type_code(), Node::type_code()).await.unwrap();
        assert!(&a == sample.type_code() && &b == sample.type_code() && c == Node::type_code());
    }
    // omniORB cannot create such anys, but forwards them.
    let money: Money = "-123.45".parse().unwrap();
    let priced = any(Priced { name: "lamp".into(), price: money });
    for any in [any(money), Any::with_type(&anys::money_type_code(), money).unwrap(), priced] {
        assert_eq!(peer.echo(&any, any.clone()).await.unwrap().0, any);
    }
    let error = peer.fail(&samples[14]).await.unwrap_err();
    let peer::FailError::Bad(bad) = error else { panic!("{error:?}") };
    assert_eq!((&*bad.why, bad.detail.get::<Figure>().unwrap()), ("asked for", figure()));
}

#[tokio::test]
async fn zorb_with_itself() {
    let (server, reference) = server().await;
    let (client, own) = self::server().await;
    let peer: PeerRef = client.resolve(&reference.to_string()).await.unwrap();
    drive(&peer, &own, true).await;
    // In the same process, without marshalling.
    drive(&reference, &own, true).await;
    drop((client, server));
    let servant = std::sync::Arc::new(Servant::default());
    let local: PeerRef = testing::local(std::sync::Arc::clone(&servant));
    servant.own.set(local.clone()).unwrap();
    assert_eq!(local.type_of(&any(5_i32)).await.unwrap(), TypeCode::LONG);
}

async fn their_server(orb: Foreign) {
    let served = tokio::task::spawn_blocking(move || orb.serve("any-peer", &["server"], LIMIT));
    let Some(served) = served.await.unwrap() else { return };
    let (client, own) = server().await;
    let peer: PeerRef = client.resolve(&served.ior).await.unwrap();
    drive(&peer, &own, orb != Foreign::JacOrb).await;
    tell(&format!("anys: zorb -> {orb:?}: all as they should be"));
    cell(orb.name(), Role::Client, "1.2", "anys", Outcome::Good);
}

async fn their_client(orb: Foreign, checks: usize) {
    let (server, reference) = server().await;
    let ior = reference.to_string();
    let driven = tokio::task::spawn_blocking(move || orb.drive("any-peer", &["client"], &ior, checks, LIMIT));
    if driven.await.unwrap() {
        tell(&format!("anys: {orb:?} -> zorb: all as they should be"));
        cell(orb.name(), Role::Server, "1.2", "anys", Outcome::Good);
    }
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn zorb_calls_omniorb() {
    their_server(Foreign::OmniOrb).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn omniorb_calls_zorb() {
    their_client(Foreign::OmniOrb, 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn zorb_calls_jacorb() {
    their_server(Foreign::JacOrb).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jacorb_calls_zorb() {
    their_client(Foreign::JacOrb, 6).await;
}

/// Returns an any as omniORB 4.2.5 writes it, with uninitialised memory as padding.
fn golden(octets: &str) -> Any {
    let digits: Vec<u8> = octets.bytes().filter(u8::is_ascii_hexdigit).collect();
    let octets: Vec<u8> = digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    let mut d = Decoder::new(&octets, ByteOrder::Little, Version::V1_2);
    let any = Any::decode(&mut d).unwrap();
    assert_eq!(d.remaining(), 0);
    any
}

/// In their type codes, private members are public, and public ones private.
#[test]
fn values_as_omniorb_writes_them() {
    let place = golden(
        "1d0000003e000000013a56751300000049444c3a416e79732f506c6163653a312e30007206000000506c6163650000000000 \
        0000010000000200000078006d62030000000000000000ffff7f07000000",
    );
    assert_eq!(place.get(), Ok(Some(Value::new(Place { x: 7 }))));
    let circle = golden(
        "1d0000005a000000010000001200000049444c3a416e79732f4c696e6b3a312e30000000050000004c696e6b000000000000 \
        000002000000070000006e756d62657200000300000000000000050000006e65787400003f00ffffffffa4ffffff00000000 \
        00ffff7f0100000000ffff7f02000000ffffffffecffffff",
    );
    assert_eq!(circle.get(), Ok(Some(ring())));
    let shared = Some(link(1, None));
    let ends = golden(
        "0f000000b0000000013a56751200000049444c3a416e79732f456e64733a312e3000567205000000456e6473000000000200 \
        0000060000006669727374006d621d0000005a000000013a56751200000049444c3a416e79732f4c696e6b3a312e30005675 \
        050000004c696e6b000000000000000002000000070000006e756d62657200000300000000000000050000006e6578740000 \
        3f00ffffffffa4ffffff00000000050000006c61737400000000ffffffff8cffffff00ffff7f0100000000000000ffffffff \
        f0ffffff",
    );
    let ends: Ends = ends.get().unwrap();
    assert!(ends.first == shared && ends.first.unwrap().is_same(&ends.last.unwrap()));
    let with_base = golden(
        "1d0000004e01000001410c9b1200000049444c3a416e79732f53706f743a312e3000eb710500000053706f74000003001d00 \
        00003e000000013a56751300000049444c3a416e79732f506c6163653a312e30007506000000506c61636500000000000000 \
        010000000200000078006d62030000000000000002000000050000006e6f7465000000001200000000000000000000000400 \
        0000776179000f000000b0000000013a56751200000049444c3a416e79732f456e64733a312e3000007505000000456e6473 \
        0000000002000000060000006669727374006d621d0000005a000000010000001200000049444c3a416e79732f4c696e6b3a \
        312e30005675050000004c696e6b000000000000000002000000070000006e756d6265720000030000000000000005000000 \
        6e65787400003f00ffffffffa4ffffff00000000050000006c61737400000000ffffffff8cffffff0000000000ffff7f0400 \
        00000500000073706f740000000000ffff7f0100000000ffff7f0200000000000000fffffffff0ffffff",
    );
    assert_eq!(with_base.get(), Ok(Some(spot())));
    // The second any refers to the first one.
    let list = golden(
        "150000003c000000010000001400000049444c3a416e79732f416e795365713a312e300007000000416e7953657100001300 \
        00000c000000010000000b00000000000000020000001d0000005a00000001a20ad81200000049444c3a416e79732f4c696e \
        6b3a312e30000ad8050000004c696e6b007100000000000002000000070000006e756d626572000003000000000000000500 \
        00006e65787400003f00ffffffffa4ffffff00003f7200ffff7f01000000000000001d0000005a0000000100000012000000 \
        49444c3a416e79732f4c696e6b3a312e30000ad8050000004c696e6b000000000000000002000000070000006e756d626572 \
        00000300000000000000050000006e65787400003f00ffffffffa4ffffff00000000ffffffff8cffffff",
    );
    for one in list.get::<Vec<Any>>().unwrap() {
        assert_eq!(one.get::<Option<Value<Link>>>().unwrap(), shared);
    }
}
