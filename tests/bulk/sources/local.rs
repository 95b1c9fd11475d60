//! Sources of callers in the servant's own process.

use super::*;

#[tokio::test]
async fn the_servant_takes_the_chunks_of_the_source_itself() {
    let servant = Arc::new(Store::default());
    let store: bulk::StoreRef = zorb::testing::local(Arc::clone(&servant));
    let data = octets(700_000);
    for source in [read(data.clone()), streamed(data.clone(), 1_234), streamed(data.clone(), 700_000)] {
        assert_eq!(store.put("a name", source).await.unwrap(), checksum(0, &data));
    }
    let gate = Arc::new(Semaphore::new(0));
    let source = gated(700_000, pieces(data.clone(), 100_000).collect(), Arc::clone(&gate), None);
    let call = tokio::spawn({
        let store = store.clone();
        async move { store.put("a name", source).await }
    });
    for piece in 0..7 {
        let before = servant.taken();
        assert_eq!(before, 2_100_000 + piece * 100_000);
        gate.add_permits(1);
        while servant.taken() == before {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(call.await.unwrap().unwrap(), checksum(0, &data));
    store.push(read(data)).await.unwrap();
    assert_eq!(servant.taken(), 3_500_000);
}

#[tokio::test]
async fn a_source_that_fails_fails_the_servants_stream() {
    let servant = Arc::new(Store::default());
    let store: bulk::StoreRef = zorb::testing::local(Arc::clone(&servant));
    let error = io::Error::new(io::ErrorKind::InvalidData, "the disk is worn out");
    let source = gated(700_000, vec![octets(1000)], Arc::new(Semaphore::new(10)), Some(error));
    let failed = store.put("a name", source).await.unwrap_err();
    assert_eq!((failed.kind, failed.completed), (SystemExceptionKind::BadParam, CompletionStatus::Maybe));
    assert!(std::error::Error::source(&failed).unwrap().is::<io::Error>());
    assert_eq!((servant.taken(), servant.broken()), (1000, 1));
    let failed = store.put("a name", ByteSource::reader(10, tokio::io::empty())).await.unwrap_err();
    assert_eq!(failed.kind, SystemExceptionKind::BadParam);
}

#[tokio::test]
async fn it_may_be_taken_after_the_reply_and_a_servant_that_has_enough_drops_the_source() {
    let servant = Arc::new(Store::default());
    let store: bulk::StoreRef = zorb::testing::local(Arc::clone(&servant));
    store.later(read(octets(700_000))).await.unwrap();
    let kept = servant.kept.lock().await.take().unwrap();
    assert_eq!(kept.remaining(), 700_000);
    assert_eq!(kept.collect(1 << 20).await.unwrap(), octets(700_000));

    let gate = Arc::new(Semaphore::new(2));
    let source = gated(700_000, pieces(octets(700_000), 100_000).collect(), Arc::clone(&gate), None);
    let failed = store.put_some(150_000, source).await.unwrap_err();
    assert!(matches!(failed, bulk::store::PutSomeError::Full(full) if full.taken == 200_000));
    assert_eq!(Arc::strong_count(&gate), 1);
}
