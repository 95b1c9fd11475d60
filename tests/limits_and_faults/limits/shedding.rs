//! Requests in flight: connections wait, endpoints shed.

use zorb::minor;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_caller_whose_request_is_shed_is_told_at_once_and_may_try_elsewhere() {
    let server = Orb::builder().limits(limits(|limits| limits.max_total_requests = 10));
    let (pair, servant, desk) = desk(server).await;
    let calls: Vec<_> = (0..15)
        .map(|i| {
            let desk = desk.clone();
            tokio::spawn(async move { desk.hold(i).await })
        })
        .collect();
    rest().await;
    assert_eq!(servant.begun(), 11, "the first of a connection is not counted");
    let mut shed = 0;
    let mut waiting = Vec::new();
    for call in calls {
        if !call.is_finished() {
            waiting.push(call);
            continue;
        }
        let error = call.await.unwrap().unwrap_err();
        assert_eq!((error.kind, error.minor), (SystemExceptionKind::Transient, minor::TRANSIENT_OVERLOADED));
        assert_eq!(error.completed, CompletionStatus::No);
        assert!(error.to_string().contains("overloaded"), "{error}");
        shed += 1;
    }
    assert_eq!((shed, hits(&pair.server, Limit::TotalRequests)), (4, 4));
    // It is served again afterwards.
    servant.let_go(11);
    for call in waiting {
        call.await.unwrap().unwrap();
    }
    servant.let_go(1);
    assert_eq!(desk.hold(3).await.unwrap(), 3);
    assert_eq!(desk.add(1, 2).await.unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn oneways_are_not_shed_but_wait() {
    let server = Orb::builder().limits(limits(|limits| limits.max_total_requests = 10));
    let (pair, servant, desk) = desk(server).await;
    for i in 0..50 {
        desk.note(i).await.unwrap();
    }
    rest().await;
    servant.let_go(50);
    rest().await;
    assert_eq!((servant.begun(), pair.server.stats().requests_refused), (50, 0));
}

#[tokio::test(start_paused = true)]
async fn a_connection_over_its_own_limit_is_left_unread() {
    let server = Orb::builder().limits(limits(|limits| limits.max_requests = 5));
    let (pair, servant, desk) = desk(server).await;
    let calls: Vec<_> = (0..20)
        .map(|i| {
            let desk = desk.clone();
            tokio::spawn(async move { desk.hold(i).await })
        })
        .collect();
    rest().await;
    assert_eq!((servant.begun(), pair.server.stats().requests_refused), (5, 0));
    assert!(hits(&pair.server, Limit::Requests) > 0);
    servant.let_go(20);
    for call in calls {
        call.await.unwrap().unwrap();
    }
}
