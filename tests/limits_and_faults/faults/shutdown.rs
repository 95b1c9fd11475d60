//! Shutdown of a server under load, and its restart: every accepted request is answered, or its caller is
//! notified that it was not executed; each exactly once.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use zorb::prelude::*;
use zorb::testing::{RandomFaults, pair, seeds};
use zorb::{ByteSource, Limits, Orb, OrbBuilder, Retry};

use crate::faults::target::{Target, TargetRef, leaves_nothing, octets, over};

/// Starts callers that call until they are rejected. Returns the numbers of the answered calls, and those
/// reported as not executed.
fn callers(target: &TargetRef, count: u64) -> Vec<tokio::task::JoinHandle<(Vec<u64>, u64)>> {
    let caller = |caller: u64| {
        let target = target.with_retry(Retry::Never);
        tokio::spawn(async move {
            let mut answered = Vec::new();
            for number in (caller << 32).. {
                let (milliseconds, len) = ((number % 4) as u32, (number % 5) as usize * 3000);
                match target.once(number, milliseconds, octets(len)).await {
                    Ok((same, back)) => {
                        assert!(same == number && back.len() == len);
                        answered.push(number);
                    }
                    Err(error) => {
                        assert_eq!(error.completed, CompletionStatus::No, "{number}: {error}");
                        return (answered, number);
                    }
                }
            }
            unreachable!()
        })
    };
    (0..count).map(caller).collect()
}

// clause: giop.connection.close_resend
#[tokio::test(start_paused = true)]
async fn a_shutdown_under_load_answers_each_request_once_or_says_that_it_was_not_executed() {
    let mut refused_late = 0;
    for seed in seeds(60) {
        let orbs = pair();
        let (servant, target) = over(&orbs).await;
        let faults = RandomFaults::seeded(seed);
        orbs.set_random_faults(faults.clone());
        let calls = callers(&target, 12);
        tokio::time::sleep(Duration::from_millis(3 + seed * 5 % 170)).await;
        let report = orbs.server.shutdown().await;
        assert_eq!(report.aborted_connections, 0, "{faults}");
        let mut all = 0;
        for call in calls {
            let (answered, refused) = call.await.unwrap();
            for number in &answered {
                assert_eq!(servant.times(*number), 1, "{faults}");
            }
            assert_eq!(servant.times(refused), 0, "{faults}: what was refused was executed");
            all += answered.len();
            refused_late += usize::from(!answered.is_empty());
        }
        assert_eq!(servant.executed() as usize, all, "{faults}: an executed request was not answered");
        drop(target);
        leaves_nothing(orbs, servant, &faults.to_string()).await;
    }
    assert!(refused_late > 100, "{refused_late}: shutdowns came before the load");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_shuts_down_under_load_ends_each_of_its_calls_once() {
    for seed in seeds(30) {
        let orbs = pair();
        let (servant, target) = over(&orbs).await;
        let faults = RandomFaults::seeded(seed);
        orbs.set_random_faults(faults.clone());
        let calls = callers(&target, 8);
        tokio::time::sleep(Duration::from_millis(3 + seed * 7 % 170)).await;
        orbs.client.shutdown().await;
        let mut all = 0;
        for call in calls {
            let (answered, refused) = call.await.unwrap();
            assert_eq!(servant.times(refused), 0, "{faults}");
            all += answered.len();
        }
        assert_eq!(servant.executed() as usize, all, "{faults}");
        drop(target);
        leaves_nothing(orbs, servant, &faults.to_string()).await;
    }
}

async fn serve(listener: std::net::TcpListener, servant: &Arc<Target>) -> (Orb, TargetRef) {
    // Both sides close in an orderly way, however busy the machine is: a peer that does not read in time
    // loses the last data.
    let mut limits = Limits::default();
    limits.linger_timeout = Duration::from_secs(20);
    let server = test_support::transport::builder().limits(limits).listener(listener).build().await.unwrap();
    let here: TargetRef = server.activate_named("Target", Arc::clone(servant)).unwrap();
    (server, here)
}

// clause: exc.when.retry
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_restarts_under_load_loses_no_call_and_executes_none_twice() {
    let servant = Arc::new(Target::default());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut server, here) = serve(listener.try_clone().unwrap(), &servant).await;
    let client = test_support::transport::builder().build().await.unwrap();
    let target: TargetRef = client.resolve_unchecked(&here.to_string()).await.unwrap();
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let callers: Vec<_> = (0..8u64)
        .map(|caller| {
            let (target, done) = (target.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                let mut answered = Vec::new();
                let mut number = caller << 32;
                while !done.load(std::sync::atomic::Ordering::SeqCst) {
                    number += 1;
                    // The caller repeats a call that was certainly not executed: the ORB itself does that
                    // only once.
                    loop {
                        match target.once(number, 0, octets(2000)).await {
                            Ok((same, _)) => break answered.push(same),
                            Err(error) => assert_eq!(error.completed, CompletionStatus::No, "{error}"),
                        }
                        tokio::time::sleep(Duration::from_millis(2)).await;
                    }
                }
                answered
            })
        })
        .collect();
    for _ in 0..5 {
        let before = servant.executed();
        while servant.executed() < before + 200 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // Its socket stays open: connections that arrive in between wait.
        assert_eq!(server.shutdown().await.aborted_connections, 0);
        (server, _) = serve(listener.try_clone().unwrap(), &servant).await;
    }
    done.store(true, std::sync::atomic::Ordering::SeqCst);
    let mut all = 0;
    for caller in callers {
        let answered =
            tokio::time::timeout(Duration::from_secs(60), caller).await.expect("a call hangs").unwrap();
        for number in &answered {
            assert_eq!(servant.times(*number), 1);
        }
        all += answered.len();
    }
    assert_eq!(servant.executed() as usize, all);
    client.shutdown().await;
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oneways_that_arrived_before_a_shutdown_are_executed() {
    const BUSY: u64 = 4;
    const ONEWAYS: std::ops::Range<u64> = 100..400;
    let servant = Arc::new(Target::default());
    let mut limits = Limits::default();
    limits.max_requests = BUSY as usize;
    limits.linger_timeout = Duration::from_secs(20);
    let builder = test_support::transport::builder().limits(limits).drain_timeout(Duration::from_secs(60));
    let server = builder.listen("iiop://127.0.0.1:0").build().await.unwrap();
    let here: TargetRef = server.activate_named("Target", Arc::clone(&servant)).unwrap();
    let client = test_support::transport::builder().build().await.unwrap();
    let target: TargetRef = client.resolve_unchecked(&here.to_string()).await.unwrap();
    // Enough calls to make the server stop reading.
    let calls: Vec<_> = (0..BUSY)
        .map(|number| {
            let target = target.clone();
            tokio::spawn(async move { target.once(number, 300, octets(1)).await })
        })
        .collect();
    while servant.inside() < BUSY as usize {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for number in ONEWAYS {
        target.note(number, octets(10)).await.unwrap();
    }
    target.flush().await.unwrap();
    let report = server.shutdown().await;
    assert_eq!((report.aborted_connections, report.discarded_oneways), (0, 0));
    for call in calls {
        call.await.unwrap().unwrap();
    }
    for number in ONEWAYS {
        assert_eq!(servant.times(number), 1, "{number}");
    }
    client.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn oneways_that_are_kept_until_a_shutdown_are_counted() {
    let orbs = pair();
    let servant = Arc::new(Target::default());
    let here: TargetRef = orbs.server.activate(Arc::clone(&servant)).unwrap();
    let _ = orbs.server.root_poa().manager().hold_requests().unwrap();
    let target: TargetRef = orbs.client.resolve_unchecked(&here.to_string()).await.unwrap();
    for number in 0..5 {
        target.note(number, octets(10)).await.unwrap();
    }
    target.flush().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    let report = orbs.server.shutdown().await;
    assert_eq!((report.aborted_connections, report.discarded_oneways, servant.executed()), (0, 5, 0));
}

/// Returns a builder that waits longer for the end of its peers than for its own.
fn patient() -> OrbBuilder {
    let mut limits = Limits::default();
    limits.linger_timeout = Duration::from_secs(60);
    test_support::transport::builder().limits(limits).drain_timeout(Duration::from_secs(5))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orb_that_is_not_done_yet_lets_go_of_those_that_close() {
    let servant = Arc::new(Target::default());
    let listening = || patient().listen("iiop://127.0.0.1:0");
    let other = listening().build().await.unwrap();
    let busy = listening().drain_timeout(Duration::from_secs(60)).build().await.unwrap();
    let caller = patient().build().await.unwrap();
    let here: TargetRef = other.activate_named("Target", Arc::clone(&servant)).unwrap();
    let there: TargetRef = busy.activate_named("Target", Arc::clone(&servant)).unwrap();
    let other_of_busy: TargetRef = busy.resolve_unchecked(&here.to_string()).await.unwrap();
    assert_eq!(other_of_busy.add(1, 2).await.unwrap(), 3);
    // A request that is served until the test ends it.
    let (more, source) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(1);
    let source =
        futures_util::stream::unfold(source, async |mut source| Some((source.recv().await?, source)));
    let target: TargetRef = caller.resolve_unchecked(&there.to_string()).await.unwrap();
    let put = tokio::spawn(async move { target.put(ByteSource::stream(200_000, source)).await });
    more.send(Ok(octets(100_000))).await.unwrap();
    while servant.inside() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let ending = tokio::spawn({
        let busy = busy.clone();
        async move { busy.shutdown().await }
    });
    // An ORB that is shutting down can only make calls from running servants.
    while other_of_busy.add(1, 2).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(other.shutdown().await.aborted_connections, 0);
    assert!(!ending.is_finished());
    more.send(Ok(octets(100_000))).await.unwrap();
    assert_eq!(put.await.unwrap().unwrap(), 200_000);
    assert_eq!(ending.await.unwrap().aborted_connections, 0);
    caller.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_not_polled_any_more_does_not_keep_the_connection() {
    let servant = Arc::new(Target::default());
    let server = patient().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let client = patient().build().await.unwrap();
    let here: TargetRef = server.activate_named("Target", Arc::clone(&servant)).unwrap();
    let target: TargetRef = client.resolve_unchecked(&here.to_string()).await.unwrap();
    let mut kept = Box::pin(target.once(1, 500, Bytes::new()));
    while servant.times(1) == 0 {
        let soon = tokio::time::sleep(Duration::from_millis(1));
        tokio::select! {
            answered = &mut kept => drop(answered.expect("nothing ends it")),
            () = soon => {}
        }
    }
    target.once(2, 600, Bytes::new()).await.unwrap();
    assert_eq!(server.shutdown().await.aborted_connections, 0);
    assert_eq!(kept.await.unwrap().0, 1);
    client.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peer_that_sends_after_shutdown_gets_an_error_despite_a_held_call() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = patient().drain_timeout(Duration::from_millis(100)).build().await.unwrap();
    let target = format!("corbaloc:iiop:1.2@{}/Target", listener.local_addr().unwrap());
    let target: TargetRef = client.resolve_unchecked(&target).await.unwrap();
    let mut kept = Box::pin(target.add(1, 2));
    let (mut peer, _) = tokio::select! {
        answered = &mut kept => panic!("nobody answers: {answered:?}"),
        peer = listener.accept() => peer.unwrap(),
    };
    let mut head = [0; 12];
    tokio::select! {
        answered = &mut kept => panic!("nobody answers: {answered:?}"),
        read = peer.read_exact(&mut head) => drop(read.unwrap()),
    }
    // The call is no longer polled from here on.
    assert_eq!(client.shutdown().await.aborted_connections, 1);
    let sent = async {
        while peer.write_all(&[0; 4096]).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), sent).await.expect("it is never told");
    kept.await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_behind_the_last_word_is_thrown_away_in_large_pieces() {
    const OCTETS: usize = 8 << 20;
    let server = patient().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let mut peer = tokio::net::TcpStream::connect(server.endpoints().first().unwrap()).await.unwrap();
    let ending = tokio::spawn({
        let server = server.clone();
        async move { server.shutdown().await }
    });
    let mut said = Vec::new();
    peer.read_to_end(&mut said).await.unwrap();
    assert_eq!((said.len(), said.get(7)), (12, Some(&5)), "it is a CloseConnection: {said:?}");
    peer.write_all(&vec![7; OCTETS]).await.unwrap();
    drop(peer);
    assert_eq!(ending.await.unwrap().aborted_connections, 0);
    let stats = server.stats();
    assert_eq!(stats.bytes_in as usize, OCTETS);
    // A window holds at least 16 KiB; not each of them is full.
    assert!(stats.reads < 4 * (OCTETS as u64 >> 14), "{stats:?}");
}
