//! Calls that end in the middle of their payload: cancelled, too late, ended by their source, or by the
//! connection.

use zorb::Retry;
use zorb::testing::{PipeFaults, pair_of};

use super::*;

/// Makes a call whose source yields 100,000 of 600,000 bytes, and then nothing.
fn half(
    over: &Over,
) -> (impl Future<Output = Result<u64, SystemException>> + Send + 'static, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(1));
    let source = gated(600_000, pieces(octets(600_000), 100_000).collect(), Arc::clone(&gate), None);
    let store = over.store.clone();
    (async move { store.put("a name", source).await }, gate)
}

async fn assert_good(over: &Over) {
    let data = octets(400_000);
    assert_eq!(over.store.put("a name", read(data.clone())).await.unwrap(), checksum(0, &data));
    over.store.ping().await.unwrap();
}

#[tokio::test]
async fn a_call_dropped_in_the_middle_closes_its_connection_and_no_other() {
    let over = Over::tcp().await;
    over.store.ping().await.unwrap();
    for round in 1..=3 {
        let (call, gate) = half(&over);
        let call = tokio::spawn(call);
        over.until(|over| over.servant.begun.load(Ordering::Relaxed) > over.servant.broken()).await;
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        over.until(|over| over.servant.broken() == round).await;
        over.until(|over| over.server.open_connections() == 1).await;
        assert_eq!(over.client.open_connections(), 1);
        assert_eq!(Arc::strong_count(&gate), 1, "the source is gone");
        over.store.ping().await.unwrap();
    }
    assert_good(&over).await;
}

#[tokio::test]
async fn a_call_dropped_before_anything_left_leaves_its_connection() {
    let over = Over::tcp().await;
    assert_good(&over).await;
    // Never polled, and polled once, when its source has nothing: the header has been sent by then.
    drop(over.store.put("a name", read(octets(1_000))));
    let before = over.client.open_connections();
    assert_good(&over).await;
    assert_eq!(over.client.open_connections(), before);
}

#[tokio::test]
async fn a_deadline_in_the_middle_is_a_timeout() {
    let over = Over::tcp().await;
    let gate = Arc::new(Semaphore::new(1));
    let source = gated(600_000, pieces(octets(600_000), 100_000).collect(), gate, None);
    let failed = over.store.with_timeout(Duration::from_millis(300)).put("a name", source).await.unwrap_err();
    assert_eq!((failed.kind, failed.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
    assert!(failed.to_string().contains("100000 of the 600000 bytes"), "{failed}");
    over.until(|over| over.servant.broken() == 1).await;
    over.until(|over| over.server.open_connections() == 0).await;
    assert_good(&over).await;

    let gate = Arc::new(Semaphore::new(1));
    let source = gated(600_000, pieces(octets(600_000), 100_000).collect(), gate, None);
    let failed = over.store.with_timeout(Duration::from_millis(300)).push(source).await.unwrap_err();
    assert_eq!((failed.kind, failed.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
    over.until(|over| over.servant.broken() == 2).await;
    assert_good(&over).await;
}

#[tokio::test]
async fn a_source_that_fails_is_the_cause_of_the_failed_call() {
    let over = Over::tcp().await;
    assert_good(&over).await;
    for oneway in [false, true] {
        // Before the first byte, in the middle, before the last.
        for (good, completed) in
            [(0, CompletionStatus::No), (3, CompletionStatus::Maybe), (6, CompletionStatus::Maybe)]
        {
            let broken = over.servant.broken();
            let error = io::Error::new(io::ErrorKind::InvalidData, "the disk is worn out");
            let all = pieces(octets(600_000), 100_000).take(good).collect();
            let source = gated(600_001, all, Arc::new(Semaphore::new(10)), Some(error));
            let failed = match oneway {
                false => over.store.put("a name", source).await.map(drop).unwrap_err(),
                true => over.store.push(source).await.unwrap_err(),
            };
            assert_eq!((failed.kind, failed.completed), (SystemExceptionKind::BadParam, completed), "{good}");
            let source = std::error::Error::source(&failed).unwrap();
            assert_eq!(source.downcast_ref::<io::Error>().unwrap().kind(), io::ErrorKind::InvalidData);
            if completed == CompletionStatus::Maybe {
                over.until(|over| over.servant.broken() == broken + 1).await;
            }
            assert_good(&over).await;
        }
    }
}

#[tokio::test]
async fn a_source_of_another_length_than_it_said_fails_the_call() {
    let over = Over::tcp().await;
    let data = octets(600_000);
    let open = || Arc::new(Semaphore::new(100));
    for said in [600_001, 599_999, 1, 900_000] {
        let source = gated(said, pieces(data.clone(), 100_000).collect(), open(), None);
        let failed = over.store.put("a name", source).await.unwrap_err();
        assert_eq!(failed.kind, SystemExceptionKind::BadParam, "{said}: {failed}");
        assert!(failed.to_string().contains("the source"), "{failed}");
        assert!(failed.to_string().contains(&said.to_string()), "{failed}");
        assert_good(&over).await;
    }
    assert!(over.servant.broken() >= 2);
    // Empty items are skipped, and the source is not polled after the last byte.
    let items =
        (0..1_000).map(move |i| Ok(if i % 500 == 499 { data.slice(..300_000) } else { Bytes::new() }));
    let source = futures_util::stream::iter(items.chain([Err(io::Error::other("never asked for"))]));
    over.store.put("a name", ByteSource::stream(600_000, source)).await.unwrap();
    let failed = over.store.put("a name", ByteSource::reader(10, tokio::io::empty())).await.unwrap_err();
    assert!(failed.to_string().contains("ended after 0 of its 10 bytes"), "{failed}");
}

#[tokio::test]
async fn a_server_or_client_that_shuts_down_in_the_middle_ends_the_call() {
    for of_client in [false, true] {
        let drain = large().drain_timeout(Duration::from_millis(100));
        let over = Over::with(drain).await;
        let (call, _gate) = half(&over);
        let call = tokio::spawn(call);
        over.until(|over| over.servant.begun.load(Ordering::Relaxed) == 1).await;
        if of_client {
            over.client.shutdown().await;
        } else {
            drop(over.server);
        }
        let failed = call.await.unwrap().unwrap_err();
        assert_eq!(failed.completed, CompletionStatus::Maybe, "{failed}");
        assert_eq!(failed.kind, SystemExceptionKind::CommFailure, "{failed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_cut_anywhere_fails_the_call_or_leaves_it_whole() {
    let data = octets(200_000);
    let expected = checksum(0, &data);
    let places = (0..200).chain((200..200_000).step_by(9_973)).chain(199_990..200_300);
    for after in places {
        let pair = pair_of(large(), large());
        let servant = Arc::new(Store::default());
        let published: bulk::StoreRef = pair.server.activate_named("store", Arc::clone(&servant)).unwrap();
        let store: bulk::StoreRef = pair.client.resolve(&published.to_string()).await.unwrap();
        let store = store.with_retry(Retry::Never);
        let mut faults = PipeFaults::default();
        faults.cut_after = Some(after);
        pair.set_faults(faults, PipeFaults::default());
        match store.put("a name", streamed(data.clone(), 7_000)).await {
            Ok(sum) => {
                assert_eq!(sum, expected);
                assert!(after > 200_000);
                continue; // the connection breaks later
            }
            Err(failed) => {
                let kinds = [SystemExceptionKind::CommFailure, SystemExceptionKind::Transient];
                assert!(kinds.contains(&failed.kind), "cut after {after}: {failed}");
                assert_eq!(failed.completed, CompletionStatus::Maybe, "cut after {after}: {failed}");
                assert_eq!(servant.last.load(Ordering::Relaxed), 0);
            }
        }
        pair.set_faults(PipeFaults::default(), PipeFaults::default());
        assert_eq!(store.put("a name", read(data.clone())).await.unwrap(), expected, "cut after {after}");
    }
}

#[tokio::test(start_paused = true)]
async fn pipes_that_take_little_at_a_time_get_it_whole() {
    for (max_write_bytes, max_read_bytes, capacity) in [(1, 1, 64), (100, 7, 1_000), (70_000, 5_000, 70_000)]
    {
        let pair = pair_of(large(), large());
        let published: bulk::StoreRef = pair.server.activate_named("store", Store::default()).unwrap();
        let store: bulk::StoreRef = pair.client.resolve(&published.to_string()).await.unwrap();
        let mut faults = PipeFaults::default();
        (faults.max_write_bytes, faults.max_read_bytes, faults.capacity) =
            (max_write_bytes, max_read_bytes, capacity);
        pair.set_faults(faults, PipeFaults::default());
        let data = octets(100_000);
        assert_eq!(store.put("a name", streamed(data.clone(), 999)).await.unwrap(), checksum(0, &data));
        store.push(read(data)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_nothing_is_given_up_after_the_write_timeout() {
    let mut limits = Limits::default();
    limits.write_timeout = Duration::from_secs(3);
    let pair = pair_of(large().limits(limits), large().start_paused());
    let published: bulk::StoreRef = pair.server.activate_named("store", Store::default()).unwrap();
    let store: bulk::StoreRef = pair.client.resolve_unchecked(&published.to_string()).await.unwrap();
    let begun = tokio::time::Instant::now();
    // Short enough to be sent without a preliminary query; the server holds it and accepts four chunks.
    let source = streamed(octets(8 << 20), 8 << 20);
    let failed = store.with_retry(Retry::Never).push(source).await.unwrap_err();
    assert_eq!(failed.kind, SystemExceptionKind::CommFailure, "{failed}");
    assert!(begun.elapsed() >= Duration::from_secs(3) && begun.elapsed() < Duration::from_secs(20));
}

/// Polls the future by hand, with a waker that does nothing.
fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> bool {
    future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_ready()
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_at_any_point_leaves_nothing_behind() {
    let data = octets(120_000);
    let expected = checksum(0, &data);
    for polls in 0.. {
        let pair = pair_of(large(), large());
        let servant = Arc::new(Store::default());
        let published: bulk::StoreRef = pair.server.activate_named("store", Arc::clone(&servant)).unwrap();
        let store: bulk::StoreRef = pair.client.resolve(&published.to_string()).await.unwrap();
        let mut faults = PipeFaults::default();
        (faults.max_write_bytes, faults.max_read_bytes, faults.capacity) = (5_000, 5_000, 5_000);
        pair.set_faults(faults, PipeFaults::default());
        let gate = Arc::new(Semaphore::new(0));
        let source = gated(120_000, pieces(data.clone(), 4_000).collect(), Arc::clone(&gate), None);
        let mut call = Box::pin(store.put("a name", source));
        let mut done = false;
        for _ in 0..polls {
            done = poll_once(call.as_mut());
            if done {
                break;
            }
            gate.add_permits(1);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(call);
        assert_eq!(Arc::strong_count(&gate), 1);
        tokio::time::sleep(Duration::from_millis(10)).await;
        // Over another connection, or over the same if it is in order.
        assert_eq!(store.put("a name", read(data.clone())).await.unwrap(), expected, "after {polls} polls");
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!((pair.client.open_connections(), pair.server.open_connections()), (1, 1), "{polls} polls");
        if done {
            assert!((10..1_000).contains(&polls), "{polls}");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_slower_than_the_server_allows_ends_the_call() {
    let mut limits = Limits::default();
    (limits.message_timeout, limits.min_message_rate) = (Duration::from_secs(5), 100_000);
    let pair = pair_of(large(), large().limits(limits));
    let servant = Arc::new(Store::default());
    let published: bulk::StoreRef = pair.server.activate_named("store", Arc::clone(&servant)).unwrap();
    let store: bulk::StoreRef = pair.client.resolve(&published.to_string()).await.unwrap();
    let paced = |pause: u64| {
        let items = pieces(octets(200_000), 20_000);
        let items = futures_util::stream::unfold(items, move |mut items| async move {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            items.next().map(|item| (Ok::<_, io::Error>(item), items))
        });
        ByteSource::stream(200_000, items)
    };
    store.put("a name", paced(400)).await.unwrap();
    let begun = tokio::time::Instant::now();
    let failed = store.put("a name", paced(2_000)).await.unwrap_err();
    assert_eq!((failed.kind, failed.completed), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe));
    assert!(failed.to_string().contains("of the 200000 bytes"), "{failed}");
    // The timeout, and the time of 200,000 bytes at the minimum rate.
    assert!((5..12).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    assert_eq!(servant.broken(), 1);
}
