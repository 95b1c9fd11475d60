//! Captured requests with mistakes.

use std::fs;
use std::path::Path;

/// An endless sequence of messages that depends only on a seed.
pub struct Mistakes {
    seeds: Vec<Vec<u8>>,
    state: u64,
}

/// Operations that are left out: those that follow references in arguments, and those that end servers.
const LEFT_OUT: [&str; 8] =
    ["join", "shutdown", "close", "listen", "forward", "resolve", "interface", "peer"];

impl Mistakes {
    pub fn new(seed: u64) -> Self {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let mut files = Vec::new();
        for orb in ["omniorb", "jacorb"] {
            for entry in fs::read_dir(fixtures.join(orb)).expect("the captures are there") {
                let path = entry.expect("a file").path();
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let asks = name.starts_with("request_") || name.starts_with("locate_request_");
                if asks && !LEFT_OUT.iter().any(|left_out| name.contains(left_out)) {
                    files.push(path);
                }
            }
        }
        files.sort();
        let read = |path| fs::read(path).expect("a capture");
        let seeds: Vec<_> = files.iter().map(read).filter(|seed| seed.len() < 3000).collect();
        assert!(seeds.len() > 100, "only {} captures", seeds.len());
        Self { seeds, state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    fn number(&mut self, below: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % below.max(1)
    }

    fn seed(&mut self) -> Vec<u8> {
        let which = self.number(self.seeds.len());
        self.seeds[which].clone()
    }

    /// Makes one mistake after the first four bytes, the undisputed magic number.
    fn mistake(&mut self, message: &mut Vec<u8>) {
        let at = 4 + self.number(message.len().saturating_sub(4));
        match self.number(9) {
            0 | 1 => {
                let bit = self.number(8);
                message[at] ^= 1 << bit;
            }
            2 => message[at] = [0, 1, 2, 0x7f, 0x80, 0xff][self.number(6)],
            3 => {
                let word = [0, 1, 2, 7, 0x7fff_ffff, 0xffff_ffff, 0x0001_0000, 100][self.number(8)];
                self.word(message, at & !3, word);
            }
            4 => message.truncate(at.max(12)),
            5 => {
                let many = 1 + self.number(16);
                message.resize(message.len() + many, 0);
            }
            6 => {
                let many = [1, 4, 8][self.number(3)].min(message.len() - at);
                if at >= 12 {
                    message.drain(at..at + many);
                }
            }
            7 => {
                let many = [1, 4, 8][self.number(3)];
                let octet = self.number(256) as u8;
                message
                    .splice(at.max(12).min(message.len())..at.max(12).min(message.len()), vec![octet; many]);
            }
            _ => {
                // The end of another message.
                let other = self.seed();
                let from = 12 + self.number(other.len().saturating_sub(12));
                message.truncate(at.max(12));
                message.extend_from_slice(&other[from.min(other.len())..]);
            }
        }
    }

    fn word(&mut self, message: &mut [u8], at: usize, word: u32) {
        let word = if message[6] & 1 == 1 { word.to_le_bytes() } else { word.to_be_bytes() };
        for (to, from) in message[at..].iter_mut().zip(word) {
            *to = from;
        }
    }
}

impl Iterator for Mistakes {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut message = self.seed();
        for _ in 0..1 + self.number(3) {
            self.mistake(&mut message);
        }
        // Mostly the size in the header is corrected, so that the mistake is inside of the message.
        if self.number(8) > 0 {
            let size = (message.len() - 12) as u32;
            self.word(&mut message, 8, size);
        }
        Some(message)
    }
}
