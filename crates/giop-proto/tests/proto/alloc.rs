//! In steady state no message causes an allocation, in either machine.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use giop_codec::cdr::Encoder;
use giop_codec::giop::{
    MessageType, ReplyHeader, ReplyStatus, RequestTemplate, ResponseFlags, ServiceContexts, TargetAddress,
    begin_body, finish_message, put_message_header,
};
use giop_codec::{ByteOrder, Version};
use giop_proto::outbox::MAX_SLICES;
use giop_proto::{BufferPool, Config, Connection, Event, Limits, Role};

const ROUNDS: u64 = 300;

/// Two machines, and the encoders that their callers reuse.
struct Lab {
    client: Connection,
    server: Connection,
    request: Encoder,
    reply: Encoder,
    template: RequestTemplate,
    now: Instant,
}

impl Lab {
    fn new(version: Version) -> Self {
        let (now, order) = (Instant::now(), ByteOrder::NATIVE);
        let pool = Arc::new(BufferPool::new(64 << 20));
        let machine =
            |role| Connection::new(Config::new(role, Arc::new(Limits::default()), Arc::clone(&pool)), now);
        Self {
            client: machine(Role::Client),
            server: machine(Role::Server),
            request: Encoder::new(order, version),
            reply: Encoder::new(order, version),
            template: RequestTemplate::new(version, order, TargetAddress::Key(b"key"), "operation").unwrap(),
            now,
        }
    }

    /// Queues a request. A oneway without a body counts as a call.
    fn send(&mut self, oneway: bool, body: Option<&Bytes>) {
        let response = if oneway { ResponseFlags::None } else { ResponseFlags::Target };
        let call = (!oneway)
            .then(|| self.client.start_call(Some(self.now + Duration::from_secs(60)), self.now).unwrap());
        let id = match call {
            Some(call) => self.client.call(call).request_id(),
            None => self.client.next_oneway_id(),
        };
        let layout = self.template.encode(&mut self.request, id, response, &ServiceContexts::EMPTY).unwrap();
        if let Some(body) = body {
            begin_body(&mut self.request);
            self.request.put_len(body.len()).unwrap();
            self.request.put_shared_ref(body);
        }
        finish_message(&mut self.request, layout.message_size_at).unwrap();
        match call {
            Some(call) => self.client.call(call).send_request(&mut self.request),
            None => self.client.send_oneway(&mut self.request).unwrap(),
        }
    }

    /// Transfers everything, serves it, and transfers the replies back. Returns the numbers of requests and
    /// replies.
    fn exchange(&mut self, body: Option<&Bytes>) -> (u64, u64) {
        let (mut requests, mut replies) = (0, 0);
        carry(&mut self.client, &mut self.server, self.now, |server, event| {
            let Event::Request(request) = event else { panic!("{event:?}") };
            requests += 1;
            assert_eq!(request.operation(), "operation");
            if !request.response().expects_reply() {
                return server.request(request.token()).finish();
            }
            let size_at = put_message_header(&mut self.reply, MessageType::Reply);
            ReplyHeader::new(request.id(), ReplyStatus::NoException).encode(&mut self.reply).unwrap();
            if let Some(body) = body {
                let mut arguments = request.arguments();
                let len = arguments.read_len(1).unwrap();
                let octets = arguments.take_shared(len).unwrap();
                assert_eq!(octets.len(), body.len());
                begin_body(&mut self.reply);
                self.reply.put_len(len).unwrap();
                self.reply.put_shared(octets);
            }
            finish_message(&mut self.reply, size_at).unwrap();
            server.request(request.token()).send_reply(&mut self.reply);
        });
        carry(&mut self.server, &mut self.client, self.now, |client, event| {
            let Event::Reply(call) = event else { panic!("{event:?}") };
            replies += 1;
            let reply = client.call(call).take_outcome().unwrap().unwrap();
            assert_eq!(reply.status(), ReplyStatus::NoException);
        });
        (requests, replies)
    }
}

/// Moves what is queued from one machine to the other and passes the events of every read to `each`.
fn carry(
    from: &mut Connection,
    to: &mut Connection,
    now: Instant,
    mut each: impl FnMut(&mut Connection, Event),
) {
    while let Some(mut transmit) = from.take_transmit() {
        while !transmit.is_empty() {
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let used = transmit.io_slices(&mut slices);
            let mut buf = to.take_read_buf();
            let mut n = 0;
            'fill: for into in &mut buf.io_slices() {
                let mut at = 0;
                while at < into.len() {
                    let Some(rest) = nth_octet(&slices[..used], n) else { break 'fill };
                    let len = rest.len().min(into.len() - at);
                    into[at..at + len].copy_from_slice(&rest[..len]);
                    (at, n) = (at + len, n + len);
                }
            }
            transmit.advance(n);
            to.handle_read(buf, n, now);
            while let Some(event) = to.poll_event() {
                each(to, event);
            }
        }
        from.handle_written(transmit, now);
    }
}

/// Returns the remainder, from byte `n` of all slices together, of the slice that holds that byte.
fn nth_octet<'a>(slices: &'a [IoSlice<'a>], mut n: usize) -> Option<&'a [u8]> {
    for slice in slices {
        if n < slice.len() {
            return Some(&slice[n..]);
        }
        n -= slice.len();
    }
    None
}

fn assert_no_allocations(what: &str, mut round: impl FnMut()) {
    for _ in 0..20 {
        round();
    }
    let counted = allocation_counter::measure(|| (0..ROUNDS).for_each(|_| round()));
    assert_eq!(counted.count_total, 0, "{what}: {counted:?}");
}

#[test]
fn a_ping_allocates_nothing() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let mut lab = Lab::new(version);
        assert_no_allocations("ping", || {
            lab.send(false, None);
            assert_eq!(lab.exchange(None), (1, 1));
        });
    }
}

#[test]
fn gathered_oneways_allocate_nothing() {
    let mut lab = Lab::new(Version::V1_2);
    let body = Bytes::from(vec![b'a'; 1024]);
    assert_no_allocations("oneways", || {
        for _ in 0..100 {
            lab.send(true, Some(&body));
        }
        assert_eq!(lab.exchange(None), (100, 0));
    });
}

#[test]
fn pipelined_calls_allocate_nothing() {
    let mut lab = Lab::new(Version::V1_2);
    let body = Bytes::from(vec![b'a'; 100]);
    assert_no_allocations("pipeline", || {
        for _ in 0..64 {
            lab.send(false, Some(&body));
        }
        assert_eq!(lab.exchange(Some(&body)), (64, 64));
    });
}

#[test]
fn octet_sequences_of_any_size_allocate_nothing() {
    for len in [4096, 20_000, 64 << 10, 300_000, 1 << 20] {
        let mut lab = Lab::new(Version::V1_2);
        let body = Bytes::from(vec![b'a'; len]);
        assert_no_allocations(&format!("echo of {len} octets"), || {
            lab.send(false, Some(&body));
            assert_eq!(lab.exchange(Some(&body)), (1, 1));
        });
        assert_no_allocations(&format!("oneways of {len} octets"), || {
            for _ in 0..3 {
                lab.send(true, Some(&body));
            }
            assert_eq!(lab.exchange(None), (3, 0));
        });
    }
}
