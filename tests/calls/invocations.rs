//! Calls that are sent now and awaited later, and one call to many objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{Stream, StreamExt};
use test_support::transport;
use tokio::time::Instant;
use zorb::prelude::*;
use zorb::testing::{Pair, pair};
use zorb::{CompletionStatus, fan_out, minor};

zorb::idl! {
    module Kinds {
        exception Broken { string part; };
        interface Meter {
            long read(in unsigned long milliseconds) raises (Broken);
            long fail();
            oneway void reset();
        };
    };
}

use kinds::{Broken, MeterRef, MeterServant, meter::ReadError};

#[derive(Default)]
struct Counts {
    begun: AtomicUsize,
    cancelled: AtomicUsize,
    under_way: AtomicUsize,
    most: AtomicUsize,
}

impl Counts {
    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::SeqCst)
    }
}

struct Meter {
    value: i32,
    counts: Arc<Counts>,
}

impl MeterServant for Meter {
    async fn read(&self, milliseconds: u32) -> Result<i32, ReadError> {
        self.counts.begun.fetch_add(1, Ordering::SeqCst);
        let now = self.counts.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.counts.most.fetch_max(now, Ordering::SeqCst);
        let request = zorb::request();
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(milliseconds.into())) => {}
            () = request.cancelled() => {
                self.counts.cancelled.fetch_add(1, Ordering::SeqCst);
            }
        }
        self.counts.under_way.fetch_sub(1, Ordering::SeqCst);
        match self.value {
            0 => Err(Broken { part: "needle".to_owned() }.into()),
            value => Ok(value),
        }
    }

    async fn fail(&self) -> Result<i32, SystemException> {
        Err(SystemException::no_memory())
    }

    async fn reset(&self) -> Result<(), SystemException> {
        self.counts.begun.store(0, Ordering::SeqCst);
        Ok(())
    }
}

async fn meters(orbs: &Pair, values: &[i32]) -> (Vec<MeterRef>, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let mut meters = Vec::new();
    for value in values {
        let here: MeterRef =
            orbs.server.activate(Meter { value: *value, counts: Arc::clone(&counts) }).unwrap();
        meters.push(orbs.client.resolve_unchecked(&here.to_string()).await.unwrap());
    }
    (meters, counts)
}

/// Waits for requests to arrive, shorter than any timer of a servant.
async fn moment() {
    tokio::time::sleep(Duration::from_millis(2)).await;
}

// clause: poa.messaging.deferred
#[tokio::test(start_paused = true)]
async fn a_deferred_call_is_sent_before_it_is_awaited() {
    let orbs = pair();
    let (meters, counts) = meters(&orbs, &[7]).await;
    // A plain call is not sent before it is polled.
    drop(meters[0].read(50));
    moment().await;
    assert_eq!(counts.begun(), 0);
    meters[0].reset().await.unwrap();
    meters[0].flush().await.unwrap();

    let begun = Instant::now();
    let mut call = meters[0].read(50).deferred();
    assert!(!call.poll_response());
    moment().await;
    assert_eq!(counts.begun(), 1, "nobody looked at the call meanwhile");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(call.poll_response(), "the driver took the reply");
    assert_eq!(call.await.unwrap(), 7);
    assert_eq!(begun.elapsed(), Duration::from_millis(102));
}

#[tokio::test(start_paused = true)]
async fn a_deferred_call_in_this_process_is_sent_when_its_servant_has_begun() {
    let orb = transport::builder().build().await.unwrap();
    let counts = Arc::new(Counts::default());
    let meter: MeterRef = orb.activate(Meter { value: 7, counts: Arc::clone(&counts) }).unwrap();
    let begun = Instant::now();
    let mut call = meter.read(50).deferred();
    call.sent().await;
    assert_eq!((counts.begun(), begun.elapsed()), (1, Duration::ZERO));
    assert_eq!(call.await.unwrap(), 7);
    assert_eq!(begun.elapsed(), Duration::from_millis(50));
}

#[tokio::test(start_paused = true)]
async fn deferred_calls_run_at_the_same_time_and_keep_their_results() {
    let orbs = pair();
    let values: Vec<i32> = (1..=20).collect();
    let (meters, _) = meters(&orbs, &values).await;
    let begun = Instant::now();
    let mut calls: Vec<_> = meters.iter().map(|meter| meter.read(30).deferred()).collect();
    for call in &mut calls {
        call.sent().await;
    }
    assert_eq!(begun.elapsed(), Duration::ZERO, "none of them waits for its result");
    let mut results = Vec::new();
    for call in calls {
        results.push(call.await.unwrap());
    }
    assert_eq!(results, values);
    assert!(begun.elapsed() < Duration::from_millis(40), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn deferred_reply_is_kept_beyond_the_timeout() {
    let orbs = pair();
    let (meters, counts) = meters(&orbs, &[7]).await;
    meters[0].reset().await.unwrap();
    let meter = meters[0].with_timeout(Duration::from_secs(1));
    let call = meter.read(10).deferred();
    // Much longer than the call's timeout.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(call.await.unwrap(), 7);
    assert_eq!(counts.cancelled(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_deferred_call_counts_from_its_sending() {
    let orbs = pair();
    let (meters, counts) = meters(&orbs, &[7]).await;
    let meter = meters[0].with_timeout(Duration::from_millis(100));
    let mut call = meter.read(500).deferred();
    call.sent().await;
    tokio::time::sleep(Duration::from_millis(90)).await;
    assert!(!call.poll_response());
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(call.poll_response());
    let ReadError::System(error) = call.await.unwrap_err() else { unreachable!("no user exception") };
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
    moment().await;
    assert_eq!(counts.cancelled(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_deferred_call_is_cancelled() {
    let orbs = pair();
    let (meters, counts) = meters(&orbs, &[7]).await;
    let mut call = meters[0].read(60_000).deferred();
    call.sent().await;
    moment().await;
    assert_eq!((counts.begun(), counts.cancelled()), (1, 0));
    drop(call);
    moment().await;
    assert_eq!(counts.cancelled(), 1);
    assert_eq!(orbs.client.open_connections(), 1);
    assert_eq!(meters[0].read(1).await.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_deferred_call_that_is_awaited_for_a_while_goes_on_when_it_is_left() {
    let orbs = pair();
    let (meters, _) = meters(&orbs, &[7]).await;
    let mut call = meters[0].read(400).deferred();
    // In the meantime it reads the socket itself, with the waker of this future.
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut call).await.is_err());
    assert!(!call.poll_response());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(call.poll_response());
    assert_eq!(call.await.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn errors_of_deferred_calls_are_those_of_calls() {
    let orbs = pair();
    let (meters, _) = meters(&orbs, &[0]).await;
    let broken = meters[0].read(5).deferred();
    let failed = meters[0].fail().deferred();
    assert_eq!(failed.await.unwrap_err().kind, SystemExceptionKind::NoMemory);
    assert_eq!(broken.await.unwrap_err(), ReadError::Broken(Broken { part: "needle".to_owned() }));
    orbs.set_refusing(true);
    orbs.server.shutdown().await;
    let mut nobody = meters[0].fail().deferred();
    nobody.sent().await;
    assert!(nobody.poll_response(), "a call that can not be sent is over");
    assert_eq!(nobody.await.unwrap_err().kind, SystemExceptionKind::Transient);
}

#[tokio::test(start_paused = true)]
async fn calls_to_objects_of_the_same_orb_can_be_deferred() {
    let counts = Arc::new(Counts::default());
    let meter: MeterRef = zorb::testing::local(Meter { value: 3, counts: Arc::clone(&counts) });
    let call = meter.read(20).deferred();
    assert_eq!(counts.begun(), 1, "the servant runs in the caller's task");
    assert_eq!(call.await.unwrap(), 3);
}

#[test]
fn plain_threads_defer_calls_too() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let counts = Arc::new(Counts::default());
    let server = runtime.block_on(Orb::builder().listen("iiop://127.0.0.1:0").build()).unwrap();
    let here: MeterRef = server.activate(Meter { value: 9, counts: Arc::clone(&counts) }).unwrap();
    zorb::blocking::wait(async {
        let client = transport::builder().build().await.unwrap();
        let meter: MeterRef = client.resolve_unchecked(&here.to_string()).await.unwrap();
        let mut slow = meter.read(30).deferred();
        slow.sent().await;
        // Answered in place while the other one is pending.
        assert_eq!(meter.read(0).await.unwrap(), 9);
        assert_eq!(slow.await.unwrap(), 9);
        assert_eq!(meter.read(0).deferred().await.unwrap(), 9);
    });
    assert_eq!(counts.begun(), 3);
}

#[test]
fn an_orb_that_goes_with_its_thread_lets_go_of_its_servants() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = runtime.block_on(Orb::builder().listen("iiop://127.0.0.1:0").build()).unwrap();
    let here: MeterRef = server.activate(Meter { value: 9, counts: Arc::default() }).unwrap();
    let counts = Arc::new(Counts::default());
    let theirs = Arc::clone(&counts);
    let thread = std::thread::spawn(move || {
        // The connection holds its last handles, and this thread's runtime holds the connection.
        let client = zorb::blocking::wait(Orb::builder().build()).unwrap();
        let own = Meter { value: 1, counts: Arc::clone(&theirs) };
        let _: MeterRef = client.activate_named("own", own).unwrap();
        let _: MeterRef = client.activate(Meter { value: 2, counts: theirs }).unwrap();
        let meter: MeterRef = zorb::blocking::wait(client.resolve(&here.to_string())).unwrap();
        assert_eq!(zorb::blocking::wait(meter.read(0)).unwrap(), 9);
    });
    thread.join().unwrap();
    assert_eq!(Arc::strong_count(&counts), 1);
}

#[tokio::test]
async fn over_sockets_the_reply_of_a_deferred_call_is_read_without_its_caller() {
    let server = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let client = transport::builder().build().await.unwrap();
    let counts = Arc::new(Counts::default());
    let here: MeterRef = server.activate(Meter { value: 4, counts }).unwrap();
    let meter: MeterRef = client.resolve_unchecked(&here.to_string()).await.unwrap();
    let mut call = meter.read(1).deferred();
    call.sent().await;
    // Polled instead of one long sleep, because machines are slow at times.
    let before = client.stats().messages_in;
    for _ in 0..1000 {
        if client.stats().messages_in > before {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(client.stats().messages_in, before + 1);
    assert!(call.poll_response());
    assert_eq!(call.await.unwrap(), 4);
}

#[tokio::test(start_paused = true)]
async fn fan_out_answers_in_order_and_names_the_failed_reference() {
    let orbs = pair();
    let (meters, _) = meters(&orbs, &[5, 0, 6]).await;
    let begun = Instant::now();
    let answers =
        fan_out(&meters, Duration::from_secs(1), |meter: MeterRef| async move { meter.read(20).await }).await;
    assert!(begun.elapsed() < Duration::from_millis(25), "they run together: {:?}", begun.elapsed());
    let indices: Vec<usize> = answers.iter().map(|answer| answer.index).collect();
    assert_eq!(indices, [0, 1, 2]);
    for (answer, meter) in answers.iter().zip(&meters) {
        assert_eq!(&answer.reference, meter);
    }
    assert_eq!(answers[0].result, Ok(5));
    assert!(matches!(&answers[1].result, Err(ReadError::Broken(broken)) if broken.part == "needle"));
    assert_eq!(answers[2].result, Ok(6));
}

#[tokio::test(start_paused = true)]
async fn a_fan_out_has_one_deadline_for_all() {
    let orbs = pair();
    let (meters, counts) = meters(&orbs, &[1, 2, 3, 4]).await;
    let begun = Instant::now();
    // The second and the third take too long, so the fourth is never called.
    let naps = [10, 1000, 500, 5];
    let index = AtomicUsize::new(0);
    let answers = fan_out(&meters, Duration::from_millis(100), |meter: MeterRef| {
        let nap = naps[index.fetch_add(1, Ordering::SeqCst)];
        async move { meter.read(nap).await }
    })
    .max_concurrent(2)
    .await;
    assert!(begun.elapsed() < Duration::from_millis(110), "{:?}", begun.elapsed());
    assert_eq!(answers[0].result, Ok(1));
    assert_eq!(answers.len(), 4);
    for late in &answers[1..] {
        let Err(ReadError::System(error)) = &late.result else { unreachable!("{late:?}") };
        assert_eq!(error.kind, SystemExceptionKind::Timeout, "{error}");
    }
    let Err(ReadError::System(error)) = &answers[1].result else { unreachable!("it took too long") };
    assert_eq!((error.minor, error.completed), (minor::TIMEOUT_REPLY_END, CompletionStatus::Maybe));
    let Err(ReadError::System(error)) = &answers[3].result else { unreachable!("its turn never came") };
    assert_eq!((error.minor, error.completed), (minor::TIMEOUT_REQUEST_END, CompletionStatus::No));
    moment().await;
    assert_eq!((counts.begun(), counts.cancelled()), (3, 2), "what is late is cancelled at its servant");
}

#[tokio::test(start_paused = true)]
async fn a_fan_out_calls_no_more_at_once_than_it_may() {
    let orbs = pair();
    let values = vec![1; 100];
    let (all, counts) = meters(&orbs, &values).await;
    let answers =
        fan_out(&all, Duration::from_secs(60), |meter: MeterRef| async move { meter.read(5).await })
            .max_concurrent(7)
            .await;
    assert!(answers.iter().all(|answer| answer.result == Ok(1)));
    assert_eq!(counts.most.load(Ordering::SeqCst), 7);

    let (all, counts) = meters(&orbs, &values).await;
    let answers =
        fan_out(&all, Duration::from_secs(60), |meter: MeterRef| async move { meter.read(5).await }).await;
    assert_eq!(answers.len(), 100);
    assert_eq!(counts.most.load(Ordering::SeqCst), 64);
}

#[tokio::test(start_paused = true)]
async fn answers_can_be_taken_as_they_come() {
    let orbs = pair();
    let (meters, counts) = meters(&orbs, &[30, 10, 20, 60_000]).await;
    let read = |meter: MeterRef| async move {
        let wait = u32::try_from(meter.read(0).await?).unwrap_or_default();
        meter.read(wait).await
    };
    let mut answers = fan_out(&meters, Duration::from_secs(600), read);
    assert_eq!(answers.size_hint(), (4, Some(4)));
    let first = answers.next().await.unwrap();
    assert_eq!((first.index, first.result), (1, Ok(10)));
    let second = StreamExt::next(&mut answers).await.unwrap();
    assert_eq!((second.index, second.result), (2, Ok(20)));
    assert_eq!(answers.next().await.unwrap().index, 0);
    // Dropping the stream cancels the last call.
    drop(answers);
    moment().await;
    assert_eq!(counts.cancelled(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_reference_with_less_time_keeps_its_own() {
    let orbs = pair();
    let (meters, _) = meters(&orbs, &[1, 2]).await;
    let hurried = [meters[0].with_timeout(Duration::from_millis(10)), meters[1].clone()];
    let begun = Instant::now();
    let mut answers =
        fan_out(&hurried, Duration::from_secs(1), |meter: MeterRef| async move { meter.read(500).await });
    let first = answers.next().await.unwrap();
    assert!(begun.elapsed() < Duration::from_millis(20));
    assert!(
        matches!(&first.result, Err(ReadError::System(error)) if error.kind == SystemExceptionKind::Timeout)
    );
    assert_eq!(answers.next().await.unwrap().result, Ok(2));
    assert!(answers.next().await.is_none() && answers.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn fan_out_without_references_returns_at_once() {
    let nobody: [MeterRef; 0] = [];
    let answers =
        fan_out(&nobody, Duration::from_secs(1), |meter: MeterRef| async move { meter.fail().await }).await;
    assert!(answers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_else_a_leg_does_ends_at_the_deadline_too() {
    let orbs = pair();
    let (meters, _) = meters(&orbs, &[1, 2, 3]).await;
    let begun = Instant::now();
    let answers = fan_out(&meters, Duration::from_millis(50), |_meter: MeterRef| async move {
        tokio::time::sleep(Duration::from_secs(100)).await;
        Ok::<_, SystemException>(())
    })
    .await;
    assert!(begun.elapsed() <= Duration::from_millis(51));
    assert_eq!(answers.iter().map(|answer| answer.index).collect::<Vec<_>>(), [0, 1, 2]);
    for answer in &answers {
        let error = answer.result.as_ref().unwrap_err();
        assert_eq!((error.kind, error.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
    }
}
