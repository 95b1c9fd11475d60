//! Sources need the same memory whatever their length, and are read as fast as the socket takes them.

use super::*;

/// Octets by a rule, counted as they are read.
struct Counted {
    at: u64,
    read: Arc<AtomicU64>,
}

impl tokio::io::AsyncRead for Counted {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        let n = buf.remaining();
        buf.initialize_unfilled().fill((self.at % 251) as u8);
        buf.advance(n);
        self.at += n as u64;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        std::task::Poll::Ready(Ok(()))
    }
}

#[test]
fn sixty_four_mebibytes_take_constant_memory_and_no_copy() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let over = runtime.block_on(Over::tcp());
    let len = 64 << 20;
    let mut most = Vec::new();
    for kind in 0..2 {
        let before = over.client.stats();
        let info = allocation_counter::measure(|| {
            let source = match kind {
                0 => ByteSource::reader(len, Counted { at: 0, read: Arc::default() }),
                _ => {
                    let piece = Bytes::from(vec![7; 100_000]);
                    let pieces = (0..len).step_by(100_000).map(move |at| {
                        Ok::<_, io::Error>(piece.slice(..usize::try_from((len - at).min(100_000)).unwrap()))
                    });
                    ByteSource::stream(len, futures_util::stream::iter(pieces))
                }
            };
            runtime.block_on(over.store.put("a name", source)).unwrap();
        });
        most.push(info.bytes_max);
        let after = over.client.stats();
        assert!(after.copied_out - before.copied_out < 4096, "only the header is copied");
        assert!(after.writes - before.writes < 64 * 1024, "{} writes", after.writes - before.writes);
    }
    assert_eq!(over.servant.taken(), 2 * len);
    // Buffers of the server's pool included.
    assert!(most.iter().all(|most| *most < 6 << 20), "{most:?}");
    assert!(over.server.pool_stats().held <= 3 << 20);
}

#[tokio::test]
async fn a_servant_that_takes_nothing_stops_the_source() {
    let over = Over::tcp().await;
    let read = Arc::new(AtomicU64::new(0));
    let source = ByteSource::reader(64 << 20, Counted { at: 0, read: Arc::clone(&read) });
    let store = over.store.clone();
    let call = tokio::spawn(async move { store.start(1, source).await });
    over.until(|over| over.server.stats().messages_in > 1).await;
    let mut before = u64::MAX;
    while before != read.load(Ordering::Relaxed) {
        before = read.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // What the sockets hold, and a few chunks on either side.
    assert!(before < 32 << 20, "{before} octets were read ahead");
    assert!(!call.is_finished(), "the result waits for the rest");
    let mut kept = over.servant.kept.lock().await.take().unwrap();
    while let Some(chunk) = kept.next().await {
        chunk.unwrap();
    }
    assert!(call.await.unwrap().unwrap() >= 1);
    assert_eq!(read.load(Ordering::Relaxed), 64 << 20);
}

#[tokio::test]
async fn other_calls_go_on_beside_a_slow_source_and_the_connection_is_used_again() {
    let over = Over::tcp().await;
    let gate = Arc::new(Semaphore::new(0));
    let data = octets(600_000);
    for round in 0..3 {
        let source = gated(600_000, pieces(data.clone(), 100_000).collect(), Arc::clone(&gate), None);
        let store = over.store.clone();
        let call = tokio::spawn(async move { store.put("a name", source).await });
        for piece in 0..6 {
            for _ in 0..10 {
                over.store.ping().await.unwrap();
            }
            let before = over.servant.taken();
            assert_eq!(before, round * 600_000 + piece * 100_000);
            gate.add_permits(1);
            // Each piece leaves when it is there.
            over.until(|over| over.servant.taken() > before || piece == 0).await;
            over.until(|over| over.servant.taken() == before + 100_000).await;
        }
        assert_eq!(call.await.unwrap().unwrap(), checksum(0, &data));
    }
    assert_eq!((over.client.open_connections(), over.server.open_connections()), (2, 2));
    // Two at a time need two.
    let two = [(); 2].map(|()| {
        let (store, data) = (over.store.clone(), data.clone());
        tokio::spawn(async move { store.put("a name", streamed(data, 1000)).await })
    });
    for call in two {
        assert_eq!(call.await.unwrap().unwrap(), checksum(0, &data));
    }
    assert!((2..=3).contains(&over.client.open_connections()));
}

#[tokio::test]
async fn no_more_idle_connections_are_kept_than_four() {
    let over = Over::tcp().await;
    let gate = Arc::new(Semaphore::new(0));
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let source = gated(100_000, vec![octets(100_000)], Arc::clone(&gate), None);
            let store = over.store.clone();
            tokio::spawn(async move { store.put("a name", source).await })
        })
        .collect();
    over.until(|over| over.client.open_connections() == 10).await;
    gate.add_permits(10);
    for call in calls {
        call.await.unwrap().unwrap();
    }
    over.until(|over| over.client.open_connections() == 4).await;
    over.client.shutdown().await;
    over.until(|over| over.server.open_connections() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_of_many_threads_are_made_and_given_up_without_harm() {
    // Epoll: rings of runtimes with several threads are another matter.
    let over = Over::with(large().transport(zorb::Transport::Epoll)).await;
    let tasks: Vec<_> = (0..8u64)
        .map(|task| {
            let store = over.store.clone();
            tokio::spawn(async move {
                let mut whole = 0;
                for round in 0..12 {
                    let data = octets(usize::try_from((task * 12 + round) * 7_919 + 1).unwrap());
                    let source =
                        if round % 2 == 0 { read(data.clone()) } else { streamed(data.clone(), 6_007) };
                    let call = store.put("a name", source);
                    if round % 3 == 2 {
                        // Somewhere in the middle, or behind the end.
                        let patience = Duration::from_micros(50 * (task + round));
                        match tokio::time::timeout(patience, call).await {
                            Ok(sum) => assert_eq!(sum.unwrap(), checksum(0, &data)),
                            Err(_) => continue,
                        }
                    } else {
                        assert_eq!(call.await.unwrap(), checksum(0, &data));
                    }
                    whole += 1;
                }
                store.ping().await.unwrap();
                whole
            })
        })
        .collect();
    for task in tasks {
        assert!(task.await.unwrap() >= 8);
    }
    over.until(|over| over.client.open_connections() <= 5).await;
    over.until(|over| over.client.open_connections() == over.server.open_connections()).await;
}
