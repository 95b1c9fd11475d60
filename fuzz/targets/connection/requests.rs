//! The requests of a side.

use std::time::Duration;

use bytes::Bytes;
use giop_codec::Version;
use giop_codec::cdr::Encoder;
use giop_codec::giop::{RequestId, ResponseFlags};
use giop_proto::CallId;

use crate::end::{Call, End, STREAMED};
use crate::messages::{Ask, Tag, body, locate};
use crate::tape::Tape;
use crate::world::World;

/// How a request is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Whole,
    /// Its payload is queued in parts, and nothing else in the meantime.
    Parts,
    /// While it is encoded.
    Flow,
}

impl World {
    /// Makes a call, or a oneway.
    pub fn request(&mut self, side: usize, way: Way, oneway: bool, tape: &mut Tape<'_>) {
        let (flags, len) = (tape.octet(), self.afford(tape.length()));
        let (version, order) = (tape.version(), tape.order());
        if self.ends[side].is_blocked() || !self.may_ask(side) {
            return;
        }
        let streamed = flags & 0x80 != 0;
        let timed = (flags & 0x30 == 0x30).then(|| Duration::from_millis(1 + u64::from(tape.octet())));
        self.next += 1;
        let tag = self.next;
        let call = if oneway {
            None
        } else {
            let Some(call) = self.start(side, tag, timed, streamed) else { return };
            Some(call)
        };
        let end = &mut self.ends[side];
        let conn = &mut end.conn;
        let id = match call {
            Some(call) => conn.call(call).request_id(),
            None => conn.next_oneway_id(),
        };
        let whole = body(tag, len);
        // The first part has its tag, and some of the rest.
        let first = if way == Way::Whole { whole.len() } else { 4 + len / 3 };
        let coming = whole.slice(first..);
        let mut e = Ask {
            version,
            order,
            id,
            response: if oneway { ResponseFlags::None } else { ResponseFlags::Target },
            key: if streamed { STREAMED } else { b"key" },
            body: whole.slice(..first),
            coming: coming.len() as u64,
        }
        .encoder();
        let sent = match (way, call) {
            (Way::Whole, Some(call)) => {
                if flags & 1 == 1 {
                    conn.call(call).forward_reply_encoded();
                }
                conn.call(call).send_request(&mut e);
                true
            }
            (Way::Whole, None) => conn.send_oneway(&mut e).is_ok(),
            (Way::Parts, _) => {
                let begun = conn.begin_request(call, &mut e, coming.len() as u64).is_ok();
                assert_eq!(
                    conn.unfinished_request().wants_part(),
                    begun && !coming.is_empty() && !conn.lifecycle().is_closed()
                );
                end.part = (begun && !coming.is_empty()).then_some((call, coming));
                begun
            }
            (Way::Flow, _) => match conn.begin_incremental(call, &mut e, coming.len() as u64) {
                Ok(Some(number)) => {
                    end.flow = Some((number, coming));
                    true
                }
                Ok(None) if coming.is_empty() && e.is_empty() => true,
                Ok(None) => {
                    // It has to be sent as a whole.
                    assert!(!e.is_empty(), "the encoder is as it was");
                    e.put_shared(coming);
                    match call {
                        Some(call) => {
                            conn.call(call).send_request(&mut e);
                            true
                        }
                        None => conn.send_oneway(&mut e).is_ok(),
                    }
                }
                Err(_) => false,
            },
        };
        assert!(e.is_empty(), "what is sent or dropped is gone");
        if oneway {
            if sent {
                self.oneways[side].push(tag);
            } else {
                self.refused.insert(tag);
            }
        }
    }

    fn start(&mut self, side: usize, tag: Tag, timed: Option<Duration>, streamed: bool) -> Option<CallId> {
        if !self.may_ask(side) {
            return None;
        }
        let end = &mut self.ends[side];
        let deadline = timed.map(|time| self.now + time);
        let call = match end.conn.start_call(deadline, self.now) {
            Ok(call) => call,
            Err(error) => {
                assert!(end.conn.lifecycle().is_closing(), "{error}");
                return None;
            }
        };
        let request = end.conn.call(call).request_id();
        assert_eq!(request.0 & 1, self.parity(side), "who opened the connection has even ids");
        let end = &mut self.ends[side];
        assert!(end.calls.iter().all(|other| other.request != request), "no two calls have one id");
        end.calls.push(Call { id: call, request, tag, timed: timed.is_some(), streamed });
        Some(call)
    }

    pub fn locate(&mut self, side: usize, tape: &mut Tape<'_>) {
        let version = tape.version();
        if self.ends[side].is_blocked() {
            return;
        }
        self.next += 1;
        let Some(call) = self.start(side, self.next, None, false) else { return };
        let conn = &mut self.ends[side].conn;
        let id = conn.call(call).request_id();
        conn.call(call).send_locate(&mut locate(version, id));
    }

    pub fn cancel(&mut self, side: usize, tape: &mut Tape<'_>) {
        let end = &mut self.ends[side];
        let Some(which) = tape.pick(end.calls.len()) else { return };
        let call = end.calls.swap_remove(which);
        // Nothing can follow a partial request.
        self.disturbed |= end.is_blocked();
        end.give_up_call(call.id);
        self.cancelled = true;
    }

    /// Queues the next bytes of a partial request, or aborts it.
    pub fn part(&mut self, side: usize, tape: &mut Tape<'_>) {
        let (give_up, len) = (tape.octet() == 0xff, tape.length());
        let end = &mut self.ends[side];
        if give_up && end.is_blocked() {
            end.conn.unfinished_request().give_up();
            assert!(!end.conn.unfinished_request().wants_part());
            self.disturbed = true;
            // Its caller no longer waits for a reply.
            if let Some((Some(call), _)) = end.part.take()
                && let Some(at) = end.calls.iter().position(|waiting| waiting.id == call)
            {
                end.calls.swap_remove(at);
                end.give_up_call(call);
            }
            return;
        }
        end.send_part(len);
    }

    /// Queues the next bytes of a request that is sent while it is encoded, or ends it.
    pub fn flow(&mut self, side: usize, tape: &mut Tape<'_>) {
        let (how, len) = (tape.octet(), tape.length());
        let end = &mut self.ends[side];
        match how {
            0xff if end.flow.is_some() => {
                self.disturbed = true;
                end.end_flow();
            }
            0xfe if end.flow.is_some() => {
                // More than it announced.
                self.disturbed = true;
                if let Some((number, rest)) = end.flow.take() {
                    let mut e = Encoder::new(giop_codec::ByteOrder::NATIVE, Version::V1_2);
                    e.put_raw(&vec![0; rest.len() + 1]);
                    end.conn.incremental(number).send(&mut e);
                    end.conn.incremental(number).end();
                }
            }
            _ => end.send_flow(len),
        }
    }
}

impl End {
    fn give_up_call(&mut self, call: CallId) {
        self.conn.call(call).cancel();
        self.given_up.push(call);
        assert!(self.conn.call(call).take_outcome().is_none(), "it has none any more");
    }

    pub fn send_part(&mut self, len: usize) {
        let Some((_, rest)) = &mut self.part else { return };
        if !self.conn.unfinished_request().wants_part() {
            self.part = None;
            return;
        }
        assert_eq!(self.conn.output().missing_request_bytes(), rest.len() as u64);
        self.conn.unfinished_request().send_part(rest.split_to(len.min(rest.len())));
        if rest.is_empty() {
            assert!(!self.conn.unfinished_request().wants_part());
            self.part = None;
        }
    }

    pub fn send_flow(&mut self, len: usize) {
        let Some((number, rest)) = &mut self.flow else { return };
        let octets = rest.split_to(len.min(rest.len()));
        let (number, over) = (*number, rest.is_empty());
        flow(&mut self.conn, number, octets);
        if over {
            self.end_flow();
        }
    }

    fn end_flow(&mut self) {
        if let Some((number, _)) = self.flow.take() {
            self.conn.incremental(number).end();
        }
    }

    /// Returns the id of one of its calls, or any id.
    pub fn some_id(&self, tape: &mut Tape<'_>) -> RequestId {
        let which = tape.octet();
        match tape.pick(self.calls.len()) {
            Some(call) if which & 0x80 != 0 => self.calls[call].request,
            _ => RequestId(u32::from(which & 0x7f)),
        }
    }
}

/// Queues more of a message that is sent while it is encoded.
pub fn flow(conn: &mut giop_proto::Connection, number: u64, octets: Bytes) {
    let mut e = Encoder::new(giop_codec::ByteOrder::NATIVE, Version::V1_2);
    if octets.len().is_multiple_of(2) {
        e.put_shared(octets)
    } else {
        e.put_raw(&octets)
    }
    conn.incremental(number).send(&mut e);
    assert!(e.is_empty());
}
