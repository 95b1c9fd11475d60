//! Peers that are too slow, with a simulated clock. Peers that occasionally send single bytes are tested in
//! `giop-proto/tests/proto/deadlines.rs`.

use zorb::testing::PipeFaults;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_no_replies_is_closed_and_the_others_are_served() {
    let (pair, _, _) = desk(Orb::builder()).await;
    let text = pair.server.activate_named::<DeskRef, _>("other", Servant::default()).unwrap().to_string();
    let mut stuck = PipeFaults::default();
    stuck.capacity = 0;
    pair.set_faults(PipeFaults::default(), stuck);
    let desk: DeskRef = pair.client.resolve_unchecked(&text).await.unwrap();
    let call = tokio::spawn(async move { desk.large(1_000_000).await });
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert_eq!(hits(&pair.server, Limit::WriteTime), 0);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(hits(&pair.server, Limit::WriteTime), 1);
    assert!(call.await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_calls_is_closed_in_good_order() {
    let (pair, _, desk) = desk(Orb::builder()).await;
    assert_eq!(desk.add(1, 2).await.unwrap(), 3);
    tokio::time::sleep(Duration::from_secs(119)).await;
    assert_eq!(pair.server.open_connections(), 1);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(pair.server.open_connections(), 0);
    assert_eq!(hits(&pair.client, Limit::Idle), 1);
    assert_eq!(desk.add(2, 2).await.unwrap(), 4, "the next call opens another one");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_an_answer_ends_at_the_orbs_deadline() {
    let (pair, _, desk) = desk(Orb::builder()).await;
    let error = desk.hold(1).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
    assert_eq!(hits(&pair.client, Limit::CallTime), 1);
}
