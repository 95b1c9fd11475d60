//! Small messages of every GIOP version, cut at every length in every way, and with every single bit flipped.

use zorb::Retry;
use zorb::prelude::*;
use zorb::testing::{Cut, Pair, PipeFaults, pair};

use crate::faults::target::{TargetRef, leaves_nothing, octets, over, panics};

const VERSIONS: [&str; 3] = ["1.0", "1.1", "1.2"];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Requests,
    Replies,
}

const BOTH: [Way; 2] = [Way::Requests, Way::Replies];

/// The kinds of messages: a request with a result, one that ends in an exception, one with arbitrary data,
/// one without a reply.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Add,
    Stumble,
    Echo,
    Note,
}

async fn send(kind: Kind, target: &TargetRef) -> Result<(), SystemException> {
    match kind {
        Kind::Add => target.add(1, 2).await.map(drop),
        Kind::Stumble => match target.stumble().await {
            Err(error) if error.kind == SystemExceptionKind::Unknown => Ok(()),
            Err(error) => Err(error),
            // A flip in the status of the reply.
            Ok(()) => Ok(()),
        },
        Kind::Echo => target.once(1, 0, octets(24)).await.map(drop),
        Kind::Note => {
            target.note(1, octets(24)).await?;
            target.flush().await
        }
    }
}

async fn faulty(
    version: &str,
    way: Way,
    faults: PipeFaults,
) -> (Pair, std::sync::Arc<crate::faults::target::Target>, TargetRef) {
    let orbs = pair();
    let (servant, _) = over(&orbs).await;
    let url = format!("corbaloc:iiop:{version}@server.memory:1/Target");
    // A reference whose first request sends no preliminary queries.
    let url: ObjectRef = orbs.client.resolve_unchecked(&url).await.unwrap();
    let target: TargetRef = orbs.client.resolve_unchecked(&url.ior().to_string()).await.unwrap();
    match way {
        Way::Requests => orbs.set_faults(faults, PipeFaults::default()),
        Way::Replies => orbs.set_faults(PipeFaults::default(), faults),
    }
    (orbs, servant, target.with_retry(Retry::Never))
}

/// Returns the number of bytes in each direction.
async fn lengths(kind: Kind, version: &str) -> [(Way, u64); 2] {
    let (orbs, _servant, target) = faulty(version, Way::Requests, PipeFaults::default()).await;
    send(kind, &target).await.unwrap();
    let stats = orbs.client.stats();
    assert!(stats.bytes_out > 40 && stats.bytes_out < 400 && stats.bytes_in < 400, "{stats:?}");
    [(Way::Requests, stats.bytes_out), (Way::Replies, stats.bytes_in)]
}

/// Makes the call over that connection, then over others, and checks what must hold regardless of its
/// outcome.
async fn survives(kind: Kind, version: &str, way: Way, faults: PipeFaults) -> Result<(), SystemException> {
    let what = format!("{kind:?} over GIOP {version}, {way:?}: {faults:?}");
    let (orbs, servant, target) = faulty(version, way, faults).await;
    let result = send(kind, &target).await;
    if let Err(error) = &result
        && (way == Way::Requests || faults.flipped_bit.is_none())
        && error.completed == CompletionStatus::No
    {
        assert_eq!(servant.executed(), 0, "{what}: {error}");
    }
    assert!(servant.executed() <= 1, "{what}");
    orbs.set_faults(PipeFaults::default(), PipeFaults::default());
    // Both sides may consider the connection usable while one waits for the rest of a message, until its
    // timeout.
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(target.add(20, 3).await.unwrap(), 23, "{what}");
    drop(target);
    leaves_nothing(orbs, servant, &what).await;
    result
}

async fn cut_everywhere(kind: Kind) {
    for version in VERSIONS {
        for (way, length) in lengths(kind, version).await {
            for cut in [Cut::End, Cut::Reset, Cut::Silence] {
                for after in 0..length {
                    let mut faults = PipeFaults::default();
                    (faults.cut_after, faults.cut) = (Some(after), cut);
                    let result = survives(kind, version, way, faults).await;
                    let Err(error) = result else {
                        assert!(
                            matches!(kind, Kind::Note),
                            "a call ends well whose {way:?} ends after {after}"
                        );
                        continue;
                    };
                    let expected = match cut {
                        // The server's timeout for the rest of a request is shorter than the call's deadline.
                        Cut::Silence => [SystemExceptionKind::Timeout, SystemExceptionKind::CommFailure],
                        _ => [SystemExceptionKind::CommFailure, SystemExceptionKind::Transient],
                    };
                    assert!(expected.contains(&error.kind), "{cut:?} after {after}: {error}");
                }
            }
        }
    }
}

// clause: giop.connection.lost
#[tokio::test(start_paused = true)]
async fn any_small_message_cut_at_any_length_fails_its_call_alone() {
    panics();
    for kind in [Kind::Add, Kind::Note] {
        cut_everywhere(kind).await;
    }
}

/// Flips bits of the messages in those versions and directions, one at a time: every fifth bit, with another
/// offset for the next version and direction, so that one or two bits of each byte are flipped.
/// `ZORB_TESTS=all` flips every bit (as in `.ci/full`).
async fn flip_everywhere(kind: Kind, versions: &[&str], ways: &[Way]) {
    panics();
    let (mut ok, mut failed) = (0, 0);
    let step = if std::env::var_os("ZORB_TESTS").is_some_and(|tests| tests == "all") { 1 } else { 5 };
    for (i, version) in versions.iter().enumerate() {
        for (j, (way, length)) in lengths(kind, version).await.into_iter().enumerate() {
            let bits = if ways.contains(&way) { length * 8 } else { 0 };
            for bit in ((i + j) as u64 % step..bits).step_by(step as usize) {
                let mut faults = PipeFaults::default();
                faults.flipped_bit = Some(bit);
                match survives(kind, version, way, faults).await {
                    Ok(()) => ok += 1,
                    Err(_) => failed += 1,
                }
            }
        }
    }
    // The outcome of a oneway is not reported.
    assert!(ok > 0 && (failed > 0 || matches!(kind, Kind::Note)), "{ok} went well, {failed} failed");
}

#[tokio::test(start_paused = true)]
async fn request_and_reply_with_any_bit_flipped_leave_later_calls_intact() {
    flip_everywhere(Kind::Add, &VERSIONS, &BOTH).await;
}

#[tokio::test(start_paused = true)]
async fn exception_with_any_bit_flipped_leaves_later_calls_intact() {
    flip_everywhere(Kind::Stumble, &VERSIONS, &[Way::Replies]).await;
}

#[tokio::test(start_paused = true)]
async fn sequence_with_any_bit_flipped_leaves_later_calls_intact() {
    flip_everywhere(Kind::Echo, &["1.2"], &BOTH).await;
}

#[tokio::test(start_paused = true)]
async fn oneway_with_any_bit_flipped_leaves_later_calls_intact() {
    flip_everywhere(Kind::Note, &["1.1"], &BOTH).await;
}
