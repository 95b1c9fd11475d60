//! What attackers do with a connection.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::attackers::{Attack, AttackState};
use super::contract::TARGET;
use crate::giop;

/// Size of the message that a slow peer begins, bytes.
const LARGE: usize = 1 << 20;
/// How long a peer waits for the server's answer to a message with a wrong length or count.
const FUSE: Duration = Duration::from_millis(200);
/// How long a peer waits that declared a message of an allowed size.
const LONG_FUSE: Duration = Duration::from_secs(2);
/// Messages of a burst of CancelRequests and LocateRequests.
const BURST: usize = 100;
/// Lifetime of a connection without requests.
const HELD: Duration = Duration::from_millis(50);

/// Offsets in a GIOP 1.0 request: message size, number of service contexts, and length of the object key.
const SIZE: usize = 8;
const CONTEXTS: usize = 12;
const KEY: usize = 24;
/// Declared size of a message just below the server's limit, bytes.
const ALLOWED: u32 = 15 << 20;

/// Returns the number of peers of an attack. The number of slow peers is configurable.
pub(super) fn peers(attack: Attack, slow: u32) -> u32 {
    match attack {
        Attack::Slowloris => slow,
        Attack::Bombs | Attack::Connects => 64,
        Attack::Cancels => 8,
    }
}

/// Messages after which an attack of `peers` peers has begun: one from each peer that starts with a message.
pub(super) fn opening_messages(attack: Attack, peers: u32) -> u64 {
    let peers = u64::from(peers);
    match attack {
        // Of four peers, two immediately send what counts as a message.
        Attack::Slowloris => peers / 2,
        Attack::Bombs => peers,
        Attack::Cancels => 2 * peers * BURST as u64,
        // Of three connections, one sends a message.
        Attack::Connects => peers / 3,
    }
}

/// Attacks over one connection. Returns `Ok` if the peer could do all that it intended.
///
/// # Errors
/// The server closed the connection earlier.
pub(super) async fn once(
    attack: Attack,
    number: u32,
    turn: u32,
    stream: &mut TcpStream,
    state: &AttackState,
) -> io::Result<()> {
    match attack {
        Attack::Slowloris => slow(number, stream, state).await,
        Attack::Bombs if number.is_multiple_of(8) => promise(stream, state).await,
        Attack::Bombs => bomb(turn, stream, state).await,
        Attack::Cancels => cancels(number, stream, state).await,
        Attack::Connects => connect(turn, stream, state).await,
    }
}

/// Stalls in one of four ways: within a header, within a message, within the header after a valid request, or
/// without sending anything.
async fn slow(number: u32, stream: &mut TcpStream, state: &AttackState) -> io::Result<()> {
    let message = request(LARGE);
    let small = request(1);
    let (at_once, slowly): (&[u8], &[u8]) = match number % 4 {
        0 => (&[], message.get(..11).unwrap_or_default()),
        1 => message.split_at_checked(64).unwrap_or_default(),
        2 => (&small, message.get(..11).unwrap_or_default()),
        _ => (&[], &[]),
    };
    send(stream, at_once, 1, state).await?;
    for octet in slowly {
        state.pace.turn().await;
        send(stream, &[*octet], 0, state).await?;
        // Discards replies, and detects the end of the connection.
        let mut answer = [0; 256];
        match stream.try_read(&mut answer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
    // Everything was sent that does not complete a header: from here on the peer only waits.
    until_the_end(stream).await
}

/// Declares a message of the largest allowed size and sends its first part.
async fn promise(stream: &mut TcpStream, state: &AttackState) -> io::Result<()> {
    let mut message = request(1 << 20);
    put(&mut message, SIZE, ALLOWED);
    send(stream, &message, 1, state).await?;
    timeout(LONG_FUSE, until_the_end(stream)).await.unwrap_or(Ok(()))
}

/// Sends a header or a length in a message that declares bytes which never come.
async fn bomb(turn: u32, stream: &mut TcpStream, state: &AttackState) -> io::Result<()> {
    let most = u32::MAX - 16;
    let mut message = request(4);
    match turn % 7 {
        // In this version, a message that is too long is an error of its own.
        0 => put(&mut message, SIZE, most),
        // The server skips a request of this version that is too long, because its header is complete.
        1 => {
            message = b"GIOP\x01\x02\x00\x00\xff\xff\xff\xef\x00\x00\x00\x07\x03\x00\x00\x00".to_vec();
            message.extend(
                b"\x00\x00\x00\x00\x00\x00\x00\x06target\x00\x00\x00\x00\x00\x05echo\x00\x00\x00\x00",
            );
            message.extend([0, 0, 0, 0]);
            message.resize(64 << 10, 0x41);
        }
        // Service contexts, bytes of the key, and elements of the argument.
        2 => put(&mut message, CONTEXTS, most),
        3 => put(&mut message, KEY, most),
        4 => {
            let argument = message.len() - 8;
            put(&mut message, argument, most);
        }
        // Messages without their last fragments.
        5 => {
            message = (0..32_u32).flat_map(open_message).collect();
        }
        // Not GIOP.
        _ => message = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
    }
    send(stream, &message, 1, state).await?;
    timeout(FUSE, until_the_end(stream)).await.unwrap_or(Ok(()))
}

/// Returns the first fragment of a request that announces further fragments.
fn open_message(id: u32) -> Vec<u8> {
    let mut message = b"GIOP\x01\x02\x02\x00\x00\x00\x04\x00".to_vec();
    message.extend(id.to_be_bytes());
    message.resize(12 + (4 << 8), 0);
    message
}

/// Sends CancelRequests for calls that were never made, and LocateRequests for objects that do not exist.
/// Half of the peers read the answers.
async fn cancels(number: u32, stream: &mut TcpStream, state: &AttackState) -> io::Result<()> {
    let cancel = b"GIOP\x01\x00\x00\x02\x00\x00\x00\x04\x00\x00\x00\x07";
    let locate = b"GIOP\x01\x00\x00\x03\x00\x00\x00\x0c\x00\x00\x00\x07\x00\x00\x00\x04none";
    let burst = [cancel.as_slice(), locate.as_slice()].concat().repeat(BURST / 2);
    let mut answers = vec![0; 16 << 10];
    loop {
        state.pace.turn().await;
        send(stream, &burst, BURST, state).await?;
        while number.is_multiple_of(2) {
            match stream.try_read(&mut answers) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
    }
}

/// Opens a connection that is closed at once, one that is held briefly, or one that sends a message which no
/// ORB sends.
async fn connect(turn: u32, stream: &mut TcpStream, state: &AttackState) -> io::Result<()> {
    match turn % 3 {
        0 => return Ok(()),
        1 => {}
        _ => send(stream, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00", 1, state).await?,
    }
    timeout(HELD, until_the_end(stream)).await.unwrap_or(Ok(()))
}

/// Returns a valid request with an argument of `octets` bytes.
fn request(octets: usize) -> Vec<u8> {
    giop::request(TARGET.as_bytes(), b"echo\0", &vec![0x41; octets])
}

/// Overwrites four bytes at `place` with `number`.
fn put(message: &mut [u8], place: usize, number: u32) {
    if let Some(place) = message.get_mut(place..place + 4) {
        place.copy_from_slice(&number.to_le_bytes());
    }
}

async fn send(stream: &mut TcpStream, octets: &[u8], messages: usize, state: &AttackState) -> io::Result<()> {
    stream.write_all(octets).await?;
    state.counters.sent(messages, octets.len());
    Ok(())
}

/// Reads and discards until the server closes the connection.
async fn until_the_end(stream: &mut TcpStream) -> io::Result<()> {
    let mut answer = [0; 1024];
    while stream.read(&mut answer).await? > 0 {}
    Err(io::ErrorKind::UnexpectedEof.into())
}
