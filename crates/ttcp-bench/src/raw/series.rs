//! The series of the baseline: both sides of it.
//!
//! A message's payload is its sending time (8 bytes), its number (4), the number of pattern bytes (4), and
//! the pattern bytes. A call is answered with its arrival time (8). The arrivals are a count of messages with
//! wrong contents (4), 4 bytes of padding, and 24 bytes for each message: sent, arrived, number, padding.

use std::cell::RefCell;
use std::future::{Future, ready};
use std::io;

use anyhow::ensure;

use super::client::{Client, invalid};
use super::conn::{HEADER, Header, kind, send};
use crate::series::{self, Arrival, ArrivalLog, Arrivals, Calls, now};
use crate::test_loops::pattern;
use crate::work::{CallMode, MessageKind, SeriesOptions};

/// Size of the fields before the pattern bytes of a message.
const HEAD: usize = 16;
/// Size of an arrival, bytes.
const ARRIVAL: usize = 24;

/// The client's side.
pub(super) struct Series<'c, 's> {
    client: &'c Client<'s>,
    mode: CallMode,
    /// The message, whose head changes each time.
    payload: RefCell<Vec<u8>>,
}

impl<'c, 's> Series<'c, 's> {
    /// Returns the client's side. Sockets only send bytes.
    ///
    /// # Errors
    /// Another kind is requested.
    pub(super) fn new(client: &'c Client<'s>, options: SeriesOptions) -> anyhow::Result<Series<'c, 's>> {
        ensure!(options.kind == MessageKind::Octets, "sockets take --kind octets, not {}", options.kind);
        let octets = options.elements();
        let mut payload = vec![0; HEAD];
        payload.extend((0..octets as usize).map(pattern));
        put(&mut payload, 12, &octets.to_ne_bytes());
        Ok(Series { client, mode: options.mode, payload: RefCell::new(payload) })
    }
}

impl Series<'_, '_> {
    fn message(&self, sent: u64, number: u32) -> io::Result<Option<u64>> {
        let mut payload = self.payload.borrow_mut();
        put(&mut payload, 0, &sent.to_ne_bytes());
        put(&mut payload, 8, &number.to_ne_bytes());
        if self.mode == CallMode::Oneway {
            let header: [u8; HEADER] = Header { kind: kind::SEND, len: payload.len() as u32 }.to_bytes();
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
        let arrival = |one: &[u8]| {
            Some(Arrival { sent: long(one, 0)?, arrived: long(one, 8)?, number: word(one, 16)? })
        };
        let all = rest.chunks(ARRIVAL).filter_map(arrival).collect();
        Ok(Arrivals { all, bad: word(head, 0).unwrap_or_default() })
    }
}

// All operations block, so the futures are ready from the start.
impl Calls for Series<'_, '_> {
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

/// Records a received message.
pub(super) fn note(notes: &mut ArrivalLog, payload: &[u8]) -> io::Result<u64> {
    let arrived = now();
    let head = (long(payload, 0), word(payload, 8), word(payload, 12), payload.get(HEAD..));
    let (Some(sent), Some(number), Some(length), Some(octets)) = head else {
        return Err(invalid(format!("a message of {} bytes", payload.len())));
    };
    notes.record(Arrival { sent, arrived, number }, |elements| {
        let as_sent = || octets.iter().enumerate().all(|(i, octet)| *octet == pattern(i));
        length as usize == elements && octets.len() == elements && as_sent()
    });
    Ok(arrived)
}

/// Returns the reply to a request of a series.
pub(super) fn reply(kind: u32, notes: &mut ArrivalLog, payload: &[u8]) -> io::Result<Vec<u8>> {
    match kind {
        kind::CALL => Ok(note(notes, payload)?.to_ne_bytes().to_vec()),
        kind::BEGIN => {
            notes.begin(word(payload, 0).ok_or_else(|| invalid("a beginning of nothing".to_owned()))?);
            Ok(Vec::new())
        }
        _ => {
            let Arrivals { all, bad } = notes.arrivals();
            let mut reply = Vec::with_capacity(8 + all.len() * ARRIVAL);
            reply.extend(bad.to_ne_bytes());
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
    if let Some(place) = payload.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_contents_are_seen_and_short_messages_refused() {
        let message = |octets: &[u8]| {
            let mut payload = vec![7; 12];
            payload.extend((octets.len() as u32).to_ne_bytes());
            payload.extend(octets);
            payload
        };
        let mut notes = ArrivalLog::default();
        assert!(reply(kind::BEGIN, &mut notes, &3u32.to_ne_bytes()).unwrap().is_empty());
        for octets in [&b"abc"[..], b"abd", b"abcd"] {
            note(&mut notes, &message(octets)).unwrap();
        }
        let told = reply(kind::ARRIVALS, &mut notes, &[]).unwrap();
        assert_eq!((told.len(), word(&told, 0)), (8 + 3 * ARRIVAL, Some(2)));
        assert!(note(&mut notes, &[0; 15]).is_err() && reply(kind::BEGIN, &mut notes, &[]).is_err());
    }
}
