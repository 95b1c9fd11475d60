//! The attacks over a single connection.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::attackers::{Attack, AttackState};
use super::contract::TARGET;
use crate::giop;

/// Size of the argument of the message that a slow peer starts to send.
const LARGE_MESSAGE_BYTES: usize = 1 << 20;
/// How long a peer waits for the server to close the connection after a message with a wrong length or count.
const INVALID_MESSAGE_WAIT: Duration = Duration::from_millis(200);
/// How long a peer waits for the server to close the connection after the start of a message with an allowed
/// size.
const ALLOWED_MESSAGE_WAIT: Duration = Duration::from_secs(2);
const BURST_MESSAGES: usize = 100;
const IDLE_CONNECTION_TIME: Duration = Duration::from_millis(50);

// Offsets in a GIOP 1.0 request.
const SIZE_OFFSET: usize = 8;
const CONTEXT_COUNT_OFFSET: usize = 12;
const KEY_LENGTH_OFFSET: usize = 24;
/// A message size just below the server's limit.
const ALLOWED_MESSAGE_BYTES: u32 = 15 << 20;

/// Returns the number of peers of an attack. The number of slow peers is configurable.
pub(super) fn peer_count(attack: Attack, slow_peers: u32) -> u32 {
    match attack {
        Attack::Slowloris => slow_peers,
        Attack::Bombs | Attack::Connects => 64,
        Attack::Cancels => 8,
    }
}

/// Returns the number of messages that have been sent when each of the `peers` peers has started its attack.
pub(super) fn opening_message_count(attack: Attack, peers: u32) -> u64 {
    let peers = u64::from(peers);
    match attack {
        // Two of every four peers send bytes before the slow ones.
        Attack::Slowloris => peers / 2,
        Attack::Bombs => peers,
        Attack::Cancels => 2 * peers * BURST_MESSAGES as u64,
        // One of every three connections sends a message.
        Attack::Connects => peers / 3,
    }
}

/// Performs an attack over one connection. Returns `Ok` if the peer could perform the whole attack.
pub(super) async fn attack_once(
    attack: Attack,
    number: u32,
    turn: u32,
    stream: &mut TcpStream,
    state: &AttackState,
) -> io::Result<()> {
    match attack {
        Attack::Slowloris => send_slowly(number, stream, state).await,
        Attack::Bombs if number.is_multiple_of(8) => declare_allowed_size(stream, state).await,
        Attack::Bombs => send_bomb(turn, stream, state).await,
        Attack::Cancels => flood_cancels(number, stream, state).await,
        Attack::Connects => open_connection(turn, stream, state).await,
    }
}

/// Sends byte by byte without completing what it sends, which is one of four things: a header, a large
/// message, a header after a valid request, or nothing at all.
async fn send_slowly(number: u32, stream: &mut TcpStream, state: &AttackState) -> io::Result<()> {
    let message = request(LARGE_MESSAGE_BYTES);
    let small = request(1);
    let (first, slow): (&[u8], &[u8]) = match number % 4 {
        0 => (&[], message.get(..11).unwrap_or_default()),
        1 => message.split_at_checked(64).unwrap_or_default(),
        2 => (&small, message.get(..11).unwrap_or_default()),
        _ => (&[], &[]),
    };
    send(stream, first, 1, state).await?;
    for byte in slow {
        state.pace.wait_for_turn().await;
        send(stream, &[*byte], 0, state).await?;
        // Discards replies, and detects the end of the connection.
        let mut answer = [0; 256];
        match stream.try_read(&mut answer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
    // One more byte would complete a header. A large message is complete here, which takes a long phase.
    read_until_closed(stream).await
}

/// Sends the first part of a message whose header has an allowed size.
async fn declare_allowed_size(stream: &mut TcpStream, state: &AttackState) -> io::Result<()> {
    let mut message = request(1 << 20);
    put_number(&mut message, SIZE_OFFSET, ALLOWED_MESSAGE_BYTES);
    send(stream, &message, 1, state).await?;
    timeout(ALLOWED_MESSAGE_WAIT, read_until_closed(stream)).await.unwrap_or(Ok(()))
}

/// Sends a message with a size, length or count that is larger than what follows, or another invalid message.
async fn send_bomb(turn: u32, stream: &mut TcpStream, state: &AttackState) -> io::Result<()> {
    let huge = u32::MAX - 16;
    let mut message = request(4);
    match turn % 7 {
        // GIOP 1.0: the server closes the connection.
        0 => put_number(&mut message, SIZE_OFFSET, huge),
        // GIOP 1.2: the server can answer, and skips the rest of the request.
        1 => {
            message = b"GIOP\x01\x02\x00\x00\xff\xff\xff\xef\x00\x00\x00\x07\x03\x00\x00\x00".to_vec();
            message.extend(
                b"\x00\x00\x00\x00\x00\x00\x00\x06target\x00\x00\x00\x00\x00\x05echo\x00\x00\x00\x00",
            );
            message.extend([0, 0, 0, 0]);
            message.resize(64 << 10, 0x41);
        }
        2 => put_number(&mut message, CONTEXT_COUNT_OFFSET, huge),
        3 => put_number(&mut message, KEY_LENGTH_OFFSET, huge),
        4 => {
            let argument_length_offset = message.len() - 8;
            put_number(&mut message, argument_length_offset, huge);
        }
        // Messages without their last fragments.
        5 => {
            message = (0..32_u32).flat_map(first_fragment).collect();
        }
        // Not GIOP.
        _ => message = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
    }
    send(stream, &message, 1, state).await?;
    timeout(INVALID_MESSAGE_WAIT, read_until_closed(stream)).await.unwrap_or(Ok(()))
}

/// Returns the first fragment of a request, whose header announces further fragments.
fn first_fragment(id: u32) -> Vec<u8> {
    let mut message = b"GIOP\x01\x02\x02\x00\x00\x00\x04\x00".to_vec();
    message.extend(id.to_be_bytes());
    message.resize(12 + (4 << 8), 0);
    message
}

/// Sends CancelRequests for calls that were never made, and LocateRequests for objects that do not exist.
/// Half of the peers read the replies.
async fn flood_cancels(number: u32, stream: &mut TcpStream, state: &AttackState) -> io::Result<()> {
    let cancel = b"GIOP\x01\x00\x00\x02\x00\x00\x00\x04\x00\x00\x00\x07";
    let locate = b"GIOP\x01\x00\x00\x03\x00\x00\x00\x0c\x00\x00\x00\x07\x00\x00\x00\x04none";
    let burst = [cancel.as_slice(), locate.as_slice()].concat().repeat(BURST_MESSAGES / 2);
    let mut replies = vec![0; 16 << 10];
    loop {
        state.pace.wait_for_turn().await;
        send(stream, &burst, BURST_MESSAGES, state).await?;
        while number.is_multiple_of(2) {
            match stream.try_read(&mut replies) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
    }
}

/// Closes the connection immediately, holds it for a short time, or also sends the start of a TLS handshake.
async fn open_connection(turn: u32, stream: &mut TcpStream, state: &AttackState) -> io::Result<()> {
    match turn % 3 {
        0 => return Ok(()),
        1 => {}
        _ => send(stream, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00", 1, state).await?,
    }
    timeout(IDLE_CONNECTION_TIME, read_until_closed(stream)).await.unwrap_or(Ok(()))
}

/// Returns a valid request with an argument of `size` bytes.
fn request(size: usize) -> Vec<u8> {
    giop::request(TARGET.as_bytes(), b"echo\0", &vec![0x41; size])
}

fn put_number(message: &mut [u8], offset: usize, number: u32) {
    if let Some(field) = message.get_mut(offset..offset + 4) {
        field.copy_from_slice(&number.to_le_bytes());
    }
}

async fn send(stream: &mut TcpStream, bytes: &[u8], messages: usize, state: &AttackState) -> io::Result<()> {
    stream.write_all(bytes).await?;
    state.counters.count_sent(messages, bytes.len());
    Ok(())
}

/// Reads and discards data until the server closes the connection, and returns this as an error.
async fn read_until_closed(stream: &mut TcpStream) -> io::Result<()> {
    let mut reply = [0; 1024];
    while stream.read(&mut reply).await? > 0 {}
    Err(io::ErrorKind::UnexpectedEof.into())
}
