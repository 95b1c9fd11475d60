//! Tests of the ring, mostly over socket pairs.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use giop_codec::giop::{MessageHeader, MessageType};
use giop_codec::{ByteOrder, Version};
use giop_proto::outbox::Outbox;
use giop_proto::pool::WINDOW_SIZE;
use giop_proto::receive::{HEADER_LEN, Receiver};

use crate::transport::uring::*;

/// A socket pair. One end is on the ring and has a receiver. The other end is blocking.
struct Pair {
    socket: UringSocket,
    other: UnixStream,
    pool: Arc<BufferPool>,
    submitted: Arc<AtomicU64>,
    receiver: Receiver,
}

/// Returns the ring of this runtime, unless the kernel does not support it.
fn ring() -> Option<RingHandle> {
    match RingHandle::of_current_runtime() {
        Ok(ring) => Some(ring),
        Err(error) => {
            assert!(std::env::var_os("REQUIRE_URING").is_none(), "io_uring is required: {error}");
            eprintln!("SKIPPED: no io_uring: {error}");
            None
        }
    }
}

fn pair() -> Option<Pair> {
    let ring = ring()?;
    let (end, other) = UnixStream::pair().unwrap();
    let pool = Arc::new(BufferPool::new(64 << 20));
    let submitted = Arc::default();
    let socket = UringSocket::with_ring(ring.0, end.into(), &pool, &submitted, None);
    let receiver = Receiver::new(Arc::clone(&pool), 16 << 20, true);
    Some(Pair { socket, other, pool, submitted, receiver })
}

impl Pair {
    /// Reads into the receiver's buffer, and returns the number of bytes.
    async fn receive(&mut self) -> io::Result<usize> {
        self.socket.start_read(self.receiver.take_read_buf(), ReadCompletion::Message);
        let RingRead::Read(buf, outcome) = read(&self.socket).await else { panic!("no read has completed") };
        let n = outcome.as_ref().map_or(0, |n| *n);
        self.receiver.handle_read(buf, n);
        outcome
    }

    /// Returns the next complete message.
    fn frame(&mut self) -> Option<bytes::Bytes> {
        self.receiver.peek().unwrap().map(|_| self.receiver.take_front())
    }

    fn in_flight(&self) -> usize {
        self.socket.shared.lock().ring.in_flight()
    }
}

async fn read(socket: &UringSocket) -> RingRead {
    poll_fn(|cx| socket.poll_read_ready(cx)).await.ok();
    socket.take_read()
}

async fn written(socket: &UringSocket) -> (Transmit, io::Result<()>) {
    poll_fn(|cx| {
        socket.set_waker(cx);
        socket.take_written().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Writes the queued bytes once, which may be only a part of them.
async fn write(socket: &UringSocket, outbox: &mut Outbox) {
    socket.start_write(outbox.take());
    let (transmit, outcome) = written(socket).await;
    outcome.unwrap();
    outbox.commit(transmit);
}

fn message(body: usize, with: u8) -> Vec<u8> {
    let mut header = MessageHeader::new(Version::V1_2, ByteOrder::NATIVE, MessageType::Reply);
    header.size = body as u32;
    let mut bytes = header.encode().to_vec();
    bytes.resize(HEADER_LEN + body, with);
    bytes
}

/// Waits until all ready tasks have run.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn reads_return_sent_bytes_and_then_the_end() {
    let Some(mut end) = pair() else { return };
    end.other.write_all(&message(8, 1)).unwrap();
    assert_eq!(end.receive().await.unwrap(), 20);
    assert_eq!(end.frame().unwrap(), message(8, 1));
    // These bytes arrive after the read has begun.
    let mut other = end.other.try_clone().unwrap();
    let late = tokio::spawn(async move {
        settle().await;
        other.write_all(&message(4, 2)).unwrap();
    });
    assert_eq!(end.receive().await.unwrap(), 16);
    late.await.unwrap();
    assert_eq!(end.frame().unwrap(), message(4, 2));
    end.other.shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(end.receive().await.unwrap(), 0);
    assert!(end.submitted.load(std::sync::atomic::Ordering::Relaxed) >= 3);
}

#[tokio::test]
async fn idle_connection_holds_no_receive_buffer() {
    let Some(mut end) = pair() else { return };
    end.socket.start_header_read();
    settle().await;
    assert_eq!((end.in_flight(), end.pool.stats().held), (1, 0));
    end.other.write_all(&message(100, 3)).unwrap();
    let RingRead::Header(bytes, n) = read(&end.socket).await else { panic!("no header") };
    assert_eq!(&bytes[..n], &message(100, 3)[..n]);
    let mut buf = end.receiver.take_read_buf();
    assert_eq!(buf.fill(&bytes[..n]), n);
    end.receiver.handle_read(buf, n);
    assert!(end.frame().is_none());
    assert_eq!(end.receive().await.unwrap(), 112 - n);
    assert_eq!(end.frame().unwrap(), message(100, 3));
    drop(end.other);
    end.socket.start_header_read();
    end.other = UnixStream::pair().unwrap().0;
    assert!(matches!(read(&end.socket).await, RingRead::Ended(Ok(()))));
}

#[tokio::test]
async fn large_message_is_received_with_the_next_header_in_few_reads() {
    let Some(mut end) = pair() else { return };
    let large = message(300_000, 4);
    let mut stream = [large.clone(), large.clone(), large.clone()].concat();
    stream.extend(message(0, 0));
    let mut other = end.other.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        for piece in stream.chunks(7001) {
            other.write_all(piece).unwrap();
        }
    });
    let (mut frames, mut reads) = (0, 0);
    while frames < 4 {
        match end.receiver.peek().unwrap() {
            Some(_) => {
                frames += 1;
                let bytes = end.receiver.take_front();
                assert_eq!(bytes, if frames < 4 { large.clone() } else { message(0, 0) });
            }
            None => match end.socket.take_read() {
                RingRead::Idle => {
                    end.socket.start_read(end.receiver.take_read_buf(), ReadCompletion::Message)
                }
                RingRead::Pending => poll_fn(|cx| end.socket.poll_read_ready(cx)).await.unwrap(),
                RingRead::Read(buf, outcome) => {
                    reads += 1;
                    end.receiver.handle_read(buf, outcome.unwrap());
                }
                RingRead::Header(bytes, n) => {
                    let mut buf = end.receiver.take_read_buf();
                    assert_eq!(buf.fill(&bytes[..n]), n);
                    end.receiver.handle_read(buf, n);
                }
                RingRead::Ended(outcome) => panic!("{outcome:?}"),
            },
        }
    }
    sender.join().unwrap();
    // There is one read for each header, and one for each payload. The first payload needs more reads,
    // because the memory that is granted to a message grows in steps.
    assert!(reads <= 12, "{reads} reads, although each message was sent in 43 pieces");
}

#[tokio::test]
async fn writes_of_any_number_of_pieces_arrive_completely() {
    let Some(mut end) = pair() else { return };
    for pieces in [0, 1, 2, 31, 32, 33, 63, 64, 65, 95, 96, 127, 128, 130, 200, 500] {
        let mut outbox = Outbox::default();
        let mut expected = Vec::new();
        for i in 0..=pieces {
            let small = vec![i as u8; 9];
            outbox.push(&small);
            expected.extend(small);
            if i < pieces {
                let large = vec![!(i as u8); 5000];
                expected.extend(&large);
                outbox.push_chunk(large.into());
            }
        }
        let mut other = end.other.try_clone().unwrap();
        let len = expected.len();
        let reader = std::thread::spawn(move || {
            let mut got = vec![0; len];
            other.read_exact(&mut got).unwrap();
            got
        });
        while !outbox.is_empty() {
            end.socket.start_write(outbox.take());
            let (transmit, outcome) = written(&end.socket).await;
            outcome.unwrap();
            assert!(transmit.is_empty() || pieces > 50, "{pieces} pieces");
            outbox.commit(transmit);
        }
        assert!(reader.join().unwrap() == expected, "{pieces} pieces");
        assert_eq!(outbox.backlog(), 0);
    }
    // A write that the peer does not read fails, and reports the number of sent bytes.
    let mut outbox = Outbox::default();
    for _ in 0..100 {
        outbox.push_chunk(vec![7; 100_000].into());
        outbox.push(&[8; 10]);
    }
    // The first attempt uses zero-copy, which writes nothing over such a socket.
    write(&end.socket, &mut outbox).await;
    end.socket.start_write(outbox.take());
    settle().await;
    let mut first = [0; 1000];
    end.other.read_exact(&mut first).unwrap();
    drop(std::mem::replace(&mut end.other, UnixStream::pair().unwrap().0));
    loop {
        let (transmit, outcome) = written(&end.socket).await;
        outbox.commit(transmit);
        match outcome {
            Err(error) => break assert_eq!(error.kind(), io::ErrorKind::BrokenPipe),
            Ok(()) => end.socket.start_write(outbox.take()),
        }
    }
    assert!(outbox.written() >= 1000 && outbox.backlog() > 0);
}

#[tokio::test]
async fn failed_chain_of_writes_has_one_completion() {
    let Some(mut end) = pair() else { return };
    let mut outbox = Outbox::default();
    for _ in 0..300 {
        outbox.push(&[8; 10]);
        outbox.push_chunk(vec![7; 5000].into());
    }
    let all = outbox.backlog();
    // The chain has four lists of 64 pieces. The socket accepts the first list, and a part of the second one.
    end.socket.start_write(outbox.take());
    settle().await;
    assert_eq!(end.in_flight(), 1);
    drop(std::mem::replace(&mut end.other, UnixStream::pair().unwrap().0));
    loop {
        let (transmit, outcome) = written(&end.socket).await;
        assert_eq!(end.in_flight(), 0);
        outbox.commit(transmit);
        match outcome {
            Err(error) => break assert_eq!(error.kind(), io::ErrorKind::BrokenPipe),
            Ok(()) => end.socket.start_write(outbox.take()),
        }
    }
    assert!(outbox.written() >= 64 * 2505, "{}", outbox.written());
    assert_eq!(outbox.written() as usize + outbox.backlog(), all);
    settle().await;
    assert_eq!(end.in_flight(), 0, "no second completion");
}

#[tokio::test]
async fn zero_copy_is_disabled_after_the_first_write_if_the_kernel_copies() {
    let Some(ring) = ring() else { return };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let over_tcp = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut other = listener.accept().unwrap().0;
    let pool = Arc::new(BufferPool::new(1 << 20));
    let submitted = Arc::default();
    let socket = UringSocket::with_ring(ring.0, over_tcp.into(), &pool, &submitted, None);
    let reader = std::thread::spawn(move || {
        let mut got = Vec::new();
        other.read_to_end(&mut got).unwrap();
        got
    });
    let (mut outbox, mut expected) = (Outbox::default(), Vec::new());
    for round in 0..6_u8 {
        outbox.push(&[round; 20]);
        outbox.push_chunk(vec![round; 700_000].into());
        expected.extend(vec![round; 700_020]);
        while !outbox.is_empty() {
            write(&socket, &mut outbox).await;
        }
        let zero_copy = socket.shared.lock().ring.zero_copy(socket.index);
        assert_eq!(zero_copy, Some(conn::ZeroCopy::Off), "the kernel copies over loopback");
    }
    assert!((6..12).contains(&submitted.load(std::sync::atomic::Ordering::Relaxed)));
    drop(socket);
    settle().await;
    assert!(reader.join().unwrap() == expected);
}

#[tokio::test]
async fn low_water_read_completes_when_the_mark_is_reached() {
    let Some(first) = pair() else { return };
    drop(first);
    let ring = ring().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut other = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    let pool = Arc::new(BufferPool::new(64 << 20));
    let socket = UringSocket::with_ring(ring.0, stream.into(), &pool, &Arc::default(), None);
    let mut receiver = Receiver::new(Arc::clone(&pool), 16 << 20, true);
    let whole = message(1 << 20, 9);
    other.write_all(&whole[..1000]).unwrap();
    let mut left = whole.len() - 1000;
    socket.start_read(receiver.take_read_buf(), ReadCompletion::Message);
    let receive = async |receiver: &mut Receiver| {
        let RingRead::Read(buf, outcome) = read(&socket).await else { panic!("no read has completed") };
        let n = outcome.unwrap();
        receiver.handle_read(buf, n);
        n
    };
    assert_eq!(receive(&mut receiver).await, 1000);
    assert!(receiver.peek().unwrap().is_none());
    while left > 0 {
        let awaited = receiver.granted_missing_bytes().min(50_000);
        socket.set_low_water(awaited).unwrap();
        socket.start_read(receiver.take_read_buf(), ReadCompletion::LowWater);
        // First send one byte too few to complete the read.
        let sent = whole.len() - left;
        other.write_all(&whole[sent..sent + awaited - 1]).unwrap();
        settle().await;
        assert!(matches!(socket.take_read(), RingRead::Pending), "{left}");
        other.write_all(&whole[sent + awaited - 1..sent + awaited]).unwrap();
        assert_eq!(receive(&mut receiver).await, awaited);
        left -= awaited;
        if receiver.peek().unwrap().is_some() {
            break;
        }
    }
    assert_eq!((left, receiver.take_front()), (0, whole.into()));
    // The end of the stream completes the read regardless of the low water mark.
    socket.start_read(receiver.take_read_buf(), ReadCompletion::LowWater);
    drop(other);
    assert_eq!(receive(&mut receiver).await, 0);
}

#[tokio::test]
async fn cancelled_read_returns_its_buffer() {
    let Some(mut end) = pair() else { return };
    end.socket.start_read(end.receiver.take_read_buf(), ReadCompletion::Message);
    settle().await;
    end.socket.cancel_read();
    let RingRead::Read(buf, outcome) = read(&end.socket).await else { panic!("no read has completed") };
    assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::ECANCELED));
    end.receiver.handle_read(buf, 0);
    // The stream is still usable.
    end.other.write_all(&message(1, 1)).unwrap();
    assert_eq!(end.receive().await.unwrap(), 13);
    end.socket.cancel_read();
    assert_eq!(end.in_flight(), 0);
}

#[tokio::test]
async fn dropped_connection_keeps_buffers_that_the_kernel_uses() {
    let Some(first) = pair() else { return };
    let shared = Arc::clone(&first.socket.shared);
    for operation in ["read", "header", "deposit", "write"] {
        let mut end = pair().unwrap();
        match operation {
            "read" => end.socket.start_read(end.receiver.take_read_buf(), ReadCompletion::Message),
            "header" => end.socket.start_header_read(),
            "deposit" => {
                end.other.write_all(&message(100_000, 1)[..70_000]).unwrap();
                while end.receiver.announced_size() == 0 {
                    end.receive().await.unwrap();
                    assert!(end.frame().is_none());
                }
                end.socket.start_read(end.receiver.take_read_buf(), ReadCompletion::Message);
            }
            _ => {
                let mut outbox = Outbox::default();
                for _ in 0..200 {
                    outbox.push_chunk(vec![1; 100_000].into());
                }
                // This kind of socket does not support zero-copy. The first attempt detects this, and writes
                // nothing.
                write(&end.socket, &mut outbox).await;
                assert_eq!(outbox.written(), 0);
                end.socket.start_write(outbox.take());
            }
        }
        settle().await;
        assert!(shared.lock().ring.in_flight() > 0, "{operation}");
        let Pair { socket, other, pool, receiver, .. } = end;
        drop(socket);
        assert!(shared.lock().ring.in_flight() > 0, "{operation}: the kernel still uses the buffer");
        settle().await;
        assert_eq!(shared.lock().ring.in_flight(), 0, "{operation}");
        drop((other, receiver));
        // The buffer is in the pool again, and is reused next.
        let before = pool.stats();
        for _ in 0..2 {
            pool.give_back(pool.take(WINDOW_SIZE));
        }
        let expected = before.misses + u64::from(before.held == 0);
        assert_eq!(pool.stats().misses, expected, "{operation}: {before:?}");
    }
}

#[tokio::test]
async fn index_of_a_connection_is_reused_only_after_its_handle_is_dropped() {
    let Some(first) = pair() else { return };
    first.socket.start_header_read();
    settle().await;
    first.socket.close();
    first.socket.close();
    let second = pair().unwrap();
    assert_ne!(first.socket.index, second.socket.index);
    settle().await;
    assert!(matches!(first.socket.take_read(), RingRead::Ended(_)));
    // No operation starts on a closed connection.
    first.socket.start_header_read();
    assert!(matches!(first.socket.take_read(), RingRead::Ended(Err(_))));
    let index = first.socket.index;
    drop(first);
    let third = pair().unwrap();
    assert_eq!(third.socket.index, index);
}

#[tokio::test]
async fn more_operations_than_queue_entries_complete() {
    let Some(first) = pair() else { return };
    let mut ends: Vec<Pair> = (0..600).map(|_| pair().unwrap()).collect();
    for round in 0..3 {
        for end in &ends {
            end.socket.start_header_read();
        }
        settle().await;
        assert_eq!(first.in_flight(), ends.len());
        for end in &mut ends {
            end.other.write_all(&message(0, 0)).unwrap();
        }
        for end in &ends {
            assert!(matches!(read(&end.socket).await, RingRead::Header(_, HEADER_LEN)), "round {round}");
        }
    }
    assert_eq!(first.in_flight(), 0);
}

#[test]
fn the_end_of_a_runtime_ends_its_operations() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let end = runtime.block_on(async {
        let mut end = pair()?;
        end.socket.start_read(end.receiver.take_read_buf(), ReadCompletion::Message);
        settle().await;
        Some(end)
    });
    drop(runtime);
    let Some(end) = end else { return };
    assert_eq!(end.in_flight(), 0, "the kernel has released the buffer");
    assert!(!matches!(end.socket.take_read(), RingRead::Pending));
    end.socket.start_header_read();
    assert!(matches!(end.socket.take_read(), RingRead::Ended(Err(_))));
    let mut outbox = Outbox::default();
    outbox.push(b"bytes");
    end.socket.start_write(outbox.take());
    assert!(end.socket.take_written().unwrap().1.is_err());
}

#[test]
fn the_end_of_a_runtime_releases_bytes_that_a_peer_does_not_read() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let over_tcp = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut other = listener.accept().unwrap().0;
    // With zero-copy, the kernel keeps the bytes until the peer's system has received them. That system
    // accepts only few bytes, because the peer does not read.
    let count = Arc::new(());
    let socket = runtime.block_on(async {
        let (pool, submitted) = (Arc::new(BufferPool::new(1 << 20)), Arc::default());
        let socket = UringSocket::with_ring(ring()?.0, over_tcp.into(), &pool, &submitted, None);
        let mut outbox = Outbox::default();
        outbox.push(&[1; 20]);
        outbox.push_chunk(bytes::Bytes::from_owner(Counted(vec![1; 1_900_000], Arc::clone(&count))));
        socket.start_write(outbox.take());
        settle().await;
        assert_eq!(socket.shared.lock().ring.in_flight(), 1, "the kernel uses the buffer");
        Some(socket)
    });
    drop(runtime);
    let Some(socket) = socket else { return };
    assert_eq!(socket.shared.lock().ring.in_flight(), 0, "the kernel has released the buffer");
    drop(socket);
    assert_eq!(Arc::strong_count(&count), 1, "the bytes are freed");
    other.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let ended = other.read_to_end(&mut Vec::new());
    assert!(!ended.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock), "the socket is closed");
}

/// Bytes whose release can be observed.
struct Counted(Vec<u8>, #[expect(dead_code, reason = "its references are counted")] Arc<()>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[test]
fn operations_that_were_not_submitted_do_not_keep_a_connection() {
    let (end, mut other) = UnixStream::pair().unwrap();
    other.set_nonblocking(true).unwrap();
    let pool = Arc::new(BufferPool::new(64 << 20));
    let mut ring = super::ring::Ring::default();
    let index = ring.insert(end.into(), Arc::clone(&pool), Arc::default());
    let mut outbox = Outbox::default();
    for _ in 0..2 * conn::MAX_VECTORS {
        outbox.push_chunk(bytes::Bytes::from(vec![7; 8192]));
    }
    ring.start_header_read(index);
    ring.start_write(index, outbox.take());
    assert_eq!(ring.in_flight(), 2);
    ring.end();
    assert_eq!(ring.in_flight(), 0);
    drop(ring);
    assert_eq!(other.read(&mut [0; 8]).unwrap(), 0, "the socket is closed");
}

#[test]
fn a_runtime_may_move_to_another_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                runtime.block_on(async {
                    let mut end = pair()?;
                    end.other.write_all(&message(3, 3)).unwrap();
                    assert_eq!(end.receive().await.unwrap(), 15);
                    assert!(end.frame().is_some());
                    end.socket.start_read(end.receiver.take_read_buf(), ReadCompletion::Message);
                    settle().await;
                    Some(end)
                })
            })
            .join()
            .unwrap()
    });
    let Some(mut first) = first else { return };
    runtime.block_on(async {
        // If the thread of an operation has ended, the kernel cancels the operation when bytes arrive for it.
        first.other.write_all(&message(3, 3)).unwrap();
        let RingRead::Read(buf, outcome) = read(&first.socket).await else { panic!("no read has completed") };
        assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::ECANCELED));
        first.receiver.handle_read(buf, 0);
        assert_eq!(first.receive().await.unwrap(), 15);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_runtime_with_several_threads_has_no_ring() {
    let Err(error) = RingHandle::of_current_runtime() else { panic!("the runtime has a ring") };
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    assert!(error.to_string().contains("several threads"), "{error}");
}
