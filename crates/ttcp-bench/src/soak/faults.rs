//! Misbehaving peers of the server: sockets that send garbage, truncated or corrupted messages or huge
//! lengths, that reset the connection, that do not read replies, or that send nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use fastrand::Rng;

use super::contract::TARGET;
use super::record_file::{Id, RAW_CLIENT};

const SOCKET_TIMEOUT: Duration = Duration::from_millis(100);
const PAUSE_BETWEEN_CONNECTIONS: Duration = Duration::from_millis(2);
const THREAD_COUNT: u64 = 2;

/// The kinds of misbehaviour. [`MisbehavingPeers`] and [`misbehave`] use their indices.
const MISBEHAVIOURS: [&str; 7] = [
    "garbage",
    "cut messages",
    "flipped bits",
    "requests and a reset",
    "length bombs",
    "readers that do not read",
    "silent connections",
];

/// Threads with misbehaving peers. Dropping this value ends the threads.
pub(super) struct MisbehavingPeers {
    /// A lock that each peer holds for reading while it has a connection.
    connection_lock: Arc<RwLock<()>>,
    is_ending: Arc<AtomicBool>,
    counts: Arc<[AtomicU64; MISBEHAVIOURS.len()]>,
    threads: Vec<JoinHandle<()>>,
}

impl MisbehavingPeers {
    pub(super) fn start(address: SocketAddr, seed: u64) -> std::io::Result<MisbehavingPeers> {
        let mut peers = MisbehavingPeers {
            connection_lock: Arc::default(),
            is_ending: Arc::default(),
            counts: Arc::new(std::array::from_fn(|_| AtomicU64::new(0))),
            threads: Vec::new(),
        };
        let call_count = Arc::new(AtomicU64::new(0));
        for thread in 0..THREAD_COUNT {
            let connection_lock = Arc::clone(&peers.connection_lock);
            let (is_ending, counts) = (Arc::clone(&peers.is_ending), Arc::clone(&peers.counts));
            let call_count = Arc::clone(&call_count);
            let mut rng = Rng::with_seed(seed.wrapping_add(thread));
            let thread = std::thread::Builder::new().name("raw peer".into()).spawn(move || {
                while !is_ending.load(Ordering::Relaxed) {
                    {
                        let _guard = connection_lock.read().unwrap_or_else(PoisonError::into_inner);
                        let kind = rng.usize(..MISBEHAVIOURS.len());
                        let id = || Id::new(RAW_CLIENT, call_count.fetch_add(1, Ordering::Relaxed) as u32);
                        // Errors are expected, because the server may be down or close the connection.
                        if misbehave(kind, &id, address, &mut rng).is_ok()
                            && let Some(count) = counts.get(kind)
                        {
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    std::thread::sleep(PAUSE_BETWEEN_CONNECTIONS);
                }
            })?;
            peers.threads.push(thread);
        }
        Ok(peers)
    }

    /// Waits until no peer has a connection, and prevents new connections while the guard exists.
    pub(super) fn pause(connection_lock: &RwLock<()>) -> RwLockWriteGuard<'_, ()> {
        connection_lock.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn connection_lock(&self) -> Arc<RwLock<()>> {
        Arc::clone(&self.connection_lock)
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        MISBEHAVIOURS.into_iter().zip(counts)
    }
}

impl Drop for MisbehavingPeers {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Connects to the server and misbehaves in one way. `kind` is an index in [`MISBEHAVIOURS`].
fn misbehave(kind: usize, id: &dyn Fn() -> Id, address: SocketAddr, rng: &mut Rng) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, SOCKET_TIMEOUT)?;
    stream.set_read_timeout(Some(SOCKET_TIMEOUT))?;
    stream.set_write_timeout(Some(SOCKET_TIMEOUT))?;
    let mut ping = request(TARGET, "ping", &id().0.to_be_bytes());
    match kind {
        0 => {
            let garbage: Vec<u8> = (0..rng.usize(1..3000)).map(|_| rng.u8(..)).collect();
            stream.write_all(&garbage)
        }
        1 => stream.write_all(ping.get(..rng.usize(1..ping.len())).unwrap_or_default()),
        2 => {
            let index = rng.usize(..ping.len());
            if let Some(byte) = ping.get_mut(index) {
                *byte ^= 1 << rng.u32(..8);
            }
            stream.write_all(&ping)?;
            drain(&stream, 1)
        }
        3 => {
            stream.write_all(&ping)?;
            socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))
        }
        4 => {
            // The header claims a length of gigabytes, but few bytes follow.
            let mut bomb = b"GIOP\x01\x02\x00\x00".to_vec();
            bomb.extend((u32::MAX - rng.u32(..1 << 30)).to_be_bytes());
            bomb.extend(std::iter::repeat_n(0x41, rng.usize(..2000)));
            stream.write_all(&bomb)?;
            drain(&stream, 1)
        }
        5 => {
            // Several replies together are larger than the socket buffers.
            for _ in 0..rng.usize(1..20) {
                let mut body = id().0.to_be_bytes().to_vec();
                body.extend(200_000_u32.to_be_bytes());
                body.resize(body.len() + 200_000, 7);
                if stream.write_all(&request(TARGET, "echo_octets", &body)).is_err() {
                    break;
                }
            }
            std::thread::sleep(SOCKET_TIMEOUT);
            drain(&stream, rng.usize(..200))
        }
        _ => {
            std::thread::sleep(SOCKET_TIMEOUT);
            Ok(())
        }
    }
}

/// Reads and discards data, with at most `max_reads` system calls.
fn drain(mut stream: &TcpStream, max_reads: usize) -> std::io::Result<()> {
    let mut buffer = [0; 4096];
    for _ in 0..max_reads {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionReset) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns a big-endian request of GIOP 1.0 with a body that is aligned to 8 bytes.
fn request(key: &str, operation: &str, body: &[u8]) -> Vec<u8> {
    let mut message = b"GIOP\x01\x00\x00\x00".to_vec();
    // Four bytes for the message size, which is set below, and four bytes for zero service contexts.
    message.extend([0; 8]);
    // The request id is 1, and `response_expected` is true.
    message.extend([0, 0, 0, 1, 1, 0, 0, 0]);
    let mut put_with_length = |bytes: &[u8], end: &[u8]| {
        message.resize(message.len().next_multiple_of(4), 0);
        message.extend(((bytes.len() + end.len()) as u32).to_be_bytes());
        message.extend(bytes);
        message.extend(end);
    };
    put_with_length(key.as_bytes(), b"");
    put_with_length(operation.as_bytes(), b"\0");
    // The principal is empty.
    put_with_length(b"", b"");
    // The alignment is relative to the start of the message.
    let padded = message.len().next_multiple_of(8);
    message.resize(padded, 0);
    message.extend(body);
    let size = (message.len() - 12) as u32;
    if let Some(field) = message.get_mut(8..12) {
        field.copy_from_slice(&size.to_be_bytes());
    }
    message
}
