//! Tests with randomly damaged captures, which must neither cause a panic nor leak memory.

#[path = "../../tests/cli/wire.rs"]
mod wire;

use std::io::Cursor;

use zorb::dynamic::Idl;

use super::calls::Sniffer;
use super::read_events;
use super::types::BodyDecoder;
use wire::{Capture, Flag, Form, Line, USUAL, fragments};

const IDL: &str = "module Bank { typedef sequence<long> Coins; exception Broke { double missing; };
    interface Account { double deposit(in double amount, in Coins coins, out string note) raises (Broke); any wrapped(in any value); }; };";

/// A deterministic generator of random numbers, so that failures are reproducible.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

fn create_capture(random: &mut Random) -> Vec<u8> {
    let (mut capture, mut line) = (Capture::new(), Line::new("10.0.0.1:1", "10.0.0.2:2"));
    capture.open(&mut line);
    for id in 0..4 {
        let [request, reply] = USUAL.deposit(id, 1.0, &[1, 2, 3, 4, 5, 6, 7, 8]);
        let request = if id % 2 == 0 { fragments(&request, &[48, 64]) } else { request };
        // The request is sent in two segments. The first one arrives late or never.
        let middle = random.below(request.len());
        capture.packet(&line, true, Flag::Data, middle as i32, &request[middle..]);
        if random.below(4) > 0 {
            capture.packet(&line, true, Flag::Data, 0, &request[..middle]);
        }
        capture.skip(&mut line, true, request.len());
        capture.send(&mut line, false, &reply);
    }
    let any = Form(giop_codec::Version::V1_1, giop_codec::ByteOrder::Big).request(
        9,
        b"Account",
        "wrapped",
        &[],
        |e| {
            e.put_u32(15);
            e.put_u32(0x20);
            e.put_raw(&[0; 64]);
        },
    );
    capture.send(&mut line, true, &any);
    capture.close(&line);
    if random.below(2) == 0 { capture.pcapng(1) } else { capture.pcap(1, false, false) }
}

#[test]
fn damaged_captures_cause_no_panics_and_leave_no_buffers() {
    let mut random = Random(0x5eed_1234_5678_9abc);
    let mut messages = 0;
    let idl = Idl::parse(IDL).unwrap();
    let mut types = [BodyDecoder::new(Some(idl), &[]).unwrap(), BodyDecoder::new(None, &[]).unwrap()];
    for round in 0..1500 {
        let mut file = create_capture(&mut random);
        for _ in 0..random.below(12) {
            if file.is_empty() {
                break;
            }
            let start = random.below(file.len());
            match random.below(5) {
                0 => file.truncate(start.max(40)),
                1 => file[start] ^= 1 << random.below(8),
                2 => file[start] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                3 => {
                    let end = (start + random.below(64)).min(file.len());
                    file.drain(start..end);
                }
                _ => {
                    let end = (start + random.below(64)).min(file.len());
                    let copied = file[start..end].to_vec();
                    let to = random.below(file.len());
                    file.splice(to..to, copied);
                }
            }
        }
        let mut sniffer = Sniffer::new(std::mem::take(&mut types[round % 2]), Default::default());
        // An error is expected if the damaged file is no longer a valid capture.
        let _ = read_events(Cursor::new(&file), "the capture", |number, time, event| {
            sniffer.handle_event(number, time, event, &mut |sniffed| {
                assert!(serde_json::to_string(&sniffed.record).is_ok());
                assert!(super::show::text(&sniffed.record).lines().count() >= 1);
            });
            Ok(())
        });
        types[round % 2] = std::mem::take(&mut sniffer.types);
        messages += sniffer.counts.messages;
        assert_eq!(sniffer.memory_use(), (0, 0), "all buffers must be empty at the end");
    }
    // Most of the captures must still contain messages.
    assert!(messages > 1500, "{messages}");
}
