//! Misbehaving peers, which are not ORBs: garbage, truncated messages or messages with a flipped bit,
//! declared bytes that never come, peers that do not read.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use fastrand::Rng;

use super::contract::TARGET;
use super::record_file::{Id, RAW};

/// Timeout of such a peer.
const PATIENCE: Duration = Duration::from_millis(100);
/// Pause between two such connections.
const PAUSE: Duration = Duration::from_millis(2);
/// Number of threads.
const THREADS: u64 = 2;

/// The kinds of misbehaviour, in the order of `RawPeers::counts`.
const MISBEHAVIOURS: [&str; 7] = [
    "garbage",
    "cut messages",
    "flipped bits",
    "requests and a reset",
    "length bombs",
    "readers that do not read",
    "silent connections",
];

/// The peers; dropping this ends them.
pub(super) struct RawPeers {
    gate: Arc<RwLock<()>>,
    ending: Arc<AtomicBool>,
    counts: Arc<[AtomicU64; MISBEHAVIOURS.len()]>,
    threads: Vec<JoinHandle<()>>,
}

impl RawPeers {
    /// Starts them.
    ///
    /// # Errors
    /// Their threads cannot be started.
    pub(super) fn start(address: SocketAddr, seed: u64) -> std::io::Result<RawPeers> {
        let mut peers = RawPeers {
            gate: Arc::default(),
            ending: Arc::default(),
            counts: Arc::new(std::array::from_fn(|_| AtomicU64::new(0))),
            threads: Vec::new(),
        };
        let place = Arc::new(AtomicU64::new(0));
        for thread in 0..THREADS {
            let (gate, ending) = (Arc::clone(&peers.gate), Arc::clone(&peers.ending));
            let (counts, place) = (Arc::clone(&peers.counts), Arc::clone(&place));
            let mut rng = Rng::with_seed(seed.wrapping_add(thread));
            let thread = std::thread::Builder::new().name("raw peer".into()).spawn(move || {
                while !ending.load(Ordering::Relaxed) {
                    {
                        let _allowed = gate.read().unwrap_or_else(PoisonError::into_inner);
                        let deed = rng.usize(..MISBEHAVIOURS.len());
                        let id = || Id::new(RAW, place.fetch_add(1, Ordering::Relaxed) as u32);
                        // Errors are expected: the server may be down, or close the connection.
                        if misbehave(deed, &id, address, &mut rng).is_ok()
                            && let Some(count) = counts.get(deed)
                        {
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    std::thread::sleep(PAUSE);
                }
            })?;
            peers.threads.push(thread);
        }
        Ok(peers)
    }

    /// Waits until none of them has a connection, and prevents new ones.
    pub(super) fn pause(gate: &RwLock<()>) -> RwLockWriteGuard<'_, ()> {
        gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the lock by which they are paused.
    pub(super) fn gate(&self) -> Arc<RwLock<()>> {
        Arc::clone(&self.gate)
    }

    /// Returns how often each misbehaviour was performed so far.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        MISBEHAVIOURS.into_iter().zip(counts)
    }
}

impl Drop for RawPeers {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn misbehave(deed: usize, id: &dyn Fn() -> Id, address: SocketAddr, rng: &mut Rng) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut ping = request(TARGET, "ping", &id().0.to_be_bytes());
    match deed {
        0 => {
            let octets: Vec<u8> = (0..rng.usize(1..3000)).map(|_| rng.u8(..)).collect();
            stream.write_all(&octets)
        }
        1 => stream.write_all(ping.get(..rng.usize(1..ping.len())).unwrap_or_default()),
        2 => {
            let place = rng.usize(..ping.len());
            if let Some(octet) = ping.get_mut(place) {
                *octet ^= 1 << rng.u32(..8);
            }
            stream.write_all(&ping)?;
            drain(&stream, 1)
        }
        3 => {
            stream.write_all(&ping)?;
            socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))
        }
        4 => {
            let mut bomb = b"GIOP\x01\x02\x00\x00".to_vec();
            bomb.extend((u32::MAX - rng.u32(..1 << 30)).to_be_bytes());
            bomb.extend(std::iter::repeat_n(0x41, rng.usize(..2000)));
            stream.write_all(&bomb)?;
            drain(&stream, 1)
        }
        5 => {
            // Replies many times larger than the socket buffers.
            for _ in 0..rng.usize(1..20) {
                let mut body = id().0.to_be_bytes().to_vec();
                body.extend(200_000_u32.to_be_bytes());
                body.resize(body.len() + 200_000, 7);
                if stream.write_all(&request(TARGET, "echo_octets", &body)).is_err() {
                    break;
                }
            }
            std::thread::sleep(PATIENCE);
            drain(&stream, rng.usize(..200))
        }
        _ => {
            std::thread::sleep(PATIENCE);
            Ok(())
        }
    }
}

/// Reads up to `pieces` pieces of incoming data.
fn drain(mut stream: &TcpStream, pieces: usize) -> std::io::Result<()> {
    let mut piece = [0; 4096];
    for _ in 0..pieces {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionReset) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns a request of GIOP 1.0, big-endian, with a body that is aligned to 8 bytes.
pub(crate) fn request(key: &str, operation: &str, body: &[u8]) -> Vec<u8> {
    let mut message = b"GIOP\x01\x00\x00\x00".to_vec();
    // The message length is filled in here later; then no service context, request id 1, and
    // `response_expected`.
    message.extend([0; 8]);
    message.extend([0, 0, 0, 1, 1, 0, 0, 0]);
    let mut put = |octets: &[u8], end: &[u8]| {
        message.resize(message.len().next_multiple_of(4), 0);
        message.extend(((octets.len() + end.len()) as u32).to_be_bytes());
        message.extend(octets);
        message.extend(end);
    };
    put(key.as_bytes(), b"");
    put(operation.as_bytes(), b"\0");
    // No principal.
    put(b"", b"");
    // Alignment counts from the start of the message.
    let padded = message.len().next_multiple_of(8);
    message.resize(padded, 0);
    message.extend(body);
    let len = (message.len() - 12) as u32;
    if let Some(place) = message.get_mut(8..12) {
        place.copy_from_slice(&len.to_be_bytes());
    }
    message
}
