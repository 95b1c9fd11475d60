//! Anys and type codes, live: zorb with itself and with omniORB in both roles. Each side makes the same samples, sends them,
//! and takes those of the other out of their anys by their types.

#![allow(unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "the interoperability tests use all of it")]
#[path = "../interop/support/mod.rs"]
mod support;

use std::fmt::Debug;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use support::{Foreign, Process, Scratch, tell};
use zorb::prelude::*;
use zorb::testing;

zorb::idl!("tests/interop/idl/anys.idl");

use anys::{
    Bad, Choice, Color, Figure, Flag, Holder, Money, Node, Numbers, PeerRef, PeerServant, Point, Priced,
    Texts, peer,
};

/// How long a program of the other side may take for all.
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

fn any<T: Typed + zorb::__private::v1::CdrEncode>(value: T) -> Any {
    Any::new(value).unwrap()
}

/// One any of each kind.
fn samples(own: &PeerRef) -> Vec<Any> {
    let octets: Bytes = (0..5000).map(|i| i as u8).collect();
    let holder =
        Holder { inner: any(Point { x: 3, y: 4 }), r#type: Choice::type_code(), self_: Some(own.clone()) };
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
        any(Choice::C(-7, Point { x: 9, y: 9 })),
        any(Flag::Other(false)),
        Any::with_type(&anys::grid_type_code(), [[0_i32, 1, 2], [3, 4, 5]]).unwrap(),
        Any::with_type(&anys::doubles_type_code(), Seq::from([0.5, 1.5, 2.5])).unwrap(),
        Any::with_type(&anys::octets_type_code(), octets).unwrap(),
        // omniORB sends an exception here, without its id, as it would read one.
        any(5_i32),
        any(Node::type_code()),
        any(any(figure())),
        any(holder),
        any(own),
        Any::with_type(&anys::any_seq_type_code(), vec![any(1_i16), any("two")]).unwrap(),
    ]
}

/// What is not as in one's own samples.
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
        same(values, 19, Choice::C(-7, Point { x: 9, y: 9 }))?;
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
        want(values, 27, |_| (holder.r#type == Choice::type_code()).then_some(()))?;
        for reference in [own, holder.self_] {
            let reference = reference.ok_or("a reference is nil")?;
            let gone = reference.non_existent().await.map_err(|e| e.to_string())?;
            want(values, 28, |_| (!gone).then_some(()))?;
        }
        same(values, 29, vec![any(1_i16), any("two")])?;
        // The type codes are those of the IDL, names and typedefs included; `Color` to `Texts`, and the named ones.
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

/// A listening ORB with a servant.
async fn server() -> (Orb, PeerRef) {
    let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let servant = std::sync::Arc::new(Servant::default());
    let reference: PeerRef = orb.activate(std::sync::Arc::clone(&servant)).unwrap();
    servant.own.set(reference.clone()).unwrap();
    (orb, reference)
}

/// Everything that a client asks of a peer, which calls back to `own`.
async fn drive(peer: &PeerRef, own: &PeerRef) {
    let theirs = peer.samples().await.unwrap();
    assert_eq!(wrong_with(&theirs).await, "");
    let samples = samples(own);
    assert_eq!(peer.check(&samples).await.unwrap(), "");
    let theirs = theirs.iter().map(|any| if any.is::<Bad>() { &samples[1] } else { any });
    for (sample, other) in samples.iter().zip(theirs) {
        let (a, b, c) = peer.echo(sample, other.clone()).await.unwrap();
        assert!(a.type_code() == sample.type_code() && c.type_code() == other.type_code(), "{a:?} {c:?}");
        assert_eq!(b.get::<Any>().unwrap(), c);
        // Octet for octet but for type codes, which one may spell out where another refers.
        let mut again = samples.clone();
        let index = samples.iter().position(|any| std::ptr::eq(any, sample)).unwrap();
        again[index] = a;
        assert_eq!(wrong_with(&again).await, "");
        assert_eq!(&peer.type_of(sample).await.unwrap(), sample.type_code());
        let (a, b, c) = peer.echo_type(sample.type_code(), Node::type_code()).await.unwrap();
        assert!(&a == sample.type_code() && &b == sample.type_code() && c == Node::type_code());
    }
    // omniORB can not make such anys, but passes them on.
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
    drive(&peer, &own).await;
    // In the same process, without marshalling.
    drive(&reference, &own).await;
    drop((client, server));
    let servant = std::sync::Arc::new(Servant::default());
    let local: PeerRef = testing::local(std::sync::Arc::clone(&servant));
    servant.own.set(local.clone()).unwrap();
    assert_eq!(local.type_of(&any(5_i32)).await.unwrap(), TypeCode::LONG);
}

fn ior_text(path: &Path) -> String {
    std::fs::read_to_string(path).expect("the server wrote its IOR").trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn zorb_calls_omniorb() {
    let Some(program) = Foreign::OmniOrb.program("any-peer") else { return };
    let scratch = Scratch::new();
    let path = scratch.path("anys.ior");
    let mut command = Command::new(program);
    command.arg("server").arg("--ior").arg(&path).args(["--seconds", &LIMIT.as_secs().to_string()]);
    let mut process = Process::start(command, &scratch);
    let _process = tokio::task::spawn_blocking(move || {
        process.ready(LIMIT);
        process
    })
    .await
    .unwrap();
    let (client, own) = server().await;
    let peer: PeerRef = client.resolve(&ior_text(&path)).await.unwrap();
    drive(&peer, &own).await;
    tell("anys: zorb -> OmniOrb: all as they should be");
}

#[tokio::test(flavor = "multi_thread")]
async fn omniorb_calls_zorb() {
    let Some(program) = Foreign::OmniOrb.program("any-peer") else { return };
    let scratch = Scratch::new();
    let path = scratch.path("anys.ior");
    let (server, reference) = server().await;
    std::fs::write(&path, reference.to_string()).unwrap();
    let mut command = Command::new(program);
    command.arg("client").arg("--ior").arg(&path).args(["--seconds", &LIMIT.as_secs().to_string()]);
    let client = tokio::task::spawn_blocking(move || {
        let mut client = Process::start(command, &scratch);
        (client.end(LIMIT), client.output())
    });
    let (status, output) = client.await.unwrap();
    server.shutdown().await;
    assert!(status.is_some_and(|status| status.success()), "{status:?}\n{output}");
    assert_eq!(output.lines().filter(|line| line.starts_with("ok ")).count(), 5, "{output}");
    tell("anys: OmniOrb -> zorb: all as they should be");
}
