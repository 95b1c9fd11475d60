//! Bulk data in structs, in arrays and in several arguments. Between two zorbs, each block is received into a
//! buffer of its own. To a server whose reference does not identify it as zorb, plain IIOP is sent.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use giop_codec::cdr::Decoder;
use giop_codec::giop::{BlockList, ContextId, Message, MessageHeader, MessageType, ServiceContexts};
use giop_codec::ior::ComponentTag;
use test_support::transport;
use zorb::ByteStream;
use zorb::prelude::*;
use zorb::wire::{IiopProfile, Ior};

zorb::idl! {
    module Bulk {
        typedef sequence<octet> Octets;
        typedef sequence<double> Doubles;
        typedef sequence<Octets> OctetsList;
        @zero_copy struct Sample { double value; unsigned long long at; };
        typedef sequence<Sample> Samples;
        struct Frame {
            unsigned long number;
            Octets left;
            string name;
            Octets right;
        };
        interface Store {
            Frame swap(in Frame frame);
            OctetsList turn(in OctetsList list);
            Doubles many(in Octets one, in short small, in Doubles two, inout Samples three, out Octets four);
            oneway void push(in Frame frame);
            unsigned long settle();
            Octets small_and_large(in Octets small, in Octets large);
        };
        interface Taker {
            unsigned long long take(in short salt, @stream in Octets data);
        };
    };
}

#[derive(Default)]
struct Store {
    pushed: Mutex<u32>,
    /// Page offsets of blocks that are not at the start of a page.
    elsewhere: Mutex<Vec<usize>>,
}

/// Minimum size of a member that is sent as a block, bytes.
const LEAST: usize = 64 * 1024;

fn offset_in_page<T>(items: &[T]) -> usize {
    if size_of_val(items) < LEAST { 0 } else { items.as_ptr().addr() % 4096 }
}

impl Store {
    fn look(&self, blocks: &[usize]) {
        self.elsewhere.lock().unwrap().extend(blocks.iter().filter(|at| **at != 0));
    }
}

impl bulk::StoreServant for Arc<Store> {
    async fn swap(&self, frame: &bulk::Frame) -> Result<bulk::Frame, SystemException> {
        self.look(&[offset_in_page(&frame.left), offset_in_page(&frame.right)]);
        let bulk::Frame { number, left, name, right } = frame.clone();
        Ok(bulk::Frame { number: number + 1, left: right, name, right: left })
    }
    async fn turn(&self, list: &[Bytes]) -> Result<Vec<Bytes>, SystemException> {
        list.iter().for_each(|octets| self.look(&[offset_in_page(octets)]));
        Ok(list.iter().rev().cloned().collect())
    }
    async fn many(
        &self,
        one: Bytes,
        small: i16,
        two: Seq<f64>,
        three: Seq<bulk::Sample>,
    ) -> Result<(Seq<f64>, Seq<bulk::Sample>, Bytes), SystemException> {
        assert_eq!(small, 7);
        self.look(&[offset_in_page(&one), offset_in_page(&two), offset_in_page(&three)]);
        Ok((two, three, one))
    }
    async fn push(&self, frame: &bulk::Frame) -> Result<(), SystemException> {
        self.look(&[offset_in_page(&frame.left), offset_in_page(&frame.right)]);
        *self.pushed.lock().unwrap() += 1;
        Ok(())
    }
    async fn settle(&self) -> Result<u32, SystemException> {
        Ok(*self.pushed.lock().unwrap())
    }
    async fn small_and_large(&self, small: Bytes, _large: Bytes) -> Result<Bytes, SystemException> {
        Ok(small)
    }
}

struct Taker;

impl bulk::TakerServant for Taker {
    async fn take(&self, _salt: i16, data: ByteStream) -> Result<u64, SystemException> {
        Ok(data.collect(1 << 24).await?.iter().map(|octet| u64::from(*octet)).sum())
    }
}

fn octets(len: usize, salt: usize) -> Bytes {
    (0..len).map(|i| ((i + salt) % 251) as u8).collect()
}

fn frame(len: usize) -> bulk::Frame {
    bulk::Frame { number: 1, left: octets(len, 1), name: "camera".into(), right: octets(len + 1, 2) }
}

fn samples(n: usize) -> Seq<bulk::Sample> {
    (0..n).map(|i| bulk::Sample { value: i as f64, at: i as u64 }).collect()
}

struct Two {
    client: Orb,
    server: Orb,
    servant: Arc<Store>,
    store: bulk::StoreRef,
}

async fn two() -> Two {
    let server = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let servant = Arc::new(Store::default());
    let published: bulk::StoreRef = server.activate_named("store", Arc::clone(&servant)).unwrap();
    let client = transport::builder().build().await.unwrap();
    let store = client.resolve(&published.to_string()).await.unwrap();
    Two { client, server, servant, store }
}

/// Makes every call, with members of length `len`, and checks results and their placement.
async fn call_all(store: &bulk::StoreRef, len: usize, apart: bool) {
    let at_a_page =
        |blocks: &[usize]| assert!(!apart || blocks.iter().all(|at| *at == 0), "{len}: {blocks:?}");

    let sent = frame(len);
    let swapped = store.swap(&sent).await.unwrap();
    assert_eq!((swapped.number, swapped.name.as_str()), (2, "camera"));
    assert!(swapped.left == sent.right && swapped.right == sent.left);
    at_a_page(&[offset_in_page(&swapped.left), offset_in_page(&swapped.right)]);

    let list: Vec<Bytes> = [5, 0, 3, 7].map(|i| octets(len + i, i)).into();
    let turned = store.turn(&list).await.unwrap();
    assert!(turned.iter().rev().eq(&list));
    turned.iter().for_each(|octets| at_a_page(&[offset_in_page(octets)]));

    let (one, two) = (octets(len, 9), (0..len / 8).map(|i| i as f64).collect::<Seq<f64>>());
    let three = samples(len / 16);
    let (doubles, inout, out) = store.many(one.clone(), 7, &two, &three).await.unwrap();
    assert!(doubles == two && inout == three && out == one);
    at_a_page(&[offset_in_page(&doubles), offset_in_page(&inout), offset_in_page(&out)]);
}

#[tokio::test]
async fn each_member_argument_and_result_is_aligned_in_a_buffer_of_its_own() {
    let two = two().await;
    // The first exchange announces each side to the other.
    call_all(&two.store, 100_000, false).await;
    two.servant.elsewhere.lock().unwrap().clear();
    for len in [LEAST, 100_000, 1 << 20] {
        call_all(&two.store, len, true).await;
    }
    assert!(two.servant.elsewhere.lock().unwrap().is_empty());
    for len in [0, 1, 5000, 20_000, LEAST - 1] {
        call_all(&two.store, len, false).await;
    }
    transport::assert_used(&two.client);
    transport::assert_used(&two.server);
}

#[tokio::test]
async fn nothing_of_a_block_is_copied() {
    const N: u64 = 20;
    let Two { client, server, servant, store } = two().await;
    let frame = frame(1 << 18);
    let counts = || (client.stats(), server.stats(), client.pool_stats(), server.pool_stats());
    for _ in 0..4 {
        store.swap(&frame).await.unwrap();
    }
    servant.elsewhere.lock().unwrap().clear();
    let before = counts();
    for _ in 0..N {
        store.swap(&frame).await.unwrap();
    }
    let after = counts();
    for (before, after) in [(before.0, after.0), (before.1, after.1)] {
        assert!(
            after.bytes_copied_in - before.bytes_copied_in <= N * 512,
            "{}",
            after.bytes_copied_in - before.bytes_copied_in
        );
        assert!(
            after.bytes_copied_out - before.bytes_copied_out <= N * 512,
            "{}",
            after.bytes_copied_out - before.bytes_copied_out
        );
    }
    // A reply may arrive before the block of its request is free again: one more block in all, not one for
    // each call.
    for (before, after) in [(before.2, after.2), (before.3, after.3)] {
        assert!(after.misses - before.misses <= 2, "{} misses", after.misses - before.misses);
    }

    for _ in 0..N {
        store.push(&frame).await.unwrap();
    }
    assert_eq!(store.settle().await.unwrap(), N as u32);
    let pushed = counts();
    // At the start and end of a stream, part of a message may be in a window with others.
    assert!(pushed.1.bytes_copied_in - after.1.bytes_copied_in <= N * 512 + 64 * 1024);
    assert!(servant.elsewhere.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_a_client_holds_of_one_member_frees_the_others() {
    let two = two().await;
    let frame = frame(1 << 20);
    let mut held = Vec::new();
    for _ in 0..4 {
        two.store.swap(&frame).await.unwrap();
    }
    let before = two.client.pool_stats();
    for _ in 0..8 {
        let swapped = two.store.swap(&frame).await.unwrap();
        held.push(swapped.left.slice(..10));
    }
    let after = two.client.pool_stats();
    // One block of a mebibyte is kept each time, the other one is not.
    let grown = after.held - before.held;
    assert!(grown <= 8 * ((1 << 20) * 5 / 4 + 64 * 1024), "{grown}");
    assert!(held.iter().all(|part| *part == frame.right.slice(..10)));
}

#[tokio::test]
async fn streams_and_small_calls_may_come_between() {
    let two = two().await;
    let published: bulk::TakerRef = two.server.activate_named("taker", Taker).unwrap();
    let taker: bulk::TakerRef = two.client.resolve(&published.to_string()).await.unwrap();
    for round in 0..6 {
        call_all(&two.store, 100_000, round > 0).await;
        for len in [100, 20_000, 70_000, 150_000, 1 << 20] {
            let sent = octets(len + round, 3);
            let sum = sent.iter().map(|octet| u64::from(*octet)).sum::<u64>();
            assert_eq!(taker.take(1, sent).await.unwrap(), sum);
            if len > 50_000 {
                call_all(&two.store, 70_000, round > 0).await;
            }
            let (small, large) = (octets(len, 1), octets(len * 2, 2));
            assert_eq!(two.store.small_and_large(small.clone(), large).await.unwrap(), small);
        }
    }
}

/// The recorded output of one side of a relay.
type Record = Arc<Mutex<Vec<u8>>>;

/// Forwards all data of its port and records it.
fn relay(to: u16) -> (u16, Record, Record) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (requests, replies) = (Record::default(), Record::default());
    let kept = (Arc::clone(&requests), Arc::clone(&replies));
    std::thread::spawn(move || {
        let client = listener.accept().unwrap().0;
        let server = TcpStream::connect(("127.0.0.1", to)).unwrap();
        let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::spawn(move || hand_on(back.0, back.1, &kept.1));
        hand_on(client, server, &kept.0);
    });
    (port, requests, replies)
}

fn hand_on(mut from: TcpStream, mut to: TcpStream, record: &Record) {
    let mut octets = vec![0; 1 << 16];
    while let Ok(n @ 1..) = from.read(&mut octets) {
        record.lock().unwrap().extend_from_slice(&octets[..n]);
        if to.write_all(&octets[..n]).is_err() {
            return;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// Returns the messages of a record: their contexts, their bodies and the messages themselves.
fn messages(record: &Record) -> Vec<(Vec<ContextId>, Vec<u8>, Vec<u8>)> {
    let octets = record.lock().unwrap().clone();
    let (mut rest, mut found) = (&octets[..], Vec::new());
    while let Some(start) = rest.first_chunk() {
        let header = MessageHeader::decode(start).unwrap();
        let (message, behind) = rest.split_at(12 + header.size as usize);
        let mut d = Decoder::new(message, header.order, header.version).at(12);
        let contexts: ServiceContexts<'_> = Message::decode(header.kind, &mut d).unwrap().contexts();
        assert!(matches!(header.kind, MessageType::Request | MessageType::Reply));
        found.push((
            contexts.iter().map(|context| context.id).collect(),
            d.rest().to_vec(),
            message.to_vec(),
        ));
        rest = behind;
    }
    found
}

/// Makes the same calls through a relay, by a reference with or without zorb's component.
async fn recorded(with_component: bool) -> (Record, Record) {
    let Two { client, store, server, .. } = two().await;
    let mut profile = IiopProfile::from_tagged(&store.ior().profiles[0]).unwrap();
    assert!(profile.component(ComponentTag::ZORB_BLOCKS).is_some());
    let (port, requests, replies) = relay(profile.port);
    profile.port = port;
    profile.components.retain(|component| with_component || component.tag != ComponentTag::ZORB_BLOCKS);
    let ior = Ior::from_profiles(&store.ior().type_id, &[profile]).unwrap();
    let relayed: bulk::StoreRef = client.resolve(&ior.to_string()).await.unwrap();
    for _ in 0..2 {
        call_all(&relayed, 100_000, false).await;
    }
    drop(server);
    (requests, replies)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_orbs_get_plain_iiop() {
    let plain = recorded(false).await;
    let listed = recorded(true).await;
    for (plain, listed) in [(&plain.0, &listed.0), (&plain.1, &listed.1)] {
        let (plain, listed) = (messages(plain), messages(listed));
        assert_eq!((plain.len(), listed.len()), (6, 6));
        for (i, (plain, listed)) in plain.iter().zip(&listed).enumerate() {
            // Code sets are announced until the first reply; nothing else is announced.
            let known = plain.0.iter().filter(|id| **id != ContextId::CODE_SETS).count();
            assert_eq!(known, 0, "{i}: {:?}", plain.0);
            assert!(listed.0.contains(&ContextId::ZORB_BLOCKS), "{i}");
            assert!(plain.1 == listed.1, "{i}: the body is the same, octet for octet");
            let header = MessageHeader::decode(listed.2.first_chunk().unwrap()).unwrap();
            let list = BlockList::read(&header, &listed.2).unwrap().unwrap();
            let lengths: Vec<usize> = list.blocks.iter().map(|(_, len)| *len).collect();
            let is_reply = header.kind == MessageType::Reply;
            let expected = match i % 3 {
                0 if is_reply => vec![100_001, 100_000],
                0 => vec![100_000, 100_001],
                1 if is_reply => vec![100_007, 100_003, 100_000, 100_005],
                1 => vec![100_005, 100_000, 100_003, 100_007],
                _ => vec![100_000; 3],
            };
            assert_eq!(lengths, expected, "{i}");
        }
    }
}

#[tokio::test]
async fn a_call_with_one_block_is_as_it_was() {
    let Two { client, server, store, .. } = two().await;
    let profile = IiopProfile::from_tagged(&store.ior().profiles[0]).unwrap();
    let (port, requests, replies) = relay(profile.port);
    let relayed = IiopProfile { port, ..profile };
    let ior = Ior::from_profiles(&store.ior().type_id, &[relayed]).unwrap();
    let relayed: bulk::StoreRef = client.resolve(&ior.to_string()).await.unwrap();
    let (small, large) = (octets(10, 1), octets(1 << 20, 2));
    for _ in 0..3 {
        assert_eq!(relayed.small_and_large(small.clone(), large.clone()).await.unwrap(), small);
    }
    drop(server);
    let requests = messages(&requests);
    // The first one identifies the client; later ones have no contexts.
    assert_eq!(requests[0].0, [ContextId::CODE_SETS, ContextId::ZORB_BLOCKS]);
    assert!(requests[1..].iter().chain(&messages(&replies)).all(|message| message.0.is_empty()));
}

#[tokio::test]
async fn copying_orbs_neither_list_blocks_nor_say_that_they_read_lists() {
    let server = transport::builder().zero_copy(false).listen("iiop://127.0.0.1:0").build().await.unwrap();
    let published: bulk::StoreRef = server.activate_named("store", Arc::<Store>::default()).unwrap();
    let profile = IiopProfile::from_tagged(&published.ior().profiles[0]).unwrap();
    assert!(profile.component(ComponentTag::ZORB_BLOCKS).is_none());
    let client = transport::builder().build().await.unwrap();
    let store: bulk::StoreRef = client.resolve(&published.to_string()).await.unwrap();
    call_all(&store, 100_000, false).await;
    let two = two().await;
    let copying = transport::builder().zero_copy(false).build().await.unwrap();
    let store: bulk::StoreRef = copying.resolve(&two.store.to_string()).await.unwrap();
    call_all(&store, 100_000, false).await;
}
