//! Replies, in every way in which they may be sent.

use bytes::Bytes;
use giop_codec::Version;
use giop_codec::cdr::Encoder;
use giop_codec::giop::{MessageType, ReplyHeader, ReplyStatus, begin_body, put_message_header};
use giop_proto::{IncrementalReply, ReplyRoom};

use crate::end::{Answer, End, Served};
use crate::messages::{body, locate_reply, reply};
use crate::requests::flow;
use crate::tape::Tape;
use crate::world::World;

/// Size of the initial part of a reply of unknown length.
const HEAD: usize = 24;

impl World {
    /// Performs one step of one of the requests in service, selected by `how`.
    pub fn answer(&mut self, side: usize, how: u8, tape: &mut Tape<'_>) {
        let Some(which) = tape.pick(self.ends[side].served.len()) else { return };
        let len = self.afford(tape.length());
        let end = &mut self.ends[side];
        match how {
            // Completes it in any state.
            0 => end.finish(which, len),
            1 => end.begin_growing(which, len),
            2 => end.begin_flowing(which, len),
            3 => end.go_on(which, len),
            4 => end.acknowledge(which, len),
            5 => {
                // The request remains without an answer.
                let (asks, tag) = (end.served[which].response.expects_reply(), end.served[which].tag);
                if end.give_up(which) && asks {
                    (self.disturbed, self.silent) = (true, true);
                    // If this side closes in an orderly way, the peer assumes that it was not executed.
                    self.unanswered.extend(tag);
                }
            }
            _ => {}
        }
    }

    pub fn located(&mut self, side: usize, tape: &mut Tape<'_>) {
        let end = &mut self.ends[side];
        if let Some(which) = tape.pick(end.locates.len()) {
            end.answer_locate(which);
        }
    }
}

impl End {
    pub fn answer_locate(&mut self, which: usize) {
        if !self.is_blocked() {
            let (id, version, order) = self.locates.swap_remove(which);
            self.conn.send_locate_reply(&mut locate_reply(version, order, id));
        }
    }

    /// Ends a request by its reply, or by the missing part of its reply.
    pub fn finish(&mut self, which: usize, len: usize) {
        let sends = !matches!(self.served[which].answer, Answer::Sent);
        if self.is_blocked() && sends {
            return;
        }
        let served = self.served.swap_remove(which);
        let token = served.token;
        match served.answer {
            Answer::Open if served.response.expects_reply() => {
                let mut e = whole(&served, len, 0);
                self.conn.request(token).send_reply(&mut e);
                assert!(e.is_empty(), "what is sent or dropped is gone");
                self.unopened(token);
                return;
            }
            Answer::Open | Answer::Sent => {}
            Answer::Growing(mut e, rest) => {
                e.put_shared(rest);
                self.conn.request(token).continue_reply(&mut e, true);
                assert_eq!(self.conn.output().reply_room(token), ReplyRoom::Gone, "it is whole");
            }
            Answer::Flowing(number, rest) => {
                flow(&mut self.conn, number, rest);
                self.conn.incremental(number).end();
            }
        }
        self.conn.request(token).finish();
        self.unopened(token);
    }

    fn begin_growing(&mut self, which: usize, len: usize) {
        let blocked = self.is_blocked();
        let least = self.conn.output().reply_piece_size() + 1;
        let served = &mut self.served[which];
        let answers = matches!(served.answer, Answer::Open) && served.response.expects_reply();
        if !answers || served.version != Version::V1_2 || blocked {
            return;
        }
        let all = body(served.tag.unwrap_or(0), least + len);
        let mut e = Encoder::new(served.order, Version::V1_2);
        put_message_header(&mut e, MessageType::Reply);
        ReplyHeader::new(served.id, ReplyStatus::NoException).encode(&mut e).expect("a reply encodes");
        begin_body(&mut e);
        assert_eq!(e.position(), HEAD);
        e.put_shared(all.slice(..least));
        match self.conn.request(served.token).begin_reply(&mut e, HEAD) {
            ReplyRoom::Room => served.answer = Answer::Growing(e, all.slice(least..)),
            ReplyRoom::Full => assert!(!e.is_empty(), "the encoder is as it was"),
            ReplyRoom::Gone => served.answer = Answer::Sent,
        }
    }

    fn begin_flowing(&mut self, which: usize, len: usize) {
        let blocked = self.is_blocked();
        let served = &mut self.served[which];
        if !matches!(served.answer, Answer::Open) || !served.response.expects_reply() || blocked {
            return;
        }
        let all = body(served.tag.unwrap_or(0), len + 1);
        let coming = all.len() - 4;
        let mut e = reply(served.version, served.order, served.id, all.slice(..4), coming as u64);
        match self.conn.request(served.token).begin_incremental(&mut e, coming as u64) {
            IncrementalReply::Begun(number) => served.answer = Answer::Flowing(number, all.slice(4..)),
            IncrementalReply::Busy => assert!(!e.is_empty(), "the encoder is as it was"),
            IncrementalReply::Dropped => served.answer = Answer::Sent,
        }
    }

    fn go_on(&mut self, which: usize, len: usize) {
        let blocked = self.is_blocked();
        let served = &mut self.served[which];
        match &mut served.answer {
            Answer::Growing(e, rest) if !blocked => match self.conn.output().reply_room(served.token) {
                ReplyRoom::Room => {
                    e.put_shared(rest.split_to(len.min(rest.len())));
                    self.conn.request(served.token).continue_reply(e, false);
                    assert!(e.is_empty());
                }
                ReplyRoom::Full => {}
                ReplyRoom::Gone => served.answer = Answer::Sent,
            },
            Answer::Flowing(number, rest) => {
                let octets = rest.split_to(len.min(rest.len()));
                flow(&mut self.conn, *number, octets);
            }
            _ => {}
        }
    }

    /// Acknowledges the request to the peer by a reply; the request continues.
    fn acknowledge(&mut self, which: usize, len: usize) {
        let blocked = self.is_blocked();
        let served = &mut self.served[which];
        if matches!(served.answer, Answer::Open) && served.response.expects_reply() && !blocked {
            let mut e = whole(served, len, 0);
            self.conn.request(served.token).acknowledge(&mut e);
            assert!(e.is_empty());
            served.answer = Answer::Sent;
        }
    }

    /// Ends a request without its reply, or without the rest of it. Returns whether the peer receives no
    /// reply.
    fn give_up(&mut self, which: usize) -> bool {
        let blocked = self.is_blocked();
        match &self.served[which].answer {
            Answer::Growing(..) => {
                if self.conn.request(self.served[which].token).break_reply()
                    && !blocked
                    && !self.conn.lifecycle().is_closed()
                {
                    // No part of it was sent: another reply replaces it.
                    self.served[which].answer = Answer::Open;
                    self.finish(which, 0);
                    return true;
                }
            }
            Answer::Flowing(number, _) => self.conn.incremental(*number).end(),
            Answer::Open | Answer::Sent => {}
        }
        let served = self.served.swap_remove(which);
        self.conn.request(served.token).finish();
        self.unopened(served.token);
        !matches!(served.answer, Answer::Sent)
    }
}

fn whole(served: &Served, len: usize, coming: u64) -> Encoder {
    let all: Bytes = body(served.tag.unwrap_or(0), len);
    reply(served.version, served.order, served.id, all, coming)
}
