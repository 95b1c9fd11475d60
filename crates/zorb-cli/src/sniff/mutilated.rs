//! Tests with damaged captures: they must neither cause a panic nor exceed the memory limits.

#[path = "../../tests/cli/wire.rs"]
mod wire;

use std::io::Cursor;

use zorb::dynamic::Idl;

use super::calls::Sniffer;
use super::each;
use super::types::Types;
use wire::{Capture, Flag, Form, Line, USUAL, fragments};

const IDL: &str = "module Bank { typedef sequence<long> Coins; exception Broke { double missing; };
    interface Account { double deposit(in double amount, in Coins coins, out string note) raises (Broke); any wrapped(in any value); }; };";

/// A small deterministic generator, so that failures are reproducible.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

fn original(random: &mut Random) -> Vec<u8> {
    let (mut capture, mut line) = (Capture::new(), Line::new("10.0.0.1:1", "10.0.0.2:2"));
    capture.open(&mut line);
    for id in 0..4 {
        let [request, reply] = USUAL.deposit(id, 1.0, &[1, 2, 3, 4, 5, 6, 7, 8]);
        let request = if id % 2 == 0 { fragments(&request, &[48, 64]) } else { request };
        // In segments, some of which arrive out of order or never.
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
fn mutilated_captures_harm_nothing() {
    let mut random = Random(0x5eed_1234_5678_9abc);
    let mut messages = 0;
    let idl = Idl::parse(IDL).unwrap();
    let mut types = [Types::new(Some(idl), &[]).unwrap(), Types::new(None, &[]).unwrap()];
    for round in 0..1500 {
        let mut file = original(&mut random);
        for _ in 0..random.below(12) {
            if file.is_empty() {
                break;
            }
            let at = random.below(file.len());
            match random.below(5) {
                0 => file.truncate(at.max(40)),
                1 => file[at] ^= 1 << random.below(8),
                2 => file[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                3 => {
                    let until = (at + random.below(64)).min(file.len());
                    file.drain(at..until);
                }
                _ => {
                    let until = (at + random.below(64)).min(file.len());
                    let copied = file[at..until].to_vec();
                    let to = random.below(file.len());
                    file.splice(to..to, copied);
                }
            }
        }
        let mut sniffer = Sniffer::new(std::mem::take(&mut types[round % 2]), Default::default());
        // The file need not be a valid capture any more.
        let _ = each(Cursor::new(&file), "it", |number, time, happened| {
            sniffer.happened(number, time, happened, &mut |seen| {
                assert!(serde_json::to_string(&seen.told).is_ok());
                assert!(super::show::text(&seen.told).lines().count() >= 1);
            });
            Ok(())
        });
        types[round % 2] = std::mem::take(&mut sniffer.types);
        messages += sniffer.counts.messages;
        assert_eq!(sniffer.held(), (0, 0), "all that was kept was given up at the end");
    }
    // The captures are similar enough to valid ones that some messages are read.
    assert!(messages > 1500, "{messages}");
}
