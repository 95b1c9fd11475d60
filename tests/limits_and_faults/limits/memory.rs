//! Memory: the limit of one message, and the limit of all together.

use super::*;

/// Returns words whose strings take more memory than their encoding.
fn words() -> Vec<String> {
    vec![String::from("word"); 20_000]
}

#[tokio::test(start_paused = true)]
async fn arguments_of_requests_count_against_the_memory_of_the_orb_while_they_are_served() {
    let (pair, servant, desk) = desk(Orb::builder().max_receive_memory(1 << 20)).await;
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let desk = desk.clone();
            tokio::spawn(async move { desk.keep(&words()).await })
        })
        .collect();
    for _ in 0..20 {
        rest().await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (begun, outside) = (servant.begun(), pair.server.pool_stats().outside);
    assert!(begun < 10 && outside > 400_000, "{begun} requests with {outside} octets");
    assert!(hits(&pair.server, Limit::Pool) > 0);
    // Each that ends lets others begin.
    servant.let_go(10);
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), 20_000);
    }
    assert_eq!(pair.server.pool_stats().outside, 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_larger_than_all_memory_is_served_and_so_are_others_beside_it() {
    let (pair, servant, desk) = desk(Orb::builder().max_receive_memory(64 << 10)).await;
    let large = {
        let desk = desk.clone();
        tokio::spawn(async move { desk.keep(&words()).await })
    };
    while servant.begun() < 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The servant of the large one may wait for a further request, so further requests are served.
    for i in 0..3 {
        assert_eq!(desk.add(i, 1).await.unwrap(), i + 1);
    }
    servant.let_go(1);
    assert_eq!(large.await.unwrap().unwrap(), 20_000);
    assert_eq!(pair.server.pool_stats().outside, 0);
}

#[tokio::test(start_paused = true)]
async fn arguments_that_take_too_much_are_refused_by_the_name_of_the_option() {
    let server = Orb::builder().limits(limits(|limits| limits.max_decoded = 100));
    let (pair, _, desk) = desk(server).await;
    let many = vec![zorb::Any::default(); 1000];
    let error = desk.take(&many).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Marshal, CompletionStatus::No));
    assert_eq!(hits(&pair.server, Limit::Decoded), 1);
}

#[tokio::test(start_paused = true)]
async fn results_that_take_too_much_are_an_error_that_names_the_option() {
    let client = Orb::builder().limits(limits(|limits| limits.max_decoded = 100));
    let pair = zorb::testing::pair_of(client, Orb::builder());
    let published: DeskRef = pair.server.activate_named("desk", Servant::default()).unwrap();
    let desk: DeskRef = pair.client.resolve(&published.to_string()).await.unwrap();
    let error = desk.anys(1000).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Marshal, CompletionStatus::Yes));
    assert!(error.to_string().contains("`Limits::max_decoded`"), "{error}");
    assert_eq!(hits(&pair.client, Limit::Decoded), 1);
}

#[tokio::test(start_paused = true)]
async fn exceptions_that_take_too_much_are_an_error_that_names_the_option() {
    let client = Orb::builder().limits(limits(|limits| limits.max_decoded = 100));
    let pair = zorb::testing::pair_of(client, Orb::builder());
    let published: DeskRef = pair.server.activate_named("desk", Servant::default()).unwrap();
    let desk: DeskRef = pair.client.resolve(&published.to_string()).await.unwrap();
    let desk::RefuseError::System(error) = desk.refuse(1000).await.unwrap_err() else {
        panic!("it was decoded");
    };
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Marshal, CompletionStatus::Yes));
    assert!(error.to_string().contains("`Limits::max_decoded`"), "{error}");
    assert_eq!(hits(&pair.client, Limit::Decoded), 1);
}

#[tokio::test(start_paused = true)]
async fn what_dynamic_callers_are_sent_is_counted_too() {
    use zorb::dynamic::Request;
    let client = Orb::builder().limits(limits(|limits| limits.max_depth = 1));
    let pair = zorb::testing::pair_of(client, Orb::builder());
    let published: DeskRef = pair.server.activate_named("desk", Servant::default()).unwrap();
    let desk: DeskRef = pair.client.resolve(&published.to_string()).await.unwrap();
    let code = <Vec<Any> as Typed>::type_code();
    let results = Request::new(&desk, "anys").input("count", 1_u32).unwrap().returns(code);
    results.invoke().await.unwrap_err();
    assert_eq!(hits(&pair.client, Limit::Depth), 1, "a result");
    let refused = Request::new(&desk, "refuse").input("count", 1_u32).unwrap();
    refused.raises(Refused::type_code()).invoke().await.unwrap_err();
    assert_eq!(hits(&pair.client, Limit::Depth), 2, "an exception");
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_too_large_blames_the_limit_of_this_side() {
    use zorb::{CallError, CallErrorKind, ProtocolError};
    let client = Orb::builder().limits(limits(|limits| limits.max_message_size = 10_000));
    let pair = zorb::testing::pair_of(client, Orb::builder());
    let published: DeskRef = pair.server.activate_named("desk", Servant::default()).unwrap();
    let desk: DeskRef = pair.client.resolve(&published.to_string()).await.unwrap();
    let error = desk.large(20_000).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::ImpLimit, CompletionStatus::Maybe));
    let cause = CallError::cause_of(&error).unwrap();
    let CallErrorKind::Protocol(ProtocolError::TooLarge { size, limit }) = cause.kind else {
        panic!("{cause:?}");
    };
    assert!(size > 20_000 && limit == 10_000, "{size} {limit}");
    assert_eq!(cause.limit(), Some(Limit::MessageSize));
    let text = cause.to_string();
    assert!(
        text.contains("exceeds the limit of 10000 bytes") && text.contains("`Limits::max_message_size`"),
        "{text}"
    );
    assert!(!text.contains("violated the protocol"), "{text}");
    assert_eq!(hits(&pair.client, Limit::MessageSize), 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_too_large_is_refused_and_counted() {
    let server = Orb::builder().limits(limits(|limits| limits.max_message_size = 10_000));
    let (pair, _, desk) = desk(server).await;
    let error = desk.keep(&words()).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::ImpLimit, CompletionStatus::No));
    assert_eq!(hits(&pair.server, Limit::MessageSize), 1);
    assert_eq!(desk.add(1, 2).await.unwrap(), 3);
}
