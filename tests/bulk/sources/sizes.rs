//! Sources of all kinds and lengths, in all versions, to servers that receive them in chunks or as a whole.

use tokio::io::AsyncWriteExt;

use super::*;

const LENGTHS: [usize; 10] =
    [0, 1, 300, (16 << 10) - 1, 16 << 10, (16 << 10) + 1, 65_500, CHUNK, CHUNK + 1, (1 << 20) + 7];

#[tokio::test]
async fn every_length_arrives_whole_from_readers_and_streams() {
    let over = Over::tcp().await;
    for len in LENGTHS {
        let data = octets(len);
        let expected = checksum(0, &data);
        for source in [read(data.clone()), streamed(data.clone(), 1 << 16), streamed(data.clone(), 1_000)] {
            assert_eq!(source.len(), len as u64);
            assert_eq!(over.store.put("a name", source).await.unwrap(), expected, "{len}");
            over.store.ping().await.unwrap();
        }
        // One item, larger than a chunk.
        let source = streamed(data.clone(), len.max(1));
        assert_eq!(over.store.put("a name", source).await.unwrap(), expected, "{len}");
    }
    // One connection for the pings, one for the sources.
    assert_eq!(over.client.open_connections(), 2);
    transport::assert_used(&over.client);
}

#[tokio::test]
async fn files_arrive_whole_also_from_the_middle() {
    let over = Over::tcp().await;
    let path = std::env::temp_dir().join(format!("zorb-sources-{}", std::process::id()));
    for len in LENGTHS {
        let data = octets(len);
        tokio::fs::write(&path, &data).await.unwrap();
        let source = ByteSource::file(&path).await.unwrap();
        assert_eq!(source.len(), len as u64);
        assert_eq!(over.store.put("a name", source).await.unwrap(), checksum(0, &data), "{len}");
        let mut file = tokio::fs::File::open(&path).await.unwrap();
        tokio::io::AsyncSeekExt::seek(&mut file, io::SeekFrom::Start(len as u64 / 3)).await.unwrap();
        let source = ByteSource::open_file(file).await.unwrap();
        let expected = checksum(0, &data[len / 3..]);
        assert_eq!(over.store.put("a name", source).await.unwrap(), expected, "{len}");
    }
    // A file that grows is sent with its original length; one that shrinks fails the call.
    let source = ByteSource::file(&path).await.unwrap();
    let mut file = tokio::fs::OpenOptions::new().append(true).open(&path).await.unwrap();
    file.write_all(b"more").await.unwrap();
    file.flush().await.unwrap();
    let expected = checksum(0, &octets(*LENGTHS.last().unwrap()));
    assert_eq!(over.store.put("a name", source).await.unwrap(), expected);
    let source = ByteSource::file(&path).await.unwrap();
    file.set_len(1000).await.unwrap();
    let failed = over.store.put("a name", source).await.unwrap_err();
    assert_eq!(failed.kind, SystemExceptionKind::BadParam);
    assert!(failed.to_string().contains("ended after 1000 of its"), "{failed}");
    tokio::fs::remove_file(&path).await.unwrap();

    let missing = ByteSource::file(&path).await.unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    let folder = ByteSource::file(std::env::temp_dir()).await.unwrap_err();
    assert_eq!(folder.kind(), io::ErrorKind::InvalidInput);
}

#[tokio::test]
async fn slow_readers_arrive_whole_and_a_reader_is_not_read_behind_its_length() {
    let over = Over::tcp().await;
    let data = octets(300_000);
    let (mut near, far) = tokio::io::duplex(5_000);
    let sent = data.clone();
    let writer = tokio::spawn(async move {
        for piece in pieces(sent, 20_011) {
            near.write_all(&piece).await.unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // The reader may have been dropped by now.
        let _ = near.write_all(b"something else").await;
    });
    let source = ByteSource::reader(data.len() as u64, far);
    assert_eq!(over.store.put("a name", source).await.unwrap(), checksum(0, &data));
    writer.await.unwrap();
    let source = ByteSource::reader(1_000, io::Cursor::new(data.clone()));
    assert_eq!(over.store.put("a name", source).await.unwrap(), checksum(0, &data[..1_000]));
}

#[tokio::test]
async fn servers_that_take_sequences_whole_get_them_in_every_version() {
    let over = Over::tcp().await;
    over.server.activate_named("plain", Plain).map(|_: bulk::PlainRef| ()).unwrap();
    let address = over.server.endpoints().remove(0);
    for version in ["1.0", "1.1", "1.2"] {
        for key in ["plain", "store"] {
            // The operations have the same name and, on the wire, the same arguments.
            let url = format!("corbaloc:iiop:{version}@{address}/{key}");
            let store: bulk::StoreRef = over.client.resolve_unchecked(&url).await.unwrap();
            for len in LENGTHS {
                let data = octets(len);
                let expected = checksum(0, &data);
                assert_eq!(store.put("a name", read(data)).await.unwrap(), expected, "{version} {key} {len}");
            }
        }
    }
}

// clause: giop.code_sets.announced
#[tokio::test]
async fn the_server_hears_of_code_sets_though_it_was_asked_before() {
    for len in [1_000, 1 << 20] {
        let over = Over::tcp().await;
        let data = octets(len);
        assert_eq!(over.store.put("имя €", read(data.clone())).await.unwrap(), checksum(0, &data));
        // The same on a connection that calls share.
        let over = Over::tcp().await;
        assert!(over.store.locate().await.unwrap());
        assert_eq!(over.store.put("имя €", data.clone()).await.unwrap(), checksum(0, &data));
    }
}

#[tokio::test]
async fn a_copying_client_sends_them_too() {
    let over = Over::with(large().zero_copy(false)).await;
    let data = octets(1 << 20);
    assert_eq!(over.store.put("a name", read(data.clone())).await.unwrap(), checksum(0, &data));
}

#[tokio::test]
async fn oneways_are_with_the_system_when_they_are_done() {
    let over = Over::tcp().await;
    let mut sum = 0;
    for len in LENGTHS {
        over.store.push(read(octets(len))).await.unwrap();
        sum += len as u64;
    }
    over.until(|over| over.servant.taken() == sum).await;
    for scope in [zorb::SyncScope::Transport, zorb::SyncScope::Server, zorb::SyncScope::Target] {
        let data = octets(500_000);
        over.store.with_sync_scope(scope).push(read(data)).await.unwrap();
        sum += 500_000;
    }
    over.until(|over| over.servant.taken() == sum).await;
}

#[test]
fn plain_threads_send_them() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let over = runtime.block_on(Over::tcp());
    let published = over.store.to_string();
    let data = octets(1 << 20);
    let expected = checksum(0, &data);
    let thread = std::thread::spawn(move || {
        zorb::blocking::wait(async {
            let client = large().build().await.unwrap();
            let store: bulk::StoreRef = client.resolve(&published).await.unwrap();
            store.put("a name", streamed(data, 10_000)).await.unwrap()
        })
    });
    assert_eq!(thread.join().unwrap(), expected);
}

#[tokio::test]
async fn four_gibibytes_are_refused_before_anything_is_sent() {
    let over = Over::tcp().await;
    let before = over.client.stats().bytes_out;
    for len in [u64::from(u32::MAX) + 1, u64::from(u32::MAX), u64::MAX] {
        let source = ByteSource::reader(len, tokio::io::repeat(0));
        let failed = over.store.put("a name", source).await.unwrap_err();
        assert_eq!((failed.kind, failed.completed), (SystemExceptionKind::ImpLimit, CompletionStatus::No));
        assert!(failed.to_string().contains(&len.to_string()), "{failed}");
    }
    // Except for locating the object, nothing was sent.
    assert!(over.client.stats().bytes_out - before < 100);
    over.store.ping().await.unwrap();
}
