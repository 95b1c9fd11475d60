//! Reassembly of TCP streams: in order, each byte once, with gaps reported.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use super::packets::Segment;

/// Maximum number of connections that are followed. When it is exceeded, the one that has been idle longest
/// is evicted.
const MAX_CONNECTIONS: usize = 4096;
/// Maximum bytes and segments of one side that are buffered out of order. More mean that the missing segments
/// were never captured.
const MAX_WAITING: usize = 1 << 20;
const MAX_WAITING_SEGMENTS: usize = 1024;
/// Maximum bytes that are buffered in all connections.
const MAX_WAITING_IN_ALL: usize = 256 << 20;

/// An event of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Happened {
    /// The connection was seen for the first time; `whole` if from its start.
    Opened { client: SocketAddr, server: SocketAddr, whole: bool },
    /// The next bytes of a side.
    Octets { from_client: bool, octets: Bytes },
    /// Bytes of a side that are not in the capture.
    Lost { from_client: bool, octets: u64 },
    /// The connection ended.
    Closed,
}

/// Counters of corrected and uncorrectable problems.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub(super) struct TcpCounts {
    /// Segments whose bytes were all seen before.
    pub(super) repeated: u64,
    /// Segments that arrived before earlier ones.
    pub(super) out_of_order: u64,
    /// Segments that partly overlap with earlier ones, with the same or other bytes.
    pub(super) overlapping: u64,
    /// Bytes that were never seen.
    pub(super) lost: u64,
    /// Connections that were evicted because there were too many.
    pub(super) given_up: u64,
}

/// All connections of a capture.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    connections: HashMap<(SocketAddr, SocketAddr), Connection>,
    next: u64,
    /// Number of bytes that are buffered out of order.
    waiting: usize,
    pub(super) counts: TcpCounts,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    client: SocketAddr,
    last: Duration,
    /// The side of the client, then that of the server.
    ways: [Way; 2],
}

/// One side of a connection.
#[derive(Debug, Default)]
struct Way {
    /// The position of the next byte in the stream, and its sequence number; `None` if no segment was seen.
    next: Option<(u64, u32)>,
    /// Segments after a gap, by their position.
    waiting: BTreeMap<u64, Bytes>,
    waiting_octets: usize,
    /// The position up to which the other side has acknowledged all bytes.
    acknowledged: u64,
    ended: bool,
}

impl Assembler {
    /// Handles a segment. Events are reported with the connection's number.
    pub(super) fn segment(&mut self, segment: &Segment<'_>, tell: &mut impl FnMut(u64, Happened)) {
        let ends =
            if segment.from <= segment.to { (segment.from, segment.to) } else { (segment.to, segment.from) };
        let begins = segment.syn && segment.acknowledged.is_none();
        if begins && let Some(old) = self.connections.get(&ends) {
            // Either the addresses are reused, or the packet is a duplicate.
            let way = &old.ways[usize::from(old.client != segment.from)];
            let same = way.next.is_some_and(|(place, number)| {
                place < MAX_WAITING as u64
                    && number.wrapping_sub(place as u32) == segment.sequence.wrapping_add(1)
            });
            if same {
                self.counts.repeated += 1;
                return;
            }
            if let Some(old) = self.connections.remove(&ends) {
                self.waiting -= old.waiting();
                old.finish(&mut self.counts, tell);
            }
        }
        if !self.connections.contains_key(&ends) {
            if segment.rst || (segment.octets.is_empty() && !segment.syn) {
                return;
            }
            self.make_room(tell);
            // If the start was not captured, the first sender is not necessarily the client. The messages
            // will show it.
            let answer = segment.syn && !begins;
            let (client, server) =
                if answer { (segment.to, segment.from) } else { (segment.from, segment.to) };
            let connection =
                Connection { number: self.next, client, last: segment.time, ways: Default::default() };
            self.next += 1;
            tell(connection.number, Happened::Opened { client, server, whole: segment.syn });
            self.connections.insert(ends, connection);
        }
        let Some(connection) = self.connections.get_mut(&ends) else { return };
        connection.last = segment.time;
        let counts = &mut self.counts;
        let from_client = segment.from == connection.client;
        let number = connection.number;
        let before = connection.waiting();
        let [client, server] = &mut connection.ways;
        let (own, other) = if from_client { (client, server) } else { (server, client) };
        let told = |from_client: bool| {
            move |happened: Streamed| match happened {
                Streamed::Octets(octets) => (number, Happened::Octets { from_client, octets }),
                Streamed::Lost(octets) => (number, Happened::Lost { from_client, octets }),
            }
        };
        // The acknowledgement of the other side comes first, because the bytes may answer a request in a gap
        // there.
        if let Some(acknowledged) = segment.acknowledged {
            let other_told = told(!from_client);
            let answers = !segment.octets.is_empty();
            other.acknowledge(acknowledged, answers, counts, &mut |happened| {
                let (number, happened) = other_told(happened);
                tell(number, happened);
            });
        }
        let own_told = told(from_client);
        let mut own_tell = |happened| {
            let (number, happened) = own_told(happened);
            tell(number, happened);
        };
        own.take(segment, counts, &mut own_tell);
        if self.waiting + own.waiting_octets > MAX_WAITING_IN_ALL {
            while !own.waiting.is_empty() {
                own.skip(counts, &mut own_tell);
            }
        }
        self.waiting = self.waiting - before + connection.waiting();
        let over = segment.rst || connection.ways.iter().all(|way| way.ended && way.waiting.is_empty());
        if over && let Some(connection) = self.connections.remove(&ends) {
            self.waiting -= connection.waiting();
            connection.finish(&mut self.counts, tell);
        }
    }

    /// Handles the end of the capture.
    pub(super) fn finish(&mut self, tell: &mut impl FnMut(u64, Happened)) {
        let mut left: Vec<Connection> = self.connections.drain().map(|(_, connection)| connection).collect();
        left.sort_by_key(|connection| connection.number);
        self.waiting = 0;
        for connection in left {
            connection.finish(&mut self.counts, tell);
        }
    }

    fn make_room(&mut self, tell: &mut impl FnMut(u64, Happened)) {
        if self.connections.len() < MAX_CONNECTIONS {
            return;
        }
        let oldest =
            self.connections.iter().min_by_key(|(_, connection)| (connection.last, connection.number));
        if let Some(ends) = oldest.map(|(ends, _)| *ends)
            && let Some(connection) = self.connections.remove(&ends)
        {
            self.counts.given_up += 1;
            self.waiting -= connection.waiting();
            connection.finish(&mut self.counts, tell);
        }
    }
}

impl Connection {
    fn waiting(&self) -> usize {
        self.ways.iter().map(|way| way.waiting_octets).sum()
    }

    fn finish(mut self, counts: &mut TcpCounts, tell: &mut impl FnMut(u64, Happened)) {
        for (at, way) in self.ways.iter_mut().enumerate() {
            let from_client = at == 0;
            while !way.waiting.is_empty() {
                way.skip(counts, &mut |happened| {
                    let happened = match happened {
                        Streamed::Octets(octets) => Happened::Octets { from_client, octets },
                        Streamed::Lost(octets) => Happened::Lost { from_client, octets },
                    };
                    tell(self.number, happened);
                });
            }
        }
        tell(self.number, Happened::Closed);
    }
}

enum Streamed {
    Octets(Bytes),
    Lost(u64),
}

impl Way {
    fn take(&mut self, segment: &Segment<'_>, counts: &mut TcpCounts, tell: &mut impl FnMut(Streamed)) {
        if segment.syn {
            if self.next.is_none() {
                self.next = Some((0, segment.sequence.wrapping_add(1)));
            }
            return;
        }
        self.ended |= segment.fin || segment.rst;
        if segment.octets.is_empty() {
            return;
        }
        let (next, number) = *self.next.get_or_insert((0, segment.sequence));
        // The signed distance from the next expected sequence number.
        let distance = segment.sequence.wrapping_sub(number) as i32;
        let mut octets = segment.octets;
        let place = match u64::try_from(distance) {
            Ok(ahead) => next + ahead,
            Err(_) => {
                let known = distance.unsigned_abs() as usize;
                let Some(rest) = octets.get(known..).filter(|rest| !rest.is_empty()) else {
                    counts.repeated += 1;
                    return;
                };
                counts.overlapping += 1;
                octets = rest;
                next
            }
        };
        if place == next {
            self.advance(octets.len());
            tell(Streamed::Octets(Bytes::copy_from_slice(octets)));
            self.release(counts, tell);
            return;
        }
        if let Some(before) = self.waiting.get(&place)
            && before.len() >= octets.len()
        {
            counts.repeated += 1;
            return;
        }
        counts.out_of_order += 1;
        self.waiting_octets += octets.len();
        if let Some(shorter) = self.waiting.insert(place, Bytes::copy_from_slice(octets)) {
            self.waiting_octets -= shorter.len();
            counts.overlapping += 1;
        }
        while self.waiting_octets > MAX_WAITING || self.waiting.len() > MAX_WAITING_SEGMENTS {
            self.skip(counts, tell);
        }
        self.miss(false, counts, tell);
    }

    /// Handles an acknowledgement: missing bytes before this number were not captured.
    fn acknowledge(
        &mut self,
        number: u32,
        answers: bool,
        counts: &mut TcpCounts,
        tell: &mut impl FnMut(Streamed),
    ) {
        let Some((next, expected)) = self.next else { return };
        if let Ok(ahead) = u64::try_from(number.wrapping_sub(expected) as i32) {
            self.acknowledged = self.acknowledged.max(next + ahead);
        }
        self.miss(answers, counts, tell);
    }

    /// Skips a gap that the other side has acknowledged, after an answer or if more than one segment follows
    /// the gap. In captures of several queues, an acknowledgement alone can precede the segment that it
    /// acknowledges.
    fn miss(&mut self, answers: bool, counts: &mut TcpCounts, tell: &mut impl FnMut(Streamed)) {
        while let Some((first, _)) = self.waiting.first_key_value()
            && *first <= self.acknowledged
            && (answers || self.waiting.len() >= 2)
        {
            self.skip(counts, tell);
        }
    }

    /// Gives up the missing bytes before the first buffered segment.
    fn skip(&mut self, counts: &mut TcpCounts, tell: &mut impl FnMut(Streamed)) {
        let (Some((first, _)), Some((next, number))) = (self.waiting.first_key_value(), self.next) else {
            return;
        };
        let missing = first.saturating_sub(next);
        counts.lost += missing;
        self.next = Some((next + missing, number.wrapping_add(missing as u32)));
        tell(Streamed::Lost(missing));
        self.release(counts, tell);
    }

    /// Reports buffered bytes that are now in order.
    fn release(&mut self, counts: &mut TcpCounts, tell: &mut impl FnMut(Streamed)) {
        while let (Some(entry), Some((next, _))) = (self.waiting.first_entry(), self.next)
            && *entry.key() <= next
        {
            let (place, octets) = entry.remove_entry();
            self.waiting_octets -= octets.len();
            let known = usize::try_from(next - place).unwrap_or(usize::MAX);
            if known >= octets.len() {
                counts.repeated += 1;
                continue;
            }
            counts.overlapping += u64::from(known > 0);
            let rest = octets.slice(known..);
            self.advance(rest.len());
            tell(Streamed::Octets(rest));
        }
    }

    fn advance(&mut self, octets: usize) {
        if let Some((place, number)) = &mut self.next {
            *place += octets as u64;
            *number = number.wrapping_add(octets as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the events of a client's segments, given as (number, bytes).
    fn stream(segments: &[(u32, &[u8])]) -> (Vec<Result<Vec<u8>, u64>>, TcpCounts) {
        let mut all = Assembler::default();
        let mut seen: Vec<Result<Vec<u8>, u64>> = Vec::new();
        let mut tell = |_: u64, happened: Happened| match happened {
            Happened::Octets { octets, .. } => match seen.last_mut() {
                Some(Ok(last)) => last.extend_from_slice(&octets),
                _ => seen.push(Ok(octets.to_vec())),
            },
            Happened::Lost { octets, .. } => seen.push(Err(octets)),
            Happened::Opened { .. } | Happened::Closed => {}
        };
        let blank = Segment {
            time: Duration::ZERO,
            from: "10.0.0.1:1000".parse().unwrap(),
            to: "10.0.0.2:2809".parse().unwrap(),
            sequence: u32::MAX - 1,
            acknowledged: None,
            syn: true,
            fin: false,
            rst: false,
            octets: &[],
        };
        all.segment(&blank, &mut tell);
        for (place, octets) in segments {
            let sequence = u32::MAX.wrapping_add(*place);
            all.segment(&Segment { sequence, syn: false, octets, ..blank }, &mut tell);
        }
        all.finish(&mut tell);
        (seen, all.counts)
    }

    #[test]
    fn segments_come_out_in_order_and_once() {
        let whole = [Ok(b"abcdefgh".to_vec())];
        assert_eq!(stream(&[(0, b"abcd"), (4, b"efgh")]).0, whole);
        let (seen, counts) = stream(&[(4, b"ef"), (6, b"gh"), (0, b"abcd"), (0, b"abcd")]);
        assert_eq!((seen, counts.out_of_order, counts.repeated), (whole.to_vec(), 2, 1));
        // The bytes that arrive first count, as in most systems.
        let (seen, counts) = stream(&[(0, b"abcd"), (2, b"XXefgh")]);
        assert_eq!((seen, counts.overlapping), (whole.to_vec(), 1));
        let (seen, _) = stream(&[(2, b"cdef"), (4, b"efgh"), (0, b"abcd")]);
        assert_eq!(seen, whole);
    }

    #[test]
    fn what_never_came_is_told() {
        let (seen, counts) = stream(&[(0, b"ab"), (5, b"fg"), (9, b"j")]);
        assert_eq!(seen, [Ok(b"ab".to_vec()), Err(3), Ok(b"fg".to_vec()), Err(2), Ok(b"j".to_vec())]);
        assert_eq!(counts.lost, 5);
    }

    #[test]
    fn what_waits_has_a_bound() {
        let octets = vec![7; 4096];
        let segments: Vec<(u32, &[u8])> = (1..1000).map(|n| (n * 5000, &*octets)).collect();
        let (seen, counts) = stream(&segments);
        assert!(seen.len() > 900 && counts.lost > 0);
    }
}
