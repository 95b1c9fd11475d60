//! Invalid input: captured messages, cut and with flipped bits, and machines driven at random.

use std::sync::Arc;
use std::time::Duration;

use crate::util;
use crate::util::messages::{Ask, bare, cancel, fragmented, locate, locate_reply, reply};
use crate::util::{Cut, Pair};
use giop_codec::Version;
use giop_codec::giop::{MessageType, ReplyStatus, RequestId, ResponseFlags};
use giop_proto::{BufferPool, CallId, CloseReason, Config, Limits, Role, ServeToken};
use proptest::prelude::*;

/// Messages as sent by omniORB.
const CAPTURED: [&str; 11] = [
    "47494f50010201031a0000000200000000000000 0e000000fe27f2006b0000545c0000000000",
    "47494f50010201040800000002000000 01000000",
    "47494f50010201004400000004000000030000000000 00000e000000fe27f2006b0000545c00000000000000\
     0500000070696e67000000000100000001000000 0c000000010000000100010009010100",
    "47494f50010201010c000000040000000000000000000000",
    "47494f50010201003000000006000000000000000000 00000e000000fe27f2006b0000545c00000000000000\
     030000006f7700000000000005000000",
    "47494f50010201003400000008000000030000000000 00000e000000fe27f2006b0000545c00000000000000\
     04000000616464000000000001000000 02000000",
    "47494f500102010110000000080000000000000000000000 03000000",
    "47494f50010201012c0000000a0000000100000000000000 0e00000049444c3a542f4261643a312e3000\
     0000030000006e6f000007000000",
    "47494f50010201013c0000000e0000000200000000000000 2400000049444c3a6f6d672e6f72672f434f5242412f\
     4e4f5f5045524d495353494f4e3a312e300001004d4f00000000",
    "47494f50010001003400000000000000 08000000010000000e000000fe27f2006b0000545c00000000000000\
     04000000616464000000000001000000 02000000",
    "47494f5001000101100000000000000008000000 0000000003000000",
];

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap()).collect()
}

/// Returns a pair with requests in progress, so that messages can affect them.
fn busy_pair(cut: Cut) -> Pair {
    let mut pair = Pair::new(cut);
    pair.client.conn.set_accepts_requests(true);
    for _ in 0..8 {
        pair.call(&Ask::default());
    }
    let back = pair.server.conn.start_call(None, pair.now).unwrap();
    let id = pair.server.conn.call(back).request_id().0;
    pair.server.conn.call(back).send_request(&mut Ask { id, ..Ask::default() }.encoder());
    pair.drive();
    pair
}

/// Feeds the bytes to both sides and drives them to any end.
fn feed(octets: &[u8], cut: Cut) {
    let mut pair = busy_pair(cut);
    for side in [&mut pair.client, &mut pair.server] {
        side.inject(octets);
        side.eof = true;
    }
    pair.drive();
    for request in pair.server.requests.iter().chain(&pair.client.requests) {
        let mut arguments = request.arguments();
        let _ = (request.key(), request.operation(), request.contexts().to_vec(), request.fragment_offsets());
        let _ = arguments.read_string();
    }
    for side in [&mut pair.client, &mut pair.server] {
        for call in std::mem::take(&mut side.answered) {
            if let Some(Ok(reply)) = side.conn.call(call).take_outcome() {
                let _ = (reply.status(), reply.contexts().to_vec(), reply.body().read_u64());
            }
        }
        while let Some(request) = side.requests.pop_front() {
            side.conn.request(request.token()).finish();
        }
    }
    for _ in 0..4 {
        pair.wait(Duration::from_secs(300));
    }
    assert!(pair.client.closed && pair.server.closed, "nothing may be left hanging");
}

#[test]
fn captured_messages_are_understood() {
    let mut pair = busy_pair(Cut::Whole);
    let before = pair.server.requests.len();
    for hex in CAPTURED {
        let message = octets(hex);
        assert_eq!(message.len(), 12 + message[8] as usize, "{hex}");
        if matches!(message[7], 0 | 3) {
            pair.server.inject(&message);
        }
    }
    pair.drive();
    let operations: Vec<_> = pair.server.requests.iter().skip(before).map(|r| r.operation()).collect();
    assert_eq!(operations, ["ping", "ow", "add", "add"]);
    assert_eq!(pair.server.locates.len(), 1);
    assert!(!pair.server.conn.lifecycle().is_closing());
    let sets = pair.server.conn.peer().code_sets().unwrap();
    assert_eq!(sets.wchar, Some(giop_codec::cdr::WCharSet::Utf16));
}

#[test]
fn messages_cut_at_any_length_cause_no_panic_or_hang() {
    for hex in CAPTURED {
        let message = octets(hex);
        for len in 0..message.len() {
            feed(&message[..len], Cut::Whole);
        }
    }
}

#[test]
fn messages_with_any_bit_flipped_cause_no_panic_or_hang() {
    for hex in CAPTURED {
        let message = octets(hex);
        for bit in 0..8 * message.len() {
            let mut flipped = message.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            flipped.extend_from_slice(&message);
            feed(&flipped, if bit % 16 == 0 { Cut::Octets } else { Cut::Whole });
        }
    }
}

#[test]
fn fragments_with_any_bit_flipped_cause_no_panic_or_hang() {
    for version in [Version::V1_1, Version::V1_2] {
        let whole = Ask { version, id: 2, body: vec![5; 40], ..Ask::default() }.octets();
        let pieces = fragmented(&whole, 64, 16).concat();
        for bit in 0..8 * pieces.len() {
            let mut flipped = pieces.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            feed(&flipped, Cut::Whole);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_cause_no_panic_or_hang(octets in proptest::collection::vec(any::<u8>(), 0..300), at in 1usize..300) {
        feed(&octets, Cut::At(at));
    }

    #[test]
    fn random_bodies_with_a_valid_header_cause_no_panic_or_hang(
        minor in 0u8..3,
        flags in 0u8..4,
        kind in 0u8..8,
        body in proptest::collection::vec(prop_oneof![Just(0u8), 1u8..9, any::<u8>()], 0..120),
    ) {
        let mut octets = vec![b'G', b'I', b'O', b'P', 1, minor, flags, kind];
        let size = body.len() as u32;
        octets.extend_from_slice(&if flags & 1 == 0 { size.to_be_bytes() } else { size.to_le_bytes() });
        octets.extend_from_slice(&body);
        feed(&[&octets[..], &octets[..]].concat(), Cut::Whole);
    }
}

/// A random event of a pair.
#[derive(Clone, Debug)]
enum Step {
    Call { version: u8, len: usize, deadline: Option<u8> },
    Oneway { len: usize },
    Locate,
    Answer { which: usize, len: usize },
    Finish { which: usize },
    Cancel { which: usize },
    Take { which: usize },
    Drive,
    Wait { tenths: u16 },
    Sleep { client: bool, asleep: bool },
    Close { client: bool },
    Inject { client: bool, what: u8, id: u8 },
    WriteSome { client: bool, n: usize },
    LoseWrite { client: bool },
    Eof { client: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![4 => 0usize..200, 1 => 4000usize..40_000];
    prop_oneof![
        8 => (0u8..3, len.clone(), proptest::option::of(0u8..50))
            .prop_map(|(version, len, deadline)| Step::Call { version, len, deadline }),
        3 => len.clone().prop_map(|len| Step::Oneway { len }),
        1 => Just(Step::Locate),
        8 => (any::<usize>(), len).prop_map(|(which, len)| Step::Answer { which, len }),
        2 => any::<usize>().prop_map(|which| Step::Finish { which }),
        3 => any::<usize>().prop_map(|which| Step::Cancel { which }),
        3 => any::<usize>().prop_map(|which| Step::Take { which }),
        8 => Just(Step::Drive),
        3 => (0u16..600).prop_map(|tenths| Step::Wait { tenths }),
        2 => (any::<bool>(), any::<bool>()).prop_map(|(client, asleep)| Step::Sleep { client, asleep }),
        1 => any::<bool>().prop_map(|client| Step::Close { client }),
        1 => (any::<bool>(), 0u8..6, any::<u8>()).prop_map(|(client, what, id)| Step::Inject { client, what, id }),
        2 => (any::<bool>(), 0usize..300).prop_map(|(client, n)| Step::WriteSome { client, n }),
        1 => any::<bool>().prop_map(|client| Step::LoseWrite { client }),
        1 => any::<bool>().prop_map(|client| Step::Eof { client }),
    ]
}

/// A pair, with the invariants that must hold however it is driven.
struct Model {
    pair: Pair,
    calls: Vec<CallId>,
    served: Vec<(ServeToken, Version, RequestId)>,
    /// True if bytes were lost in an interrupted write: from then on the other side may receive garbage.
    torn: bool,
}

impl Model {
    fn new(cut: Cut) -> Self {
        let mut limits = Limits::default();
        limits.max_requests = 4;
        limits.max_message_size = 60_000;
        limits.max_backlog = 50_000;
        let pool = Arc::new(BufferPool::new(1 << 20));
        let config = |role| Config::new(role, Arc::new(limits.clone()), Arc::clone(&pool));
        let pair = Pair::with_configs(cut, config(Role::Client), config(Role::Server));
        Self { pair, calls: Vec::new(), served: Vec::new(), torn: false }
    }

    fn apply(&mut self, step: Step) {
        let now = self.pair.now;
        match step {
            Step::Call { version, len, deadline } => {
                let deadline = deadline.map(|tenths| now + Duration::from_millis(100 * u64::from(tenths)));
                let Ok(call) = self.pair.client.conn.start_call(deadline, now) else { return };
                let id = self.pair.client.conn.call(call).request_id().0;
                let version = Version::from_minor(version).unwrap();
                let ask = Ask { id, version, body: vec![1; len], ..Ask::default() };
                self.pair.client.conn.call(call).send_request(&mut ask.encoder());
                self.calls.push(call);
            }
            Step::Oneway { len } => {
                let id = self.pair.client.conn.next_oneway_id().0;
                let ask = Ask { id, response: ResponseFlags::None, body: vec![1; len], ..Ask::default() };
                let _ = self.pair.client.conn.send_oneway(&mut ask.encoder());
            }
            Step::Locate => {
                let Ok(call) = self.pair.client.conn.start_call(None, now) else { return };
                let id = self.pair.client.conn.call(call).request_id();
                self.pair.client.conn.call(call).send_locate(&mut locate(Version::V1_2, id, b"k"));
                self.calls.push(call);
            }
            Step::Answer { which, len } => {
                self.collect();
                if let Some((token, version, id)) = self.pick(which) {
                    self.pair.answer_token(token, version, id, &vec![2; len]);
                }
            }
            Step::Finish { which } => {
                self.collect();
                if let Some((token, ..)) = self.pick(which) {
                    self.pair.server.conn.request(token).finish();
                }
            }
            Step::Cancel { which } if !self.calls.is_empty() => {
                let call = self.calls.swap_remove(which % self.calls.len());
                self.pair.client.conn.call(call).cancel();
            }
            Step::Take { which } if !self.calls.is_empty() => {
                let at = which % self.calls.len();
                if self.pair.client.conn.call(self.calls[at]).take_outcome().is_some() {
                    self.calls.swap_remove(at);
                }
            }
            Step::Cancel { .. } | Step::Take { .. } => {}
            Step::Drive => self.pair.drive(),
            Step::Wait { tenths } => self.pair.wait(Duration::from_millis(100 * u64::from(tenths))),
            Step::Sleep { client, asleep } => self.side(client).awake = !asleep,
            Step::Close { client } => self.side(client).conn.close(now),
            Step::Inject { client, what, id } => {
                let id = u32::from(id);
                let octets = match what {
                    0 => cancel(Version::V1_2, id),
                    1 => reply(Version::V1_2, RequestId(id), ReplyStatus::NoException, b"")
                        .into_bytes()
                        .to_vec(),
                    2 => {
                        locate_reply(Version::V1_1, RequestId(id), giop_codec::giop::LocateStatus::ObjectHere)
                            .into_bytes()
                            .to_vec()
                    }
                    3 => bare(Version::V1_2, MessageType::CloseConnection),
                    4 => {
                        fragmented(&Ask { id, body: vec![0; 50], ..Ask::default() }.octets(), 64, 16).concat()
                    }
                    _ => bare(Version::V1_2, MessageType::MessageError),
                };
                // In the middle of a message this is garbage, and so is a request to a client. A side that
                // gave up in the middle of a message has nothing queued any more.
                let sender = &self.side(!client).conn;
                self.torn |=
                    sender.output().backlog() > 0 || sender.lifecycle().is_closed() || client && what == 4;
                self.side(client).inject(&octets);
            }
            Step::WriteSome { client, n } => {
                let Some(mut transmit) = self.side(client).conn.take_transmit() else { return };
                let mut slices = [std::io::IoSlice::new(&[]); giop_proto::outbox::MAX_SLICES];
                let used = transmit.io_slices(&mut slices);
                let octets: Vec<u8> =
                    slices[..used].iter().flat_map(|slice| slice.iter().copied()).take(n).collect();
                transmit.advance(octets.len());
                self.side(client).conn.handle_written(transmit, now);
                if !self.side(!client).closed {
                    self.side(!client).inject(&octets);
                }
            }
            Step::LoseWrite { client } => {
                let error = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                self.side(client).conn.handle_write_error(&error, now);
                self.torn = true;
            }
            Step::Eof { client } => self.side(client).eof = true,
        }
        self.check();
    }

    fn side(&mut self, client: bool) -> &mut util::Side {
        if client { &mut self.pair.client } else { &mut self.pair.server }
    }

    /// Moves requests that were handed out to those being served.
    fn collect(&mut self) {
        while let Some(request) = self.pair.server.requests.pop_front() {
            self.served.push((request.token(), request.version(), request.id()));
        }
        self.pair.server.cancelled.clear();
    }

    fn pick(&mut self, which: usize) -> Option<(ServeToken, Version, RequestId)> {
        if self.served.is_empty() { None } else { Some(self.served.swap_remove(which % self.served.len())) }
    }

    fn check(&mut self) {
        self.collect();
        for side in [&self.pair.client, &self.pair.server] {
            assert!(side.conn.serving_count() <= 4);
            assert!(!(side.conn.lifecycle().is_closed() && side.conn.wants_read()));
            assert!(!(side.conn.lifecycle().is_closed() && side.conn.has_output()));
            assert!(!side.conn.lifecycle().is_closed() || side.conn.poll_timeout().is_none());
            assert_eq!(side.conn.output().backlog() > 0, side.conn.has_output(), "nothing is lent here");
        }
        assert_eq!(self.served.len(), self.pair.server.conn.serving_count());
        assert!(self.pair.client.conn.pending_call_count() <= self.calls.len());
    }

    /// Lets everything end, and checks what is left.
    fn finish(mut self) {
        for side in [&mut self.pair.client, &mut self.pair.server] {
            side.awake = true;
        }
        self.pair.drive();
        self.collect();
        for (token, ..) in std::mem::take(&mut self.served) {
            self.pair.server.conn.request(token).finish();
        }
        self.pair.client.conn.close(self.pair.now);
        self.pair.server.conn.close(self.pair.now);
        for _ in 0..20 {
            self.pair.drive();
            self.collect();
            for (token, ..) in std::mem::take(&mut self.served) {
                self.pair.server.conn.request(token).finish();
            }
            if self.pair.client.closed && self.pair.server.closed {
                break;
            }
            // Calls whose requests were finished without a reply stay pending forever, like calls without a
            // deadline.
            for call in std::mem::take(&mut self.calls) {
                self.pair.client.conn.call(call).cancel();
            }
            self.pair.wait(Duration::from_secs(40));
        }
        assert!(self.pair.client.closed && self.pair.server.closed, "nothing may be left hanging");
        for call in self.calls {
            assert!(
                self.pair.client.conn.call(call).take_outcome().is_some(),
                "every call has an outcome in the end"
            );
        }
        if !self.torn {
            for side in [&self.pair.client, &self.pair.server] {
                let reason = side.conn.lifecycle().close_reason();
                assert!(!matches!(reason, Some(CloseReason::Protocol(_))), "{reason:?}");
            }
        }
        assert_eq!(self.pair.server.conn.serving_count(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_done_every_call_ends_and_nothing_leaks(
        steps in proptest::collection::vec(step(), 1..60),
        cut in prop_oneof![Just(Cut::Whole), (1usize..2000).prop_map(Cut::At)],
    ) {
        let mut model = Model::new(cut);
        for step in steps {
            model.apply(step);
        }
        model.finish();
    }
}
