//! What attackers do with a connection.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::attackers::{Attack, Front};
use super::contract::TARGET;
use crate::giop;

/// Octets of the message that a slow peer begins.
const LARGE: usize = 1 << 20;
/// How long a peer with a bomb waits for what the server says to it.
const FUSE: Duration = Duration::from_millis(200);
/// How long one waits that promised what is allowed.
const LONG_FUSE: Duration = Duration::from_secs(2);
/// Messages of a burst of CancelRequests and LocateRequests.
const BURST: usize = 100;
/// How long a connection that nobody uses is there.
const HELD: Duration = Duration::from_millis(50);

/// Where a request of GIOP 1.0 says its size, how many service contexts it has, and how long its key is.
const SIZE: usize = 8;
const CONTEXTS: usize = 12;
const KEY: usize = 24;
/// Octets of a message that is just not too large for a server.
const ALLOWED: u32 = 15 << 20;

/// Peers of an attack; those that are slow are as many as one likes.
pub(super) fn peers(attack: Attack, slow: u32) -> u32 {
    match attack {
        Attack::Slowloris => slow,
        Attack::Bombs | Attack::Connects => 64,
        Attack::Cancels => 8,
    }
}

/// Messages after which an attack of so many peers has begun in earnest: one of each peer that begins with a message.
pub(super) fn opening_messages(attack: Attack, peers: u32) -> u64 {
    let peers = u64::from(peers);
    match attack {
        // Of four peers, two send what counts as a message at once.
        Attack::Slowloris => peers / 2,
        Attack::Bombs => peers,
        Attack::Cancels => 2 * peers * BURST as u64,
        // Of three connections, one sends a message.
        Attack::Connects => peers / 3,
    }
}

/// An attack by one connection. Ends well where the peer has done all it wanted.
///
/// # Errors
/// The server closed the connection before.
pub(super) async fn once(
    attack: Attack,
    number: u32,
    turn: u32,
    stream: &mut TcpStream,
    front: &Front,
) -> io::Result<()> {
    match attack {
        Attack::Slowloris => slow(number, stream, front).await,
        Attack::Bombs if number.is_multiple_of(8) => promise(stream, front).await,
        Attack::Bombs => bomb(turn, stream, front).await,
        Attack::Cancels => cancels(number, stream, front).await,
        Attack::Connects => connect(turn, stream, front).await,
    }
}

/// One of a header, of a message, of the header behind a good request, and one that says nothing.
async fn slow(number: u32, stream: &mut TcpStream, front: &Front) -> io::Result<()> {
    let message = request(LARGE);
    let small = request(1);
    let (at_once, slowly): (&[u8], &[u8]) = match number % 4 {
        0 => (&[], message.get(..11).unwrap_or_default()),
        1 => message.split_at_checked(64).unwrap_or_default(),
        2 => (&small, message.get(..11).unwrap_or_default()),
        _ => (&[], &[]),
    };
    send(stream, at_once, 1, front).await?;
    for octet in slowly {
        front.pace.turn().await;
        send(stream, &[*octet], 0, front).await?;
        // What comes is thrown away, that nothing else comes is seen.
        let mut answer = [0; 256];
        match stream.try_read(&mut answer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
    // All that may be sent without ending it is: now it waits.
    until_the_end(stream).await
}

/// A message that is as long as one may be, of which the first part comes.
async fn promise(stream: &mut TcpStream, front: &Front) -> io::Result<()> {
    let mut message = request(1 << 20);
    put(&mut message, SIZE, ALLOWED);
    send(stream, &message, 1, front).await?;
    timeout(LONG_FUSE, until_the_end(stream)).await.unwrap_or(Ok(()))
}

/// A header or a length in a message that promises what never comes.
async fn bomb(turn: u32, stream: &mut TcpStream, front: &Front) -> io::Result<()> {
    let most = u32::MAX - 16;
    let mut message = request(4);
    match turn % 7 {
        // Of this version a message that is too long is an error of its own.
        0 => put(&mut message, SIZE, most),
        // A request of this one is skipped: its header is whole.
        1 => {
            message = b"GIOP\x01\x02\x00\x00\xff\xff\xff\xef\x00\x00\x00\x07\x03\x00\x00\x00".to_vec();
            message.extend(
                b"\x00\x00\x00\x00\x00\x00\x00\x06target\x00\x00\x00\x00\x00\x05echo\x00\x00\x00\x00",
            );
            message.extend([0, 0, 0, 0]);
            message.resize(64 << 10, 0x41);
        }
        // Service contexts, octets of the key, and elements of the argument.
        2 => put(&mut message, CONTEXTS, most),
        3 => put(&mut message, KEY, most),
        4 => {
            let argument = message.len() - 8;
            put(&mut message, argument, most);
        }
        // Messages of which fragments are missing.
        5 => {
            message = (0..32_u32).flat_map(open_message).collect();
        }
        // No GIOP.
        _ => message = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
    }
    send(stream, &message, 1, front).await?;
    timeout(FUSE, until_the_end(stream)).await.unwrap_or(Ok(()))
}

/// The first fragment of a request that is to have more of them.
fn open_message(id: u32) -> Vec<u8> {
    let mut message = b"GIOP\x01\x02\x02\x00\x00\x00\x04\x00".to_vec();
    message.extend(id.to_be_bytes());
    message.resize(12 + (4 << 8), 0);
    message
}

/// CancelRequests of calls that nobody made, and LocateRequests of objects that are not there. One half of the peers reads the answers.
async fn cancels(number: u32, stream: &mut TcpStream, front: &Front) -> io::Result<()> {
    let cancel = b"GIOP\x01\x00\x00\x02\x00\x00\x00\x04\x00\x00\x00\x07";
    let locate = b"GIOP\x01\x00\x00\x03\x00\x00\x00\x0c\x00\x00\x00\x07\x00\x00\x00\x04none";
    let burst = [cancel.as_slice(), locate.as_slice()].concat().repeat(BURST / 2);
    let mut answers = vec![0; 16 << 10];
    loop {
        front.pace.turn().await;
        send(stream, &burst, BURST, front).await?;
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

/// A connection that is gone at once, one that is held for a moment, and one that says what no ORB does.
async fn connect(turn: u32, stream: &mut TcpStream, front: &Front) -> io::Result<()> {
    match turn % 3 {
        0 => return Ok(()),
        1 => {}
        _ => send(stream, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00", 1, front).await?,
    }
    timeout(HELD, until_the_end(stream)).await.unwrap_or(Ok(()))
}

/// A good request with so many octets.
fn request(octets: usize) -> Vec<u8> {
    giop::request(TARGET.as_bytes(), b"echo\0", &vec![0x41; octets])
}

/// Writes over what stands there.
fn put(message: &mut [u8], place: usize, number: u32) {
    if let Some(place) = message.get_mut(place..place + 4) {
        place.copy_from_slice(&number.to_le_bytes());
    }
}

async fn send(stream: &mut TcpStream, octets: &[u8], messages: usize, front: &Front) -> io::Result<()> {
    stream.write_all(octets).await?;
    front.meeting.sent(messages, octets.len());
    Ok(())
}

/// Reads until the server closes.
async fn until_the_end(stream: &mut TcpStream) -> io::Result<()> {
    let mut answer = [0; 1024];
    while stream.read(&mut answer).await? > 0 {}
    Err(io::ErrorKind::UnexpectedEof.into())
}
