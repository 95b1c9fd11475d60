//! Captures that are made by hand: messages, segments, packets, files.
#![allow(dead_code, reason = "not every test that includes it uses all of it")]

use std::net::{IpAddr, SocketAddr};

use etherparse::PacketBuilder;
use giop_codec::cdr::Encoder;
use giop_codec::giop::{
    MessageHeader, MessageType, ReplyHeader, ReplyStatus, RequestHeader, RequestId, ResponseFlags,
    ServiceContext, ServiceContexts, TargetAddress, begin_body, finish_message, put_message_header,
};
use giop_codec::{ByteOrder, Version};

/// How the messages of a side are made.
#[derive(Clone, Copy)]
pub(crate) struct Form(pub(crate) Version, pub(crate) ByteOrder);

pub(crate) const USUAL: Form = Form(Version::V1_2, ByteOrder::Little);

impl Form {
    pub(crate) fn message(self, kind: MessageType, put: impl FnOnce(&mut Encoder)) -> Vec<u8> {
        let mut e = Encoder::new(self.1, self.0);
        let size_at = put_message_header(&mut e, kind);
        put(&mut e);
        finish_message(&mut e, size_at).unwrap();
        e.head().to_vec()
    }

    pub(crate) fn request(
        self,
        id: u32,
        key: &[u8],
        operation: &str,
        contexts: &[ServiceContext],
        body: impl FnOnce(&mut Encoder),
    ) -> Vec<u8> {
        self.message(MessageType::Request, |e| {
            let header = RequestHeader {
                request_id: RequestId(id),
                response: if operation == "poke" { ResponseFlags::None } else { ResponseFlags::Target },
                target: TargetAddress::Key(key),
                operation,
                contexts: ServiceContexts::from(contexts),
            };
            header.encode(e).unwrap();
            begin_body(e);
            body(e);
        })
    }

    pub(crate) fn reply(
        self,
        id: u32,
        status: ReplyStatus,
        contexts: &[ServiceContext],
        body: impl FnOnce(&mut Encoder),
    ) -> Vec<u8> {
        self.message(MessageType::Reply, |e| {
            let contexts = ServiceContexts::from(contexts);
            ReplyHeader { request_id: RequestId(id), status, contexts }.encode(e).unwrap();
            begin_body(e);
            body(e);
        })
    }

    /// `Bank::Account.deposit` and its answer.
    pub(crate) fn deposit(self, id: u32, amount: f64, coins: &[i32]) -> [Vec<u8>; 2] {
        let request = self.request(id, b"Account", "deposit", &[], |e| {
            e.put_f64(amount);
            e.put_len(coins.len()).unwrap();
            coins.iter().for_each(|coin| e.put_i32(*coin));
        });
        let reply = self.reply(id, ReplyStatus::NoException, &[], |e| {
            e.put_f64(amount + 1.0);
            e.put_unconverted_str("thanks").unwrap();
        });
        [request, reply]
    }
}

/// A message in fragments, cut at these offsets from its beginning.
pub(crate) fn fragments(message: &[u8], cuts: &[usize]) -> Vec<u8> {
    let header = MessageHeader::decode(message.first_chunk().unwrap()).unwrap();
    let bounds: Vec<usize> = [&[MessageHeader::LEN][..], cuts, &[message.len()]].concat();
    let mut all = Vec::new();
    for (at, piece) in bounds.windows(2).enumerate() {
        let mut body = message[piece[0]..piece[1]].to_vec();
        let kind = if at == 0 { header.kind } else { MessageType::Fragment };
        if at > 0 && header.version == Version::V1_2 {
            // The number of the message that it continues.
            body.splice(..0, message[12..16].iter().copied());
        }
        let more_fragments = piece[1] < message.len();
        let piece = MessageHeader { kind, more_fragments, size: body.len() as u32, ..header };
        all.extend(piece.encode());
        all.extend(body);
    }
    all
}

/// Packets of one connection or several.
pub(crate) struct Capture {
    packets: Vec<(u64, Vec<u8>)>,
    time: u64,
}

/// A connection in a capture.
pub(crate) struct Line {
    client: SocketAddr,
    server: SocketAddr,
    sent: [u32; 2],
}

impl Line {
    pub(crate) fn new(client: &str, server: &str) -> Self {
        Self { client: client.parse().unwrap(), server: server.parse().unwrap(), sent: [u32::MAX - 20, 7] }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flag {
    Syn,
    Data,
    Fin,
}

impl Capture {
    pub(crate) fn new() -> Self {
        Self { packets: Vec::new(), time: 1_700_000_000_000_000 }
    }

    pub(crate) fn open(&mut self, line: &mut Line) {
        for from_client in [true, false] {
            self.packet(line, from_client, Flag::Syn, 0, &[]);
            line.sent[usize::from(!from_client)] = line.sent[usize::from(!from_client)].wrapping_add(1);
        }
        self.packet(line, true, Flag::Data, 0, &[]);
    }

    /// Sends from one side, in segments of up to 1,400 bytes.
    pub(crate) fn send(&mut self, line: &mut Line, from_client: bool, octets: &[u8]) {
        for piece in octets.chunks(1400) {
            self.packet(line, from_client, Flag::Data, 0, piece);
            self.skip(line, from_client, piece.len());
        }
    }

    /// A side sends what is not captured.
    pub(crate) fn skip(&mut self, line: &mut Line, from_client: bool, octets: usize) {
        let sent = &mut line.sent[usize::from(!from_client)];
        *sent = sent.wrapping_add(octets as u32);
    }

    pub(crate) fn close(&mut self, line: &Line) {
        self.packet(line, true, Flag::Fin, 0, &[]);
        self.packet(line, false, Flag::Fin, 0, &[]);
    }

    /// A segment `ahead` of what the side has sent.
    pub(crate) fn packet(&mut self, line: &Line, from_client: bool, flag: Flag, ahead: i32, octets: &[u8]) {
        self.time += 100;
        let (from, to, at) = match from_client {
            true => (line.client, line.server, 0),
            false => (line.server, line.client, 1),
        };
        let builder = match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), 64),
            (IpAddr::V6(from), IpAddr::V6(to)) => PacketBuilder::ipv6(from.octets(), to.octets(), 64),
            _ => panic!("one family"),
        };
        let sequence = line.sent[at].wrapping_add_signed(ahead);
        let mut builder = builder.tcp(from.port(), to.port(), sequence, 65535);
        if !(flag == Flag::Syn && from_client) {
            builder = builder.ack(line.sent[1 - at]);
        }
        builder = match flag {
            Flag::Syn => builder.syn(),
            Flag::Data => builder.psh(),
            Flag::Fin => builder.fin(),
        };
        let mut packet = Vec::new();
        builder.write(&mut packet, octets).unwrap();
        self.packets.push((self.time, packet));
    }

    /// A file of tcpdump's older form.
    pub(crate) fn pcap(&self, link: u32, nanoseconds: bool, big: bool) -> Vec<u8> {
        let word = |word: u32| if big { word.to_be_bytes() } else { word.to_le_bytes() };
        let half = |half: u16| if big { half.to_be_bytes() } else { half.to_le_bytes() };
        let mut file = word(if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }).to_vec();
        file.extend([half(2), half(4)].concat());
        file.extend([word(0), word(0), word(1 << 18), word(link)].concat());
        for (time, packet) in &self.packets {
            let packet = framed(link, packet);
            let part = (time % 1_000_000) as u32 * if nanoseconds { 1000 } else { 1 };
            let len = packet.len() as u32;
            file.extend([word((time / 1_000_000) as u32), word(part), word(len), word(len)].concat());
            file.extend(packet);
        }
        file
    }

    /// A file of Wireshark's form.
    pub(crate) fn pcapng(&self, link: u16) -> Vec<u8> {
        let mut file = Vec::new();
        let mut block = |kind: u32, body: &[u8]| {
            let padded = body.len().next_multiple_of(4);
            let len = (12 + padded) as u32;
            file.extend(kind.to_le_bytes());
            file.extend(len.to_le_bytes());
            file.extend(body);
            file.resize(file.len() + padded - body.len(), 0);
            file.extend(len.to_le_bytes());
        };
        let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
        section.extend([1, 0, 0, 0]);
        section.extend(u64::MAX.to_le_bytes());
        block(0x0a0d_0d0a, &section);
        // A clock of nanoseconds.
        let mut interface = [link.to_le_bytes(), [0, 0]].concat();
        interface.extend([0, 0, 4, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        block(1, &interface);
        for (time, packet) in &self.packets {
            let packet = framed(link.into(), packet);
            let (time, len) = (time * 1000, packet.len() as u32);
            let words = [0, (time >> 32) as u32, time as u32, len, len];
            let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).chain(packet).collect();
            block(6, &body);
        }
        file
    }
}

/// A packet of IP in what its link has around it.
fn framed(link: u32, packet: &[u8]) -> Vec<u8> {
    let six = packet[0] >> 4 == 6;
    let kind: [u8; 2] = if six { [0x86, 0xdd] } else { [8, 0] };
    let mut framed = match link {
        1 => [&[2; 12][..], &kind].concat(),
        // Not a number of a link: Ethernet with a VLAN.
        1001 => [&[2; 12][..], &[0x81, 0, 0, 7], &kind].concat(),
        113 => [&[0, 0, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0][..], &kind].concat(),
        276 => [&kind[..], &[0, 0, 0, 0, 0, 1, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0]].concat(),
        0 => if six { 30_u32 } else { 2 }.to_le_bytes().to_vec(),
        108 => if six { 30_u32 } else { 2 }.to_be_bytes().to_vec(),
        _ => Vec::new(),
    };
    framed.extend(packet);
    framed
}
