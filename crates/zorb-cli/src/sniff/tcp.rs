//! Reassembly of TCP streams. The bytes and gaps of each side are emitted in order, and each byte only once.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use super::packets::Segment;

/// The maximum number of connections. A further connection evicts the one that has been idle longest.
const MAX_CONNECTIONS: usize = 4096;
/// The maximum number of bytes of one side that are buffered after a gap. If there are more, the gap is
/// skipped, because its segments were probably not captured.
const MAX_BUFFERED_BYTES: usize = 1 << 20;
/// The maximum number of segments of one side that are buffered after a gap.
const MAX_BUFFERED_SEGMENTS: usize = 1024;
const MAX_TOTAL_BUFFERED_BYTES: usize = 256 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConnectionEvent {
    /// The first captured segment of a connection. `from_start` is true if the segment opens the connection,
    /// so that no data precedes it.
    Opened {
        client: SocketAddr,
        server: SocketAddr,
        from_start: bool,
    },
    /// The next bytes that a side sent.
    Data {
        from_client: bool,
        data: Bytes,
    },
    /// A gap in the bytes that a side sent: the next `len` bytes are not in the capture.
    Lost {
        from_client: bool,
        len: u64,
    },
    Closed,
}

/// The numbers of problems in the streams. The field names are the JSON keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub(super) struct TcpCounts {
    /// Segments whose bytes were all captured before.
    pub(super) repeated: u64,
    pub(super) out_of_order: u64,
    /// Segments of which some bytes were captured before.
    pub(super) overlapping: u64,
    /// Bytes that are not in the capture.
    pub(super) lost: u64,
    /// Connections that were evicted because there were too many.
    pub(super) given_up: u64,
}

#[derive(Debug, Default)]
pub(super) struct Assembler {
    connections: HashMap<(SocketAddr, SocketAddr), Connection>,
    next_number: u64,
    buffered_bytes: usize,
    pub(super) counts: TcpCounts,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    client: SocketAddr,
    last_time: Duration,
    /// The client and the server.
    sides: [Side; 2],
}

#[derive(Debug, Default)]
struct Side {
    is_client: bool,
    /// The position in the stream and the sequence number of the next byte. `None` before the first segment.
    next: Option<(u64, u32)>,
    /// The segments after a gap, by their position.
    buffered: BTreeMap<u64, Bytes>,
    buffered_bytes: usize,
    /// The position up to which the other side has acknowledged all bytes.
    acknowledged: u64,
    has_ended: bool,
}

impl Assembler {
    /// Handles a segment. Calls `emit` with the number of the connection and each event.
    pub(super) fn handle_segment(
        &mut self,
        segment: &Segment<'_>,
        emit: &mut impl FnMut(u64, ConnectionEvent),
    ) {
        let addresses =
            if segment.from <= segment.to { (segment.from, segment.to) } else { (segment.to, segment.from) };
        let opens_connection = segment.syn && segment.acknowledged.is_none();
        if opens_connection && let Some(old) = self.connections.get(&addresses) {
            // The segment opens a new connection between the same addresses, or it is a duplicate.
            let side = &old.sides[usize::from(old.client != segment.from)];
            let is_duplicate = side.next.is_some_and(|(position, sequence)| {
                position < MAX_BUFFERED_BYTES as u64
                    && sequence.wrapping_sub(position as u32) == segment.sequence.wrapping_add(1)
            });
            if is_duplicate {
                self.counts.repeated += 1;
                return;
            }
            if let Some(old) = self.connections.remove(&addresses) {
                self.buffered_bytes -= old.buffered_bytes();
                old.finish(&mut self.counts, emit);
            }
        }
        if !self.connections.contains_key(&addresses) {
            if segment.rst || (segment.payload.is_empty() && !segment.syn) {
                return;
            }
            self.evict_if_full(emit);
            // If the start was not captured, the first sender is assumed to be the client.
            let is_from_server = segment.syn && !opens_connection;
            let (client, server) =
                if is_from_server { (segment.to, segment.from) } else { (segment.from, segment.to) };
            let number = self.next_number;
            let sides = [Side { is_client: true, ..Side::default() }, Side::default()];
            let connection = Connection { number, client, last_time: segment.time, sides };
            self.next_number += 1;
            emit(number, ConnectionEvent::Opened { client, server, from_start: segment.syn });
            self.connections.insert(addresses, connection);
        }
        let Some(connection) = self.connections.get_mut(&addresses) else { return };
        connection.last_time = segment.time;
        let counts = &mut self.counts;
        let from_client = segment.from == connection.client;
        let number = connection.number;
        let bytes_before = connection.buffered_bytes();
        let [client, server] = &mut connection.sides;
        let (own, other) = if from_client { (client, server) } else { (server, client) };
        let mut emit_event = |event: ConnectionEvent| emit(number, event);
        // The acknowledgement is handled before the data. It may skip a gap in the other side's data that
        // contained a request, to which this data is the reply.
        if let Some(acknowledged) = segment.acknowledged {
            let has_data = !segment.payload.is_empty();
            other.acknowledge(acknowledged, has_data, counts, &mut emit_event);
        }
        own.handle_segment(segment, counts, &mut emit_event);
        if self.buffered_bytes + own.buffered_bytes > MAX_TOTAL_BUFFERED_BYTES {
            while !own.buffered.is_empty() {
                own.skip_gap(counts, &mut emit_event);
            }
        }
        self.buffered_bytes = self.buffered_bytes - bytes_before + connection.buffered_bytes();
        let has_ended = |side: &Side| side.has_ended && side.buffered.is_empty();
        let is_closed = segment.rst || connection.sides.iter().all(has_ended);
        if is_closed && let Some(connection) = self.connections.remove(&addresses) {
            self.buffered_bytes -= connection.buffered_bytes();
            connection.finish(&mut self.counts, emit);
        }
    }

    pub(super) fn finish(&mut self, emit: &mut impl FnMut(u64, ConnectionEvent)) {
        let mut connections: Vec<Connection> =
            self.connections.drain().map(|(_, connection)| connection).collect();
        connections.sort_by_key(|connection| connection.number);
        self.buffered_bytes = 0;
        for connection in connections {
            connection.finish(&mut self.counts, emit);
        }
    }

    fn evict_if_full(&mut self, emit: &mut impl FnMut(u64, ConnectionEvent)) {
        if self.connections.len() < MAX_CONNECTIONS {
            return;
        }
        let oldest =
            self.connections.iter().min_by_key(|(_, connection)| (connection.last_time, connection.number));
        if let Some(addresses) = oldest.map(|(addresses, _)| *addresses)
            && let Some(connection) = self.connections.remove(&addresses)
        {
            self.counts.given_up += 1;
            self.buffered_bytes -= connection.buffered_bytes();
            connection.finish(&mut self.counts, emit);
        }
    }
}

impl Connection {
    fn buffered_bytes(&self) -> usize {
        self.sides.iter().map(|side| side.buffered_bytes).sum()
    }

    /// Emits all buffered data, and the end of the connection.
    fn finish(mut self, counts: &mut TcpCounts, emit: &mut impl FnMut(u64, ConnectionEvent)) {
        for side in &mut self.sides {
            while !side.buffered.is_empty() {
                side.skip_gap(counts, &mut |event| emit(self.number, event));
            }
        }
        emit(self.number, ConnectionEvent::Closed);
    }
}

impl Side {
    fn handle_segment(
        &mut self,
        segment: &Segment<'_>,
        counts: &mut TcpCounts,
        emit: &mut impl FnMut(ConnectionEvent),
    ) {
        if segment.syn {
            if self.next.is_none() {
                self.next = Some((0, segment.sequence.wrapping_add(1)));
            }
            return;
        }
        self.has_ended |= segment.fin || segment.rst;
        if segment.payload.is_empty() {
            return;
        }
        let (next, sequence) = *self.next.get_or_insert((0, segment.sequence));
        // The signed distance from the next expected sequence number.
        let distance = segment.sequence.wrapping_sub(sequence) as i32;
        let mut data = segment.payload;
        let position = match u64::try_from(distance) {
            Ok(ahead) => next + ahead,
            Err(_) => {
                let overlap = distance.unsigned_abs() as usize;
                let Some(rest) = data.get(overlap..).filter(|rest| !rest.is_empty()) else {
                    counts.repeated += 1;
                    return;
                };
                counts.overlapping += 1;
                data = rest;
                next
            }
        };
        if position == next {
            self.emit_data(Bytes::copy_from_slice(data), emit);
            self.emit_buffered(counts, emit);
            return;
        }
        if let Some(earlier) = self.buffered.get(&position)
            && earlier.len() >= data.len()
        {
            counts.repeated += 1;
            return;
        }
        counts.out_of_order += 1;
        self.buffered_bytes += data.len();
        if let Some(shorter) = self.buffered.insert(position, Bytes::copy_from_slice(data)) {
            self.buffered_bytes -= shorter.len();
            counts.overlapping += 1;
        }
        while self.buffered_bytes > MAX_BUFFERED_BYTES || self.buffered.len() > MAX_BUFFERED_SEGMENTS {
            self.skip_gap(counts, emit);
        }
        self.skip_acknowledged_gaps(false, counts, emit);
    }

    /// Handles an acknowledgement of all bytes before a sequence number, in a segment with or without data.
    fn acknowledge(
        &mut self,
        sequence: u32,
        has_data: bool,
        counts: &mut TcpCounts,
        emit: &mut impl FnMut(ConnectionEvent),
    ) {
        let Some((next, expected)) = self.next else { return };
        if let Ok(ahead) = u64::try_from(sequence.wrapping_sub(expected) as i32) {
            self.acknowledged = self.acknowledged.max(next + ahead);
        }
        self.skip_acknowledged_gaps(has_data, counts, emit);
    }

    /// Skips gaps whose bytes the other side has acknowledged, because these bytes were not captured.
    ///
    /// In captures of several network queues, an acknowledgement can precede the segment that it
    /// acknowledges. Therefore, a gap is skipped only if the acknowledgement came with data, or if at least
    /// two segments follow the gap.
    fn skip_acknowledged_gaps(
        &mut self,
        has_data: bool,
        counts: &mut TcpCounts,
        emit: &mut impl FnMut(ConnectionEvent),
    ) {
        while let Some((first, _)) = self.buffered.first_key_value()
            && *first <= self.acknowledged
            && (has_data || self.buffered.len() >= 2)
        {
            self.skip_gap(counts, emit);
        }
    }

    /// Emits the bytes before the first buffered segment as lost.
    fn skip_gap(&mut self, counts: &mut TcpCounts, emit: &mut impl FnMut(ConnectionEvent)) {
        let (Some((first, _)), Some((next, sequence))) = (self.buffered.first_key_value(), self.next) else {
            return;
        };
        let gap_len = first.saturating_sub(next);
        counts.lost += gap_len;
        self.next = Some((next + gap_len, sequence.wrapping_add(gap_len as u32)));
        emit(ConnectionEvent::Lost { from_client: self.is_client, len: gap_len });
        self.emit_buffered(counts, emit);
    }

    /// Emits buffered bytes that are not preceded by a gap any more.
    fn emit_buffered(&mut self, counts: &mut TcpCounts, emit: &mut impl FnMut(ConnectionEvent)) {
        while let (Some(entry), Some((next, _))) = (self.buffered.first_entry(), self.next)
            && *entry.key() <= next
        {
            let (position, data) = entry.remove_entry();
            self.buffered_bytes -= data.len();
            let overlap = usize::try_from(next - position).unwrap_or(usize::MAX);
            if overlap >= data.len() {
                counts.repeated += 1;
                continue;
            }
            counts.overlapping += u64::from(overlap > 0);
            self.emit_data(data.slice(overlap..), emit);
        }
    }

    fn emit_data(&mut self, data: Bytes, emit: &mut impl FnMut(ConnectionEvent)) {
        if let Some((position, sequence)) = &mut self.next {
            *position += data.len() as u64;
            *sequence = sequence.wrapping_add(data.len() as u32);
        }
        emit(ConnectionEvent::Data { from_client: self.is_client, data });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the data (`Ok`) and gaps (`Err`) for segments of a client, given as positions and data.
    fn reassemble(segments: &[(u32, &[u8])]) -> (Vec<Result<Vec<u8>, u64>>, TcpCounts) {
        let mut assembler = Assembler::default();
        let mut events: Vec<Result<Vec<u8>, u64>> = Vec::new();
        let mut emit = |_: u64, event: ConnectionEvent| match event {
            ConnectionEvent::Data { data, .. } => match events.last_mut() {
                Some(Ok(last)) => last.extend_from_slice(&data),
                _ => events.push(Ok(data.to_vec())),
            },
            ConnectionEvent::Lost { len, .. } => events.push(Err(len)),
            ConnectionEvent::Opened { .. } | ConnectionEvent::Closed => {}
        };
        let syn = Segment {
            time: Duration::ZERO,
            from: "10.0.0.1:1000".parse().unwrap(),
            to: "10.0.0.2:2809".parse().unwrap(),
            sequence: u32::MAX - 1,
            acknowledged: None,
            syn: true,
            fin: false,
            rst: false,
            payload: &[],
        };
        assembler.handle_segment(&syn, &mut emit);
        for (position, payload) in segments {
            let sequence = u32::MAX.wrapping_add(*position);
            assembler.handle_segment(&Segment { sequence, syn: false, payload, ..syn }, &mut emit);
        }
        assembler.finish(&mut emit);
        (events, assembler.counts)
    }

    #[test]
    fn bytes_are_emitted_in_order_and_once() {
        let whole = [Ok(b"abcdefgh".to_vec())];
        assert_eq!(reassemble(&[(0, b"abcd"), (4, b"efgh")]).0, whole);
        let (events, counts) = reassemble(&[(4, b"ef"), (6, b"gh"), (0, b"abcd"), (0, b"abcd")]);
        assert_eq!((events, counts.out_of_order, counts.repeated), (whole.to_vec(), 2, 1));
        // The bytes that arrive first are used, as in most systems.
        let (events, counts) = reassemble(&[(0, b"abcd"), (2, b"XXefgh")]);
        assert_eq!((events, counts.overlapping), (whole.to_vec(), 1));
        let (events, _) = reassemble(&[(2, b"cdef"), (4, b"efgh"), (0, b"abcd")]);
        assert_eq!(events, whole);
    }

    #[test]
    fn gaps_are_reported() {
        let (events, counts) = reassemble(&[(0, b"ab"), (5, b"fg"), (9, b"j")]);
        assert_eq!(events, [Ok(b"ab".to_vec()), Err(3), Ok(b"fg".to_vec()), Err(2), Ok(b"j".to_vec())]);
        assert_eq!(counts.lost, 5);
    }

    #[test]
    fn the_number_of_buffered_bytes_is_limited() {
        let data = vec![7; 4096];
        let segments: Vec<(u32, &[u8])> = (1..1000).map(|n| (n * 5000, &*data)).collect();
        let (events, counts) = reassemble(&segments);
        assert!(events.len() > 900 && counts.lost > 0);
    }
}
