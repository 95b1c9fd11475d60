//! Resources shared by many connections: requests in flight, and memory. No connection starves the others
//! permanently.

use std::sync::Arc;
use std::time::Duration;

use crate::util;
use crate::util::messages::{Ask, fragmented};
use crate::util::{Cut, Pair};
use giop_codec::Version;
use giop_codec::cdr::CdrDecode;
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{ReplyStatus, ResponseFlags};
use giop_proto::pool::WINDOW_SIZE;
use giop_proto::{BufferPool, Config, Limit, Limits, Reply, RequestBudget, Role};

/// The interval at which a connection looks for memory.
const LOOK: Duration = Duration::from_millis(5);

fn exception(reply: &Reply) -> SystemException {
    assert_eq!(reply.status(), ReplyStatus::SystemException);
    SystemException::decode(&mut reply.body()).unwrap()
}

fn client() -> Config {
    Config::new(Role::Client, Arc::default(), Arc::new(BufferPool::new(64 << 20)))
}

/// Returns two pairs whose servers share a budget and a pool.
fn two(budget: usize, cap: usize) -> [Pair; 2] {
    let (budget, pool) = (Arc::new(RequestBudget::new(budget)), Arc::new(BufferPool::new(cap)));
    [(), ()].map(|()| {
        let config = |role| Config::new(role, Arc::new(Limits::default()), Arc::clone(&pool));
        let mut server = config(Role::Server);
        server.budget = Arc::clone(&budget);
        Pair::with_configs(Cut::Whole, client(), server)
    })
}

fn hits(pair: &Pair, limit: Limit) -> u32 {
    pair.server.conn.stats().limit_hits.of(limit)
}

fn answer_all(pair: &mut Pair) -> usize {
    let mut answered = 0;
    while let Some(request) = pair.server.requests.pop_front() {
        pair.answer(&request, b"");
        pair.drive();
        answered += 1;
    }
    answered
}

#[test]
fn requests_over_the_limit_of_all_connections_are_shed() {
    let [mut one, mut other] = two(20, 64 << 20);
    let calls: Vec<_> = (0..30).map(|_| one.call(&Ask::default())).collect();
    one.drive();
    assert_eq!(one.server.requests.len(), 21, "the first of a connection is not counted");
    assert_eq!((hits(&one, Limit::TotalRequests), one.server.conn.stats().requests_refused), (9, 9));
    for call in &calls[21..] {
        let shed = exception(&one.client.outcome(*call).unwrap());
        assert_eq!((shed.kind, shed.minor), (SystemExceptionKind::Transient, minor::TRANSIENT_OVERLOADED));
        assert_eq!(shed.completed, CompletionStatus::No);
    }
    // Another connection is still served, one request at a time.
    let calls = [(); 3].map(|()| other.call(&Ask::default()));
    other.drive();
    assert_eq!((other.server.requests.len(), hits(&other, Limit::TotalRequests)), (1, 2));
    assert_eq!(answer_all(&mut other), 1);
    assert!(other.client.outcome(calls[0]).unwrap().status() == ReplyStatus::NoException);
    // The other connection can use what the first one returns when it is quiet.
    assert_eq!(answer_all(&mut one), 21);
    one.wait(Duration::from_secs(2));
    for _ in 0..15 {
        other.call(&Ask::default());
    }
    other.drive();
    assert_eq!((other.server.requests.len(), hits(&other, Limit::TotalRequests)), (15, 2));
}

#[test]
fn oneways_over_the_limit_of_all_connections_wait() {
    for version in [Version::V1_0, Version::V1_2] {
        let [mut one, mut other] = two(3, 64 << 20);
        for _ in 0..4 {
            one.call(&Ask::default());
        }
        one.drive();
        assert_eq!(one.server.requests.len(), 4);
        for id in 0..5 {
            let oneway = Ask { version, id: 1000 + 2 * id, response: ResponseFlags::None, ..Ask::default() };
            other.server.inject(&oneway.octets());
        }
        other.drive();
        for left in (0..5).rev() {
            assert_eq!(other.server.requests.len(), 1, "{left} more wait");
            assert_eq!(other.server.conn.wants_read(), left == 0);
            let request = other.request();
            other.server.conn.request(request.token()).finish();
            other.drive();
        }
        assert_eq!((other.server.conn.stats().requests_refused, other.server.requests.len()), (0, 0));
        assert!(hits(&other, Limit::TotalRequests) >= 4);
        assert_eq!(answer_all(&mut one), 4);
    }
}

#[test]
fn a_connection_that_ends_gives_its_part_back() {
    let budget = Arc::new(RequestBudget::new(100));
    let mut config = client();
    (config.role, config.accepts_requests) = (Role::Server, true);
    config.budget = Arc::clone(&budget);
    let mut pair = Pair::with_configs(Cut::Whole, client(), config);
    for _ in 0..50 {
        pair.call(&Ask::default());
    }
    pair.drive();
    assert!(budget.taken() >= 49);
    pair.server.conn.abort(giop_proto::CloseReason::Local);
    assert!(budget.taken() >= 49, "the servants are still at it");
    drop(pair);
    assert_eq!(budget.taken(), 0);
}

#[test]
fn what_is_decoded_counts_against_the_memory_of_all() {
    let [mut one, mut other] = two(1000, 8 * WINDOW_SIZE);
    let call = one.call(&Ask { body: vec![1; 100], ..Ask::default() });
    one.drive();
    let request = one.request();
    // The servant's arguments, which may be larger than the pool.
    one.pool.charge_outside(100 * WINDOW_SIZE);
    one.call(&Ask::default());
    one.drive(); // this one is read, then no more is
    other.call(&Ask::default());
    other.drive();
    for pair in [&mut one, &mut other] {
        assert!(!pair.server.conn.wants_read());
        pair.wait(LOOK);
        pair.call(&Ask::default());
        pair.drive();
        assert!(hits(pair, Limit::Pool) > 0, "it is counted");
    }
    one.pool.discharge_outside(100 * WINDOW_SIZE);
    one.answer(&request, b"");
    for pair in [&mut one, &mut other] {
        pair.wait(LOOK);
        pair.wait(LOOK);
        assert!(pair.server.conn.wants_read());
    }
    assert_eq!((one.server.requests.len(), other.server.requests.len()), (2, 2));
    assert!(one.client.outcome(call).is_ok());
}

#[test]
fn connection_that_awaits_replies_reads_beyond_the_memory_limit() {
    let [mut one, _] = two(1000, 8 * WINDOW_SIZE);
    one.pool.charge_outside(100 * WINDOW_SIZE);
    one.client.conn.set_accepts_requests(true);
    let back = one.server.conn.start_call(None, one.now).unwrap();
    let id = one.server.conn.call(back).request_id().0;
    one.server.conn.call(back).send_request(&mut Ask { id, ..Ask::default() }.encoder());
    one.drive();
    assert!(one.server.conn.wants_read());
    let inner = one.client.requests.pop_front().unwrap();
    let body = vec![7; 20 * WINDOW_SIZE];
    let mut reply = util::messages::reply(Version::V1_2, inner.id(), ReplyStatus::NoException, &body);
    one.client.conn.request(inner.token()).send_reply(&mut reply);
    one.drive();
    assert!(one.server.outcome(back).unwrap().body().rest() == body);
}

#[test]
fn messages_that_hold_all_memory_and_wait_for_more_come_through_one_by_one() {
    let pool = Arc::new(BufferPool::new(40 * WINDOW_SIZE));
    let config = |role| Config::new(role, Arc::default(), Arc::clone(&pool));
    let octets = Ask { body: vec![3; 16 * WINDOW_SIZE], ..Ask::default() }.octets();
    let mut pairs: Vec<_> =
        (0..8).map(|_| Pair::with_configs(Cut::Whole, client(), config(Role::Server))).collect();
    // Each of them gets a part of the memory.
    for to in (WINDOW_SIZE / 2..octets.len()).step_by(WINDOW_SIZE / 2) {
        for pair in &mut pairs {
            pair.server.inject(&octets[to - WINDOW_SIZE / 2..to]);
            pair.drive();
        }
    }
    for pair in &mut pairs {
        pair.server.inject(&octets[octets.len() - octets.len() % (WINDOW_SIZE / 2)..]);
    }
    let waiting = |pairs: &[Pair]| pairs.iter().filter(|pair| !pair.server.conn.wants_read()).count();
    assert!(waiting(&pairs) > 1, "they wait for each other");
    let mut came = 0;
    for _ in 0..2000 {
        for pair in &mut pairs {
            pair.wait(LOOK);
            if let Some(request) = pair.server.requests.pop_front() {
                assert!(request.message() == &octets);
                pair.server.conn.request(request.token()).finish();
                came += 1;
            }
        }
    }
    assert_eq!(came, 8);
    assert!(pairs.iter().any(|pair| hits(pair, Limit::Pool) > 0));
    drop(pairs);
    assert!(pool.take(39 * WINDOW_SIZE).capacity() > 0);
    assert!(pool.stats().held <= 40 * WINDOW_SIZE, "nothing stays past the cap");
}

#[test]
fn pieces_of_messages_count_against_the_memory_of_all() {
    let [mut one, other] = two(1000, 8 * WINDOW_SIZE);
    let octets = Ask { body: vec![3; 20_000], ..Ask::default() }.octets();
    let pieces = fragmented(&octets, 4096, 4096 - 16);
    for piece in &pieces[..3] {
        one.server.inject(piece);
        one.drive();
    }
    let outside = one.pool.stats().outside;
    assert!((12_000..40_000).contains(&outside), "{outside}");
    for piece in &pieces[3..] {
        one.server.inject(piece);
    }
    one.drive();
    assert!(one.request().message().len() == octets.len());
    assert_eq!(one.pool.stats().outside, 0);
    one.server.inject(&pieces[0]);
    one.drive();
    assert!(one.pool.stats().outside > 0);
    drop(one);
    assert_eq!(other.pool.stats().outside, 0);
}
