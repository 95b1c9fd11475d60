//! The test `series` over plain sockets, on the client's and on the server's side.
//!
//! A message's payload is its sending time (8 bytes), its number (4 bytes), the number of pattern bytes (4
//! bytes), and the pattern bytes. The reply to a `SERIES_CALL` is the arrival time (8 bytes). The
//! reply to `ARRIVALS` is the number of messages with wrong contents (4 bytes), 4 bytes of padding, and 24
//! bytes for each message: sending time, arrival time, number, padding.

use std::cell::RefCell;
use std::future::{Future, ready};
use std::io;

use anyhow::ensure;

use super::client::{Client, invalid};
use super::conn::{Header, kind, send};
use crate::series::{self, Arrival, ArrivalLog, Arrivals, SeriesCalls, now};
use crate::test_loops::pattern;
use crate::work::{CallMode, MessageKind, SeriesOptions};

/// Size of the fields before the pattern bytes of a payload.
const PAYLOAD_HEAD_BYTES: usize = 16;
/// Size of the entry of one message in the reply to `ARRIVALS`.
const ARRIVAL_BYTES: usize = 24;

pub(super) struct Series<'c, 's> {
    client: &'c Client<'s>,
    mode: CallMode,
    /// The payload of every message; only its time and number change.
    payload: RefCell<Vec<u8>>,
}

impl<'c, 's> Series<'c, 's> {
    pub(super) fn new(client: &'c Client<'s>, options: SeriesOptions) -> anyhow::Result<Series<'c, 's>> {
        let kind = options.kind;
        ensure!(kind == MessageKind::Octets, "plain sockets support only --kind octets, not {kind}");
        let len = options.elements();
        let mut payload = vec![0; PAYLOAD_HEAD_BYTES];
        payload.extend((0..len as usize).map(pattern));
        put(&mut payload, 12, &len.to_ne_bytes());
        Ok(Series { client, mode: options.mode, payload: RefCell::new(payload) })
    }

    fn send_blocking(&self, sent: u64, number: u32) -> io::Result<Option<u64>> {
        let mut payload = self.payload.borrow_mut();
        put(&mut payload, 0, &sent.to_ne_bytes());
        put(&mut payload, 8, &number.to_ne_bytes());
        if self.mode == CallMode::Oneway {
            let header = Header { kind: kind::SERIES_ONEWAY, len: payload.len() as u32 };
            send(self.client.stream, &header.to_bytes(), &payload)?;
            return Ok(None);
        }
        let mut arrived = [0; 8];
        self.client.call(kind::SERIES_CALL, &payload, &mut arrived)?;
        Ok(Some(u64::from_ne_bytes(arrived)))
    }

    fn query_arrivals(&self) -> io::Result<Arrivals> {
        let reply = self.client.query(kind::ARRIVALS)?;
        let too_short = || invalid("the reply is too short".to_owned());
        let (head, rest) = reply.split_at_checked(8).ok_or_else(too_short)?;
        let arrival = |entry: &[u8]| {
            Some(Arrival {
                sent: read_u64(entry, 0)?,
                arrived: read_u64(entry, 8)?,
                number: read_u32(entry, 16)?,
            })
        };
        let all = rest.chunks(ARRIVAL_BYTES).filter_map(arrival).collect();
        Ok(Arrivals { all, wrong_count: read_u32(head, 0).unwrap_or_default() })
    }
}

// All operations block, so the returned futures are already complete.
impl SeriesCalls for Series<'_, '_> {
    fn begin(&self, elements: u32) -> impl Future<Output = anyhow::Result<()>> + Send {
        ready(self.client.call(kind::BEGIN, &elements.to_ne_bytes(), &mut []).map_err(Into::into))
    }

    fn send(&self, sent: u64, number: u32) -> impl Future<Output = anyhow::Result<Option<u64>>> + Send {
        ready(self.send_blocking(sent, number).map_err(Into::into))
    }

    fn arrivals(&self) -> impl Future<Output = anyhow::Result<Arrivals>> + Send {
        ready(self.query_arrivals().map_err(Into::into))
    }

    fn wait_until(&self, time: u64) -> impl Future<Output = ()> + Send {
        series::sleep_until(time);
        ready(())
    }
}

/// Records a received message of a series, and returns its arrival time.
pub(super) fn record_message(log: &mut ArrivalLog, payload: &[u8]) -> io::Result<u64> {
    let arrived = now();
    let contents = payload.get(PAYLOAD_HEAD_BYTES..);
    let head = (read_u64(payload, 0), read_u32(payload, 8), read_u32(payload, 12), contents);
    let (Some(sent), Some(number), Some(len), Some(contents)) = head else {
        return Err(invalid(format!("a message of a series is too short: {} bytes", payload.len())));
    };
    log.record(Arrival { sent, arrived, number }, |elements| {
        let is_pattern = || contents.iter().enumerate().all(|(i, byte)| *byte == pattern(i));
        len as usize == elements && contents.len() == elements && is_pattern()
    });
    Ok(arrived)
}

/// Returns the payload of the reply to a message of kind `SERIES_CALL`, `BEGIN` or `ARRIVALS`.
pub(super) fn reply(kind: u32, log: &mut ArrivalLog, payload: &[u8]) -> io::Result<Vec<u8>> {
    match kind {
        kind::SERIES_CALL => Ok(record_message(log, payload)?.to_ne_bytes().to_vec()),
        kind::BEGIN => {
            let elements = read_u32(payload, 0);
            log.begin(elements.ok_or_else(|| invalid("BEGIN has no number of elements".to_owned()))?);
            Ok(Vec::new())
        }
        _ => {
            let Arrivals { all, wrong_count } = log.arrivals();
            let mut reply = Vec::with_capacity(8 + all.len() * ARRIVAL_BYTES);
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
    fn wrong_contents_are_counted_and_short_messages_are_errors() {
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
        assert_eq!((arrivals.len(), read_u32(&arrivals, 0)), (8 + 3 * ARRIVAL_BYTES, Some(2)));
        assert!(record_message(&mut log, &[0; 15]).is_err() && reply(kind::BEGIN, &mut log, &[]).is_err());
    }
}
