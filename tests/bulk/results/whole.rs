//! Results arrive complete, in every size, over every kind of connection, and concurrently with other calls.

use super::*;

/// Checks results of every size and kind.
async fn check(shelf: &ShelfRef, way: &str) {
    for count in [0, 1, 7, 200, 400, 2_000, 12_000] {
        let rows = all(shelf.rows(count, false).await.unwrap()).await;
        assert!(rows == (0..count).map(row).collect::<Vec<_>>(), "{way}: {count} rows");
    }
    for len in [0, 1, 65_507, 65_508, 65_509, 100_000, 131_072, 3_000_001] {
        let read = bytes(shelf.read(len, false).await.unwrap()).await;
        let wanted = octets(100_000).repeat(usize::try_from(len).unwrap() / 100_000 + 1);
        assert!(read == wanted[..usize::try_from(len).unwrap()], "{way}: {len} octets");
    }
    for count in [0, 9, 10, 8_189, 60_000] {
        let samples = shelf.samples(count).await.unwrap().collect(count as usize).await.unwrap();
        assert!(samples == (0..count).map(f64::from).collect::<Vec<f64>>(), "{way}: {count} samples");
        assert_eq!(
            all(shelf.flags(count).await.unwrap()).await.iter().filter(|flag| **flag).count(),
            count.div_ceil(3) as usize
        );
        let points = all(shelf.points(count).await.unwrap()).await;
        assert_eq!(points.len(), count as usize);
        assert!(points.iter().enumerate().all(|(n, point)| point.x == n as f64 && point.y == -point.x));
    }
    for len in [0, 1000, 1_500_000] {
        assert!(bytes(shelf.echo(octets(len)).await.unwrap()).await == octets(len), "{way}: {len}");
    }
    match shelf.rows(u32::MAX, false).await {
        Err(RowsError::Missing(missing)) => assert_eq!(missing.name, "all of them"),
        other => panic!("{way}: {other:?}"),
    }
}

// clause: giop.fragment.send_growing
#[tokio::test]
async fn results_of_every_size_come_whole() {
    let over = Over::tcp().await;
    let before = over.server.stats();
    check(&over.shelf, "tcp").await;
    assert!(over.server.stats().messages_out - before.messages_out > 100, "they leave in fragments");
    over.until(|over| over.alive() == 0).await;
    assert_eq!((over.client.stats().stray_messages, over.server.stats().stray_messages), (0, 0));
    transport::assert_used(&over.client);
}

// clause: giop.fragment.send_never_old
#[tokio::test]
async fn older_clients_get_one_message() {
    let over = Over::tcp().await;
    for version in ["1.0", "1.1"] {
        let shelf = over.in_version(version).await;
        let before = over.server.stats();
        check(&shelf, version).await;
        let messages = over.server.stats().messages_out - before.messages_out;
        assert!(messages < 60, "{messages} messages: none in fragments");
    }
    let shelf = over.in_version("1.2").await;
    check(&shelf, "1.2").await;
}

#[tokio::test]
async fn callers_in_the_process_and_over_a_pipe_get_them_too() {
    let servant = Arc::new(Shelf::default());
    let local: ShelfRef = zorb::testing::local(Arc::clone(&servant));
    check(&local, "local").await;
    for (how, kind) in
        [("error", SystemExceptionKind::Unknown), ("exception", SystemExceptionKind::PersistStore)]
    {
        assert_eq!(failed(local.fail(how, 1000).await).await.kind, kind, "{how}");
    }
    assert_eq!(failed(local.fail("panic", 1000).await).await.kind, SystemExceptionKind::Unknown);
    {
        // Dropping the result drops its source.
        let mut rows = local.rows(10, true).await.unwrap();
        assert!(futures_util::poll!(std::pin::pin!(rows.next())).is_pending());
        assert_eq!(servant.alive.load(Ordering::Relaxed), 1);
    }
    assert_eq!(servant.alive.load(Ordering::Relaxed), 0);

    let zorb::testing::Pair { client, server, .. } = zorb::testing::pair();
    let shelf: ShelfRef = server.activate(Arc::clone(&servant)).unwrap();
    let shelf: ShelfRef = client.resolve(&shelf.to_string()).await.unwrap();
    check(&shelf, "pipe").await;
}

#[tokio::test]
async fn contexts_and_forwards_of_the_servant_go_with_them() {
    let over = Over::tcp().await;
    let info = zorb::ReplyInfo::default();
    for len in [10, 500_000] {
        drop(over.shelf.with_reply_info(&info).read(len, false).await.unwrap());
        let context = info.contexts().into_iter().find(|context| context.id.0 == 0x5a4f_0001).unwrap();
        assert_eq!(context.data, len.to_ne_bytes()[..]);
    }
    // The first read of seven bytes is forwarded to another object.
    let elsewhere: ShelfRef = over.server.activate_named("elsewhere", Arc::clone(&over.servant)).unwrap();
    *over.servant.elsewhere.lock().unwrap() = Some(elsewhere);
    assert!(bytes(over.shelf.read(7, false).await.unwrap()).await == octets(7));
    assert_eq!(over.servant.asked.load(Ordering::Relaxed), 2);
}

// clause: giop.fragment.interleave
#[tokio::test]
async fn other_calls_of_the_connection_are_answered_while_results_are_made() {
    let over = Over::tcp().await;
    let calls: Vec<_> = (0..6)
        .map(|_| {
            let shelf = over.shelf.clone();
            tokio::spawn(async move { bytes(shelf.read(1_000_000, true).await.unwrap()).await })
        })
        .collect();
    over.until(|over| over.alive() == 6).await;
    let mut left = 60;
    while left > 0 {
        over.servant.gate.add_permits(6);
        left -= 6;
        // Results that are still being produced do not delay other calls.
        for n in 0..20 {
            assert_eq!(over.shelf.add(n, 1).await.unwrap(), n + 1);
        }
    }
    for call in calls {
        assert!(call.await.unwrap() == octets(100_000).repeat(10));
    }
    // One for all other calls, and four that are kept for the next results.
    over.until(|over| over.client.open_connections() <= 5).await;
    assert_eq!(over.client.stats().stray_messages, 0);
}

#[tokio::test]
async fn large_results_of_one_connection_are_made_side_by_side() {
    let over = Over::tcp().await;
    let calls: Vec<_> = (0..12)
        .map(|i| {
            let shelf = over.shelf.clone();
            tokio::spawn(async move {
                let rows = all(shelf.rows(6_000 + i, false).await.unwrap()).await;
                rows == (0..6_000 + i).map(row).collect::<Vec<_>>()
            })
        })
        .collect();
    for n in 0..100 {
        assert_eq!(over.shelf.add(n, 1).await.unwrap(), n + 1);
    }
    for call in calls {
        assert!(call.await.unwrap());
    }
    over.until(|over| over.alive() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servants_in_tasks_and_on_threads_of_their_own_make_them_too() {
    let over =
        Over::with(large().transport(zorb::Transport::Epoll), large().transport(zorb::Transport::Epoll))
            .await;
    let servant = || Arc::clone(&over.servant);
    let spawned: ShelfRef = over.server.activation().spawned().activate(servant()).unwrap();
    let blocking: ShelfRef = over.server.activation().blocking().activate(servant()).unwrap();
    for shelf in [spawned, blocking] {
        let shelf: ShelfRef = over.client.resolve(&shelf.to_string()).await.unwrap();
        let calls: Vec<_> = (0..5)
            .map(|i| {
                let shelf = shelf.clone();
                tokio::spawn(async move { all(shelf.rows(3_000 + i, false).await.unwrap()).await.len() })
            })
            .collect();
        for (i, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await.unwrap(), 3_000 + i);
        }
    }
}
