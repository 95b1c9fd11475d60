//! The test `series` over plain sockets: the client's side and the server's side.
//!
//! A message's payload is its sending time (8 bytes), its number (4), the number of pattern bytes (4), and
//! the pattern bytes. The reply to `CALL` is the arrival time (8). The reply to `ARRIVALS` is the number of
//! messages with wrong contents (4), 4 bytes of padding, and 24 bytes for each message: sending time, arrival
//! time, number, padding.

use std::cell::RefCell;
use std::future::{Future, ready};
use std::io;

use anyhow::ensure;

use super::client::{Client, invalid};
use super::conn::{HEADER_SIZE, Header, kind, send};
use crate::series::{self, Arrival, ArrivalLog, Arrivals, SeriesCalls, now};
use crate::test_loops::pattern;
use crate::work::{CallMode, MessageKind, SeriesOptions};

/// Size of the fields before the pattern bytes of a payload.
const PAYLOAD_HEAD_SIZE: usize = 16;
const ARRIVAL_SIZE: usize = 24;

pub(super) struct Series<'c, 's> {
    client: &'c Client<'s>,
    mode: CallMode,
    /// The payload of every message; only its time and number change.
    payload: RefCell<Vec<u8>>,
}

impl<'c, 's> Series<'c, 's> {
    pub(super) fn new(client: &'c Client<'s>, options: SeriesOptions) -> anyhow::Result<Series<'c, 's>> {
        ensure!(options.kind == MessageKind::Octets, "sockets take --kind octets, not {}", options.kind);
        let len = options.elements();
        let mut payload = vec![0; PAYLOAD_HEAD_SIZE];
        payload.extend((0..len as usize).map(pattern));
        put(&mut payload, 12, &len.to_ne_bytes());
        Ok(Series { client, mode: options.mode, payload: RefCell::new(payload) })
    }

    fn message(&self, sent: u64, number: u32) -> io::Result<Option<u64>> {
        let mut payload = self.payload.borrow_mut();
        put(&mut payload, 0, &sent.to_ne_bytes());
        put(&mut payload, 8, &number.to_ne_bytes());
        if self.mode == CallMode::Oneway {
            let header: [u8; HEADER_SIZE] = Header { kind: kind::SEND, len: payload.len() as u32 }.to_bytes();
            send(self.client.stream, &header, &payload)?;
            return Ok(None);
        }
        let mut arrived = [0; 8];
        self.client.call(kind::CALL, &payload, &mut arrived)?;
        Ok(Some(u64::from_ne_bytes(arrived)))
    }

    fn arrivals(&self) -> io::Result<Arrivals> {
        let reply = self.client.query(kind::ARRIVALS)?;
        let (head, rest) = reply.split_at_checked(8).ok_or_else(|| invalid("a short reply".to_owned()))?;
        let arrival = |entry: &[u8]| {
            Some(Arrival {
                sent: read_u64(entry, 0)?,
                arrived: read_u64(entry, 8)?,
                number: read_u32(entry, 16)?,
            })
        };
        let all = rest.chunks(ARRIVAL_SIZE).filter_map(arrival).collect();
        Ok(Arrivals { all, wrong_count: read_u32(head, 0).unwrap_or_default() })
    }
}

// All operations block, so the futures are ready from the start.
impl SeriesCalls for Series<'_, '_> {
    fn begin(&self, elements: u32) -> impl Future<Output = anyhow::Result<()>> + Send {
        ready(self.client.call(kind::BEGIN, &elements.to_ne_bytes(), &mut []).map_err(Into::into))
    }

    fn message(&self, sent: u64, number: u32) -> impl Future<Output = anyhow::Result<Option<u64>>> + Send {
        ready(self.message(sent, number).map_err(Into::into))
    }

    fn arrivals(&self) -> impl Future<Output = anyhow::Result<Arrivals>> + Send {
        ready(self.arrivals().map_err(Into::into))
    }

    fn wait(&self, until: u64) -> impl Future<Output = ()> + Send {
        series::sleep_until(until);
        ready(())
    }
}

pub(super) fn record_message(log: &mut ArrivalLog, payload: &[u8]) -> io::Result<u64> {
    let arrived = now();
    let head =
        (read_u64(payload, 0), read_u32(payload, 8), read_u32(payload, 12), payload.get(PAYLOAD_HEAD_SIZE..));
    let (Some(sent), Some(number), Some(len), Some(contents)) = head else {
        return Err(invalid(format!("a series message of {} bytes is too short", payload.len())));
    };
    log.record(Arrival { sent, arrived, number }, |elements| {
        let is_pattern = || contents.iter().enumerate().all(|(i, byte)| *byte == pattern(i));
        len as usize == elements && contents.len() == elements && is_pattern()
    });
    Ok(arrived)
}

/// Returns the reply to a `CALL`, `BEGIN` or `ARRIVALS`.
pub(super) fn reply(kind: u32, log: &mut ArrivalLog, payload: &[u8]) -> io::Result<Vec<u8>> {
    match kind {
        kind::CALL => Ok(record_message(log, payload)?.to_ne_bytes().to_vec()),
        kind::BEGIN => {
            let elements = read_u32(payload, 0);
            log.begin(elements.ok_or_else(|| invalid("BEGIN without the number of elements".to_owned()))?);
            Ok(Vec::new())
        }
        _ => {
            let Arrivals { all, wrong_count } = log.arrivals();
            let mut reply = Vec::with_capacity(8 + all.len() * ARRIVAL_SIZE);
            reply.extend(wrong_count.to_ne_bytes());
            reply.extend([0; 4]);
            for arrival in all {
                reply.extend(arrival.sent.to_ne_bytes());
                reply.extend(arrival.arrived.to_ne_bytes());
                reply.extend(arrival.number.to_ne_bytes());
                reply.extend([0; 4]);
            }
            Ok(reply)
        }
    }
}

fn put(payload: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(target) = payload.get_mut(at..at + bytes.len()) {
        target.copy_from_slice(bytes);
    }
}

fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_contents_are_counted_and_short_messages_refused() {
        let message = |contents: &[u8]| {
            let mut payload = vec![7; 12];
            payload.extend((contents.len() as u32).to_ne_bytes());
            payload.extend(contents);
            payload
        };
        let mut log = ArrivalLog::default();
        assert!(reply(kind::BEGIN, &mut log, &3u32.to_ne_bytes()).unwrap().is_empty());
        for contents in [&b"abc"[..], b"abd", b"abcd"] {
            record_message(&mut log, &message(contents)).unwrap();
        }
        let arrivals = reply(kind::ARRIVALS, &mut log, &[]).unwrap();
        assert_eq!((arrivals.len(), read_u32(&arrivals, 0)), (8 + 3 * ARRIVAL_SIZE, Some(2)));
        assert!(record_message(&mut log, &[0; 15]).is_err() && reply(kind::BEGIN, &mut log, &[]).is_err());
    }
}
