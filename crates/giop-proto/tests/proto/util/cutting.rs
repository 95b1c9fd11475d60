//! Machines that send large messages in fragments, and the messages that they send.

use std::io::IoSlice;
use std::sync::Arc;

use giop_codec::giop::MessageHeader;
use giop_proto::outbox::MAX_SLICES;
use giop_proto::{BufferPool, Config, Connection, Limits, Role};

use super::{Cut, Pair, Side};

/// Returns a pair in which both sides send in fragments of this size in bytes.
pub fn pair_cutting(cut: Cut, size: usize) -> Pair {
    let pool = Arc::new(BufferPool::new(64 << 20));
    let config = |role| {
        let mut config = Config::new(role, Arc::new(Limits::default()), Arc::clone(&pool));
        config.fragment_size = Some(size);
        config
    };
    Pair::with_configs(cut, config(Role::Client), config(Role::Server))
}

/// Writes up to `most` bytes to a socket that accepts no more.
pub fn write_some(conn: &mut Connection, most: usize, now: std::time::Instant) -> Vec<u8> {
    let mut written = Vec::new();
    while written.len() < most {
        let Some(mut transmit) = conn.take_transmit() else { break };
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let used = transmit.io_slices(&mut slices);
        let octets: Vec<u8> = slices[..used].iter().flat_map(|slice| slice.iter().copied()).collect();
        let n = octets.len().min(most - written.len());
        written.extend_from_slice(&octets[..n]);
        transmit.advance(n);
        conn.handle_written(transmit, now);
    }
    written
}

/// Writes all that is queued, and returns its messages.
pub fn write_all(side: &mut Side, now: std::time::Instant) -> Vec<Vec<u8>> {
    messages(&write_some(&mut side.conn, usize::MAX, now))
}

/// Returns the messages of a stream.
pub fn messages(mut stream: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while let Some(start) = stream.first_chunk() {
        let size = 12 + MessageHeader::decode(start).unwrap().size as usize;
        messages.push(stream[..size].to_vec());
        stream = &stream[size..];
    }
    assert!(stream.is_empty(), "half a message");
    messages
}

/// Makes a machine read bytes, and nothing else.
pub fn read(side: &mut Side, mut octets: &[u8], now: std::time::Instant) {
    while !octets.is_empty() {
        let mut buf = side.conn.take_read_buf();
        let mut rest = octets;
        for mut slice in buf.io_slices() {
            let (part, later) = rest.split_at(slice.len().min(rest.len()));
            slice[..part.len()].copy_from_slice(part);
            rest = later;
        }
        side.conn.handle_read(buf, octets.len() - rest.len(), now);
        octets = rest;
        side.poll();
    }
}
