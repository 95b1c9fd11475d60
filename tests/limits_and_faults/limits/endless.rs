//! `Duration::MAX` in place of a limit, which users write to disable it.

use super::*;

const EVER: Duration = Duration::MAX;

fn endless(builder: zorb::OrbBuilder) -> zorb::OrbBuilder {
    let limits = limits(|limits| {
        limits.first_header_timeout = EVER;
        limits.message_timeout = EVER;
        limits.write_timeout = EVER;
        limits.idle_timeout = Some(EVER);
        limits.linger_timeout = EVER;
    });
    builder.limits(limits).timeout(EVER).connect_timeout(EVER).drain_timeout(EVER).evict_idle_after(EVER)
}

async fn calls(client: &Orb, server: &Orb) {
    let servant = Arc::new(Servant::default());
    let published: DeskRef = server.activate_named("desk", Arc::clone(&servant)).unwrap();
    let desk: DeskRef = client.resolve(&published.to_string()).await.unwrap();
    assert_eq!(desk.add(1, 2).await.unwrap(), 3);
    assert_eq!(desk.with_timeout(EVER).add(1, 2).await.unwrap(), 3);
    assert_eq!(desk.large(5_000_000).await.unwrap().len(), 5_000_000);
    servant.let_go(1);
    desk.note(1).await.unwrap();
    desk.flush().await.unwrap();
    let answers = zorb::fan_out([&desk, &desk], EVER, async |desk: DeskRef| desk.add(2, 2).await).await;
    assert!(answers.iter().all(|answer| *answer.result.as_ref().unwrap() == 4));
    // A call that is in progress when the ORB closes.
    let held = tokio::spawn(async move { desk.hold(7).await });
    while servant.begun() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (server, client) = (server.clone(), client.clone());
    let closing = tokio::spawn(async move { server.shutdown().await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    servant.let_go(1);
    assert_eq!(held.await.unwrap().unwrap(), 7);
    closing.await.unwrap();
    client.shutdown().await;
}

#[tokio::test]
async fn limits_of_any_length_are_limits_that_are_never_reached() {
    let pair = zorb::testing::pair_of(endless(Orb::builder()), endless(Orb::builder()));
    calls(&pair.client, &pair.server).await;
    let server = endless(transport::builder()).listen("iiop://127.0.0.1:0").build().await.unwrap();
    let client = endless(transport::builder()).build().await.unwrap();
    calls(&client, &server).await;
}
