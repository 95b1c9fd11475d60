//! The cost of the protocol machine without I/O: two machines in memory, joined by one copy per direction.
//!
//! `cargo bench -p giop-proto` prints nanoseconds per call (request and reply, both machines) and per oneway:
//! the minimum of several runs, because disturbances only make a loop slower.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::hint::black_box;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use giop_codec::cdr::Encoder;
use giop_codec::giop::{
    MessageType, ReplyHeader, ReplyStatus, RequestId, RequestTemplate, ResponseFlags, ServiceContexts,
    TargetAddress, begin_body, finish_message, put_message_header,
};
use giop_codec::{ByteOrder, Version};
use giop_proto::outbox::MAX_SLICES;
use giop_proto::{BufferPool, Config, Connection, Event, Limits, Role};

const RUNS: usize = 101;

fn machine(role: Role, pool: &Arc<BufferPool>, now: Instant) -> Connection {
    Connection::new(Config::new(role, Arc::new(Limits::default()), Arc::clone(pool)), now)
}

/// Moves what is queued from one machine into the other, one write and one read at a time.
fn carry(from: &mut Connection, to: &mut Connection, now: Instant) {
    let Some(mut transmit) = from.take_transmit() else { return };
    let mut buf = to.take_read_buf();
    let [into, _] = &mut buf.io_slices();
    let mut n = 0;
    if let Some(octets) = transmit.contiguous_bytes() {
        n = octets.len();
        into[..n].copy_from_slice(octets);
    } else {
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let used = transmit.io_slices(&mut slices);
        for slice in &slices[..used] {
            into[n..n + slice.len()].copy_from_slice(slice);
            n += slice.len();
        }
    }
    transmit.advance(n);
    from.handle_written(transmit, now);
    to.handle_read(buf, n, now);
}

/// Nanoseconds of one of `count` rounds.
fn best(count: u32, mut round: impl FnMut()) -> f64 {
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        for _ in 0..count {
            round();
        }
        best = best.min(start.elapsed());
    }
    best.as_secs_f64() * 1e9 / f64::from(count)
}

fn main() {
    let now = Instant::now();
    let pool = Arc::new(BufferPool::new(64 << 20));
    let (order, version) = (ByteOrder::NATIVE, Version::V1_2);
    let mut client = machine(Role::Client, &pool, now);
    let mut server = machine(Role::Server, &pool, now);
    let ping = RequestTemplate::new(version, order, TargetAddress::Key(b"ttcp"), "ping").unwrap();
    let send = RequestTemplate::new(version, order, TargetAddress::Key(b"ttcp"), "sendOctetSeq").unwrap();
    let mut request = Encoder::new(order, version);
    let mut reply = Encoder::new(order, version);
    let deadline = Some(now + Duration::from_secs(60));

    let encoding = best(10_000, || {
        let layout =
            ping.encode(&mut request, RequestId(2), ResponseFlags::Target, &ServiceContexts::EMPTY).unwrap();
        finish_message(&mut request, layout.message_size_at).unwrap();
        let size_at = put_message_header(&mut reply, MessageType::Reply);
        ReplyHeader::new(RequestId(2), ReplyStatus::NoException).encode(&mut reply).unwrap();
        finish_message(&mut reply, size_at).unwrap();
        black_box((request.head(), reply.head()));
        request.reset(order, version);
        reply.reset(order, version);
    });
    println!("encoding alone, request and reply: {encoding:.0} ns");

    let call = best(10_000, || {
        let call = client.start_call(deadline, now).unwrap();
        let layout = ping
            .encode(
                &mut request,
                client.call(call).request_id(),
                ResponseFlags::Target,
                &ServiceContexts::EMPTY,
            )
            .unwrap();
        finish_message(&mut request, layout.message_size_at).unwrap();
        client.call(call).send_request(&mut request);
        carry(&mut client, &mut server, now);
        while let Some(event) = server.poll_event() {
            let Event::Request(request) = event else { panic!("{event:?}") };
            black_box((request.key(), request.operation_name_bytes(), request.arguments()));
            let size_at = put_message_header(&mut reply, MessageType::Reply);
            ReplyHeader::new(request.id(), ReplyStatus::NoException).encode(&mut reply).unwrap();
            finish_message(&mut reply, size_at).unwrap();
            server.request(request.token()).send_reply(&mut reply);
        }
        carry(&mut server, &mut client, now);
        while let Some(event) = client.poll_event() {
            let Event::Reply(call) = event else { panic!("{event:?}") };
            black_box(client.call(call).take_outcome().unwrap().unwrap().body());
        }
    });

    println!("call, request and reply: {call:.0} ns");
    if std::env::args().any(|arg| arg == "call") {
        return;
    }
    let batch = 32;
    let payload = vec![b'a'; 1024];
    let oneways = best(400, || {
        for _ in 0..batch {
            let id = client.next_oneway_id();
            let layout = send.encode(&mut request, id, ResponseFlags::None, &ServiceContexts::EMPTY).unwrap();
            begin_body(&mut request);
            request.put_len(payload.len()).unwrap();
            request.put_raw(&payload);
            finish_message(&mut request, layout.message_size_at).unwrap();
            client.send_oneway(&mut request).unwrap();
        }
        carry(&mut client, &mut server, now);
        while let Some(event) = server.poll_event() {
            let Event::Request(request) = event else { panic!("{event:?}") };
            let mut arguments = request.arguments();
            let len = arguments.read_len(1).unwrap();
            black_box(arguments.take_shared(len).unwrap());
            server.request(request.token()).finish();
        }
    });
    println!("oneway of 1 KiB, {batch} a read: {:.0} ns", oneways / f64::from(batch));
    println!("pool: {:?}", pool.stats());
}
