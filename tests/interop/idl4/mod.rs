//! The additions of IDL 4, live: zorb with itself and with omniORB in both roles, whose IDL expresses the
//! same in IDL 3. Each side creates the same sample, sends it, and compares that of the other with its own.

use std::sync::Mutex;
use std::time::Duration;

use test_support::peers::matrix::{Outcome, Role, cell};
use test_support::peers::{Foreign, tell};
use zorb::prelude::*;
use zorb::testing;

zorb::idl!("tests/interop/idl/idl4.idl");

use idl4::{
    Base, ByColour, ByOctet, Colour, Counts, Derived, Few, Holds, Item, Kids, Many, Nothing, Numbers,
    PeerRef, PeerServant, Percent, Refused, Rights, Sample, Stamp, Tree, Wide, peer,
};

/// Timeout of the other ORB's program.
const LIMIT: Duration = Duration::from_secs(120);

fn derived() -> Derived {
    Derived { id: 7, name: "derived".into(), weight: 1.5, allowed: Rights::WRITE }
}

fn counts(entries: &[(&str, i32)]) -> Counts {
    entries.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect()
}

fn full_item() -> Item {
    Item {
        note: Some("noted".into()),
        amount: 20.try_into().unwrap(),
        price: Some(9.5),
        discount: Percent::max_value(),
        more: Some(derived()),
    }
}

fn sample() -> Sample {
    let stamp = Stamp::default().with_year(44).unwrap().with_month(9).unwrap().with_day(8).unwrap();
    let wide = Wide::from_bits(stamp.bits().into()).with_delta(-5).unwrap().with_more(0xabcde).unwrap();
    Sample {
        a: Rights::READ | Rights::STICKY,
        b: Few::F1,
        c: Many::all(),
        d: stamp,
        e: wide,
        f: counts(&[("a", 1), ("b", -2), ("c", 3)]),
        g: ByColour::from([(Colour::Green, Bytes::new()), (Colour::Red, vec![1, 2].into())]),
        h: derived(),
        i: Numbers {
            a: -5,
            b: 200,
            c: -300,
            d: 60_000,
            e: -70_000,
            f: 4_000_000_000,
            g: -(1 << 40),
            h: u64::MAX,
        },
        j: full_item(),
        k: Item::default(),
    }
}

fn tree() -> Tree {
    let node = |v, below: Kids| Tree { v, below };
    let left = node(2, Kids::from([("leaf".to_owned(), node(3, Kids::new()))]));
    node(1, Kids::from([("left".to_owned(), left), ("right".to_owned(), node(-4, Kids::new()))]))
}

fn choices() -> Vec<ByOctet> {
    let stamp = Stamp::from_bits(77);
    vec![
        ByOctet::Number(-1),
        ByOctet::Text(65, "A".into()),
        ByOctet::Text(66, "second".into()),
        ByOctet::Date(b'z', stamp),
    ]
}

#[derive(Default)]
struct Servant {
    last: Mutex<Rights>,
}

impl PeerServant for Servant {
    async fn get(&self) -> Result<Sample, SystemException> {
        Ok(sample())
    }

    async fn check(&self, s: &Sample) -> Result<String, SystemException> {
        Ok(if s == &sample() { String::new() } else { format!("{s:?}") })
    }

    async fn echo(&self, a: &Sample, b: Sample) -> Result<(Sample, Sample, Sample), SystemException> {
        Ok((a.clone(), a.clone(), b))
    }

    async fn echo_rights(&self, a: Rights, b: Rights) -> Result<(Rights, Rights, Rights), SystemException> {
        Ok((a, a, b))
    }

    async fn echo_stamp(&self, a: Stamp, b: Stamp) -> Result<(Stamp, Stamp, Stamp), SystemException> {
        Ok((a, a, b))
    }

    async fn echo_counts(&self, a: &Counts, b: Counts) -> Result<(Counts, Counts, Counts), SystemException> {
        Ok((a.clone(), a.clone(), b))
    }

    async fn echo_deriveds(
        &self,
        a: &[Derived],
        b: Vec<Derived>,
    ) -> Result<(Vec<Derived>, Vec<Derived>, Vec<Derived>), SystemException> {
        Ok((a.to_vec(), a.to_vec(), b))
    }

    async fn echo_choices(
        &self,
        a: &[ByOctet],
        b: Vec<ByOctet>,
    ) -> Result<(Vec<ByOctet>, Vec<ByOctet>, Vec<ByOctet>), SystemException> {
        Ok((a.to_vec(), a.to_vec(), b))
    }

    async fn echo_holds(&self, a: &Holds, b: Holds) -> Result<(Holds, Holds, Holds), SystemException> {
        Ok((a.clone(), a.clone(), b))
    }

    async fn echo_tree(&self, a: &Tree, b: Tree) -> Result<(Tree, Tree, Tree), SystemException> {
        Ok((a.clone(), a.clone(), b))
    }

    async fn get_in_any(&self) -> Result<Any, SystemException> {
        Ok(Any::new(sample())?)
    }

    async fn check_any(&self, s: &Any) -> Result<String, SystemException> {
        self.check(&s.get()?).await
    }

    async fn as_percent(&self, n: u8) -> Result<Percent, SystemException> {
        Percent::new(n).or_system_exception(SystemExceptionKind::BadParam)
    }

    async fn as_percents(&self, n: Bytes) -> Result<Vec<Percent>, SystemException> {
        n.iter().map(|n| Percent::new(*n).or_system_exception(SystemExceptionKind::BadParam)).collect()
    }

    async fn take(&self, n: Percent) -> Result<u8, SystemException> {
        Ok(n.get())
    }

    async fn fail(&self, code: i32) -> Result<(), peer::FailError> {
        let why = (code % 2 != 0).then(|| "odd".to_owned());
        Err(Refused { why, code: code.try_into().or_system_exception(SystemExceptionKind::BadParam)? }.into())
    }

    async fn put(&self, what: Rights) -> Result<(), SystemException> {
        *self.last.lock().unwrap() = what;
        Ok(())
    }

    async fn put_last(&self) -> Result<Rights, SystemException> {
        Ok(*self.last.lock().unwrap())
    }
}

/// Returns a listening ORB with a servant.
async fn server() -> (Orb, PeerRef) {
    let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let reference: PeerRef = orb.activate(Servant::default()).unwrap();
    (orb, reference)
}

/// Makes all requests of a client to a peer. A peer that `knows_ranges` rejects values out of range.
async fn drive(peer: &PeerRef, knows_ranges: bool) {
    let own = sample();
    assert_eq!(peer.get().await.unwrap(), own);
    assert_eq!(peer.check(&own).await.unwrap(), "");
    let other = Sample { k: full_item(), f: counts(&[]), ..sample() };
    let echoed = peer.echo(&own, other.clone()).await.unwrap();
    assert_eq!(echoed, (own.clone(), own.clone(), other));

    let all = Rights::from_bits(u32::MAX);
    assert_eq!(peer.echo_rights(all, Rights::STICKY).await.unwrap(), (all, all, Rights::STICKY));
    let (one, most) = (Stamp::from_bits(1), Stamp::from_bits(u16::MAX));
    assert_eq!(peer.echo_stamp(most, one).await.unwrap(), (most, most, one));
    let (some, none) = (counts(&[("", i32::MIN), ("ä", 2)]), Counts::new());
    assert_eq!(peer.echo_counts(&some, none.clone()).await.unwrap(), (some.clone(), some, none));
    let (three, two) = (vec![derived(); 3], vec![Derived::default(); 2]);
    assert_eq!(peer.echo_deriveds(&three, two.clone()).await.unwrap(), (three.clone(), three, two));
    let (several, first) = (choices(), choices()[..1].to_vec());
    assert_eq!(peer.echo_choices(&several, first.clone()).await.unwrap(), (several.clone(), several, first));
    let holds = |o| Holds { first: Nothing, o, last: Nothing };
    assert_eq!(peer.echo_holds(&holds(5), holds(6)).await.unwrap(), (holds(5), holds(5), holds(6)));
    let (deep, flat) = (tree(), Tree::default());
    assert_eq!(peer.echo_tree(&deep, flat.clone()).await.unwrap(), (deep.clone(), deep, flat));
    assert_eq!(Base::from(derived()), Base { id: 7, name: "derived".into() });

    let any = peer.get_in_any().await.unwrap();
    assert_eq!(any.get::<Sample>().unwrap(), own);
    assert!(any.type_code().equivalent(&Sample::type_code()));
    assert_eq!(peer.check_any(&Any::new(&own).unwrap()).await.unwrap(), "");

    assert_eq!(peer.as_percent(42).await.unwrap().get(), 42);
    let percents = peer.as_percents(vec![1, 100]).await.unwrap();
    assert_eq!(percents, [1, 100].map(|n| Percent::new(n).unwrap()));
    assert_eq!(peer.take(Percent::max_value()).await.unwrap(), 100);
    // Rejected by the sender or by the receiver.
    let kind = if knows_ranges { SystemExceptionKind::BadParam } else { SystemExceptionKind::Marshal };
    for error in [peer.as_percent(101).await.unwrap_err(), peer.as_percents(vec![7, 255]).await.unwrap_err()]
    {
        assert_eq!(error.kind, kind, "{error}");
    }
    if !knows_ranges {
        let error = peer.as_percent(101).await.unwrap_err();
        assert!(error.to_string().contains("out of the range"), "{error}");
    }

    for (code, why) in [(4, None), (5, Some("odd".to_owned()))] {
        let error = peer.fail(code).await.unwrap_err();
        let peer::FailError::Refused(refused) = error else { panic!("{error:?}") };
        assert_eq!(refused, Refused { why, code: code.try_into().unwrap() });
    }
    let error = peer.fail(6).await.unwrap_err();
    assert!(matches!(&error, peer::FailError::System(error) if error.kind == kind), "{error:?}");

    peer.put(Rights::READ | Rights::WRITE).await.unwrap();
    // In other ORBs, later calls may overtake oneways.
    let mut last = Rights::empty();
    for _ in 0..1000 {
        last = peer.put_last().await.unwrap();
        if !last.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(last, Rights::READ | Rights::WRITE);
}

#[tokio::test]
async fn zorb_with_itself() {
    let (_server, reference) = server().await;
    let (client, _) = self::server().await;
    let peer: PeerRef = client.resolve(&reference.to_string()).await.unwrap();
    drive(&peer, true).await;
    // In the same process, without marshalling.
    drive(&reference, true).await;
    drive(&testing::local(Servant::default()), true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn zorb_calls_omniorb() {
    let served = tokio::task::spawn_blocking(|| Foreign::OmniOrb.serve("idl4-peer", &["server"], LIMIT));
    let Some(served) = served.await.unwrap() else { return };
    let (client, _) = server().await;
    let peer: PeerRef = client.resolve(&served.ior).await.unwrap();
    drive(&peer, false).await;
    tell("idl4: zorb -> OmniOrb: all as they should be");
    cell("omniORB", Role::Client, "1.2", "idl 4", Outcome::Good);
}

#[tokio::test(flavor = "multi_thread")]
async fn omniorb_calls_zorb() {
    let (server, reference) = server().await;
    let ior = reference.to_string();
    let driven = move || Foreign::OmniOrb.drive("idl4-peer", &["client"], &ior, 11, LIMIT);
    if tokio::task::spawn_blocking(driven).await.unwrap() {
        tell("idl4: OmniOrb -> zorb: all as they should be");
        cell("omniORB", Role::Server, "1.2", "idl 4", Outcome::Good);
    }
    server.shutdown().await;
}
