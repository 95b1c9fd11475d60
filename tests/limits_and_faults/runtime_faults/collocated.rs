//! The same calls to a collocated object, to one at the other end of a pipe and over TCP have the same
//! results.

use std::fmt::Debug;

use zorb::prelude::*;
use zorb::testing::{local, pair};

use crate::runtime_faults::probe::{Choice, GuardedError, Item, Probe, ProbeRef, over, tcp};

/// Returns the result of a call, as far as a remote caller can see it.
fn seen<T: Debug, E: Debug + Into<Seen>>(result: Result<T, E>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => error.into().0,
    }
}

struct Seen(String);

impl From<SystemException> for Seen {
    fn from(e: SystemException) -> Self {
        Self(format!("{:?} {} {:?}", e.kind, e.minor, e.completed))
    }
}

impl From<GuardedError> for Seen {
    fn from(error: GuardedError) -> Self {
        match error {
            GuardedError::Refused(refused) => Self(format!("{refused:?}")),
            GuardedError::System(system) => system.into(),
        }
    }
}

/// Makes every kind of call, and returns the results.
async fn all(probe: &ProbeRef, orb: &Orb) -> Vec<String> {
    let mut out = Vec::new();
    out.push(seen(probe.ping().await));
    out.push(seen(probe.add(i32::MAX, 1).await));
    out.push(seen(probe.set_level(17).await));
    out.push(seen(probe.level().await));
    for value in [-3, 0, 21] {
        out.push(seen(probe.guarded(value).await));
    }
    for size in [0, 1, 5000, 100_000] {
        let octets = Bytes::from((0..size).map(|i| i as u8).collect::<Vec<_>>());
        let echo = probe.echo(octets.clone()).await;
        out.push(format!("{} octets: {}", size, echo.is_ok_and(|echo| echo == octets)));
    }
    let item = Item { name: "straße".to_owned(), value: 41 };
    for choice in [Choice::Number(5), Choice::Text("text".to_owned())] {
        // Nil, and the object's own reference.
        out.push(seen(probe.all(&choice, item.clone(), None).await));
        out.push(seen(probe.all(&choice, item.clone(), probe).await));
    }
    for value in [1, 2, 3] {
        out.push(seen(probe.note(value).await));
    }
    out.push(seen(probe.note_after(10, 2).await));
    out.push(seen(probe.noted().await));
    out.push(seen(probe.trip().await));
    out.push(seen(probe.stumble(0).await));
    out.push(seen(probe.stumble(1).await));
    out.push(seen(probe.with_timeout(Duration::from_millis(5)).nap(5000).await));
    out.push(seen(probe.nap_there(None, 1).await));
    out.push(seen(probe.nap_there(probe, 1).await));
    out.push(seen(probe.is_a(ProbeRef::REPOSITORY_ID).await));
    out.push(seen(probe.is_a("IDL:Other:1.0").await));
    out.push(seen(probe.non_existent().await));
    out.push(seen(probe.narrow::<ProbeRef>().await.map(|_| ()).map_err(|error| Seen(error.to_string()))));
    assert!(orb.open_connections() <= 1);
    out
}

impl Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[tokio::test]
async fn collocated_remote_and_piped_calls_give_the_same() {
    let tcp = tcp().await;
    let remote = all(&tcp.probe, &tcp.client).await;
    let expected = Probe::default();
    let here: ProbeRef = tcp.server.activate(expected).unwrap();
    let collocated = all(&here, &tcp.server).await;
    let orbs = pair();
    let (_servant, probe) = over(&orbs).await;
    let piped = all(&probe, &orbs.client).await;
    let alone = all(&local::<ProbeRef, _>(Probe::default()), &tcp.client).await;
    let others = [("piped", piped), ("collocated", collocated), ("local", alone)];
    let mut different = Vec::new();
    for (name, other) in others {
        assert_eq!(other.len(), remote.len());
        for (step, (other, remote)) in other.iter().zip(&remote).enumerate() {
            if other != remote {
                different.push(format!("step {step}: remote {remote}, {name} {other}"));
            }
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

// clause: ior.object.is_equivalent
#[tokio::test]
async fn a_collocated_reference_that_went_around_the_world_is_collocated() {
    let tcp = tcp().await;
    let back: ProbeRef = tcp.server.resolve(&tcp.probe.to_string()).await.unwrap();
    let connections = tcp.server.open_connections();
    back.ping().await.unwrap();
    assert_eq!(tcp.server.open_connections(), connections, "no connection to itself");
    assert_eq!(back, tcp.here);
    assert!(back.is_equivalent(&tcp.probe));
}

#[tokio::test]
async fn collocated_and_remote_callers_see_one_state_in_order() {
    let tcp = tcp().await;
    for i in 1..100 {
        tcp.here.set_level(i).await.unwrap();
        assert_eq!(tcp.probe.level().await.unwrap(), i);
        tcp.probe.set_level(-i).await.unwrap();
        assert_eq!(tcp.here.level().await.unwrap(), -i);
    }
}

// clause: exc.when.object_not_active, exc.completed.before_servant, ior.object.non_existent
#[tokio::test]
async fn deactivated_objects_are_gone_for_all() {
    let tcp = tcp().await;
    assert!(tcp.server.deactivate(&tcp.here));
    for probe in [&tcp.here, &tcp.probe] {
        let error = probe.ping().await.unwrap_err();
        assert_eq!(
            (error.kind, error.completed),
            (SystemExceptionKind::ObjectNotExist, CompletionStatus::No),
            "{error}"
        );
        assert!(probe.non_existent().await.unwrap());
    }
    assert!(!tcp.server.deactivate(&tcp.here));
}
