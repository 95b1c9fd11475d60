//! Payloads that are taken while they arrive: in chunks, or into lent memory.

use giop_proto::{Chunk, Loan, LoanReturn, ServeToken};

use crate::end::End;
use crate::messages::tag_of;
use crate::tape::Tape;
use crate::world::World;

/// The payload of a request that was delivered before it was complete.
pub struct Payload {
    token: ServeToken,
    octets: Vec<u8>,
    /// It will be taken, even after the reply.
    opened: bool,
    lent: bool,
    /// Whether its bytes are those that a machine sends.
    known: bool,
}

impl Payload {
    pub fn new(token: ServeToken, first: &[u8], known: bool) -> Self {
        Self { token, octets: first.to_vec(), opened: false, lent: false, known }
    }
}

impl World {
    pub fn payload(&mut self, side: usize, tape: &mut Tape<'_>) {
        let (now, how) = (self.now, tape.octet());
        let end = &mut self.ends[side];
        let Some(which) = tape.pick(end.payloads.len()) else { return };
        end.open(which);
        let token = end.payloads[which].token;
        match how % 8 {
            0 => end.conn.input_mut().align_stream(token, usize::from(how >> 3)),
            1 => {
                let loan = end.conn.stream(token).abandon();
                drop(loan);
                drop(end.conn.input_mut().take_orphaned_loans());
                assert_eq!(end.conn.stream(token).take_ready_chunk(), Chunk::Lost);
                end.payloads.swap_remove(which);
            }
            2 | 3 => end.lend(which, tape.length().max(1), now),
            4 => end.take(which, false, now),
            _ => end.take(which, true, now),
        }
    }
}

impl End {
    /// Marks all payloads as unknown, because bytes of a stranger arrived, which may be within a payload.
    pub fn doubt_payloads(&mut self) {
        for payload in &mut self.payloads {
            payload.known = false;
        }
    }

    /// Handles the end of a request: unless its payload was claimed, it is discarded.
    pub fn unopened(&mut self, token: ServeToken) {
        self.payloads.retain(|payload| payload.opened || payload.token != token);
    }

    fn open(&mut self, which: usize) {
        let payload = &mut self.payloads[which];
        if !payload.opened {
            payload.opened = true;
            self.conn.input_mut().open_stream(payload.token, u64::MAX);
        }
    }

    fn lend(&mut self, which: usize, len: usize, now: std::time::Instant) {
        let payload = &mut self.payloads[which];
        if !payload.lent {
            let loan = Loan::new(Box::new(vec![0u8; len]), 0, len as u64);
            let loan = loan.unwrap_or_else(|(_, error)| panic!("{error}"));
            payload.lent = self.conn.stream(payload.token).lend(loan, now).is_ok();
        }
    }

    /// Takes the available bytes. With `asks`, more data is requested.
    pub fn take(&mut self, which: usize, asks: bool, now: std::time::Instant) {
        self.open(which);
        let payload = &mut self.payloads[which];
        if payload.lent {
            match self.conn.input_mut().take_loan() {
                LoanReturn::Pending => return,
                LoanReturn::Nothing => {}
                LoanReturn::Loan(loan) => {
                    let Some((octets, filled, failed)) = loan.end::<Vec<u8>>() else {
                        panic!("another one than was lent")
                    };
                    assert!(failed.is_none(), "{failed:?}");
                    payload.octets.extend_from_slice(&octets[..filled]);
                }
            }
            payload.lent = false;
        }
        let chunk = match asks {
            true => self.conn.stream(payload.token).take_chunk(now),
            false => self.conn.stream(payload.token).take_ready_chunk(),
        };
        match chunk {
            Chunk::Bytes(octets) => {
                assert!(!octets.is_empty());
                payload.octets.extend_from_slice(&octets);
            }
            Chunk::Pending => {}
            Chunk::Lost => drop(self.payloads.swap_remove(which)),
            Chunk::End => {
                let payload = self.payloads.swap_remove(which);
                assert!(!payload.known || tag_of(&payload.octets).is_some(), "not the payload that was sent");
            }
        }
    }

    /// Takes all available bytes, and returns whether there were any.
    pub fn take_all(&mut self, now: std::time::Instant) -> bool {
        let mut moved = false;
        for which in (0..self.payloads.len()).rev() {
            for _ in 0..10_000 {
                let before = self.payloads[which].octets.len();
                let count = self.payloads.len();
                self.take(which, true, now);
                if self.payloads.len() < count {
                    moved = true;
                    break;
                }
                if self.payloads[which].octets.len() == before {
                    break;
                }
                moved = true;
            }
        }
        moved
    }
}
