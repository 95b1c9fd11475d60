//! Faults that a seed selects: delayed data, pieces of any size, cuts and flipped bits; and that a seed
//! replays them.

use std::sync::{Arc, Mutex};

use tokio::time::Instant;
use zorb::Retry;
use zorb::prelude::*;
use zorb::testing::{Cut, PipeFaults, RandomFaults, pair, seeds};

use crate::faults::role::Child;
use crate::faults::target::{TargetRef, leaves_nothing, octets, over};

/// Returns references to the same object over three connections: one for each GIOP version.
async fn over_three(orbs: &zorb::testing::Pair, target: &TargetRef) -> Vec<TargetRef> {
    let mut all = vec![target.clone()];
    for version in ["1.0", "1.1"] {
        let url = format!("corbaloc:iiop:{version}@server.memory:1/Target");
        all.push(orbs.client.resolve_unchecked(&url).await.unwrap());
    }
    all
}

/// Returns the results of 30 calls over three connections, in the order in which they ended, with the times.
async fn ended(seed: u64) -> Vec<(u64, u128)> {
    let orbs = pair();
    let (servant, target) = over(&orbs).await;
    let targets = over_three(&orbs, &target).await;
    orbs.set_random_faults(RandomFaults::seeded(seed));
    let order = Arc::new(Mutex::new(Vec::new()));
    let start = Instant::now();
    let calls: Vec<_> = (0..30u64)
        .map(|number| {
            let (target, order) = (targets[number as usize % 3].clone(), Arc::clone(&order));
            tokio::spawn(async move {
                let data = octets(number as usize * 300);
                let (same, back) = target.once(number, 0, data.clone()).await.unwrap();
                assert!(same == number && back == data, "another one's answer");
                order.lock().unwrap().push((number, start.elapsed().as_micros()));
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    for number in 0..30 {
        assert_eq!(servant.times(number), 1, "{}", RandomFaults::seeded(seed));
    }
    drop((target, targets));
    leaves_nothing(orbs, servant, &format!("seed {seed}")).await;
    Arc::into_inner(order).unwrap().into_inner().unwrap()
}

#[tokio::test(start_paused = true)]
async fn octets_that_come_late_and_in_pieces_change_nothing_but_the_order() {
    let mut overtaken = 0;
    for seed in seeds(30) {
        let order = ended(seed).await;
        overtaken += order.windows(2).filter(|pair| pair[0].0 > pair[1].0).count();
    }
    assert!(overtaken > 30, "completions of several connections come in another order");
}

#[tokio::test(start_paused = true)]
async fn a_seed_replays_what_happened_to_the_microsecond() {
    for seed in seeds(5) {
        assert_eq!(ended(seed).await, ended(seed).await, "seed {seed}");
    }
    assert_ne!(ended(1).await, ended(2).await);
}

// clause: exc.completed.nothing_sent, exc.completed.no_reply
#[tokio::test(start_paused = true)]
async fn calls_over_connections_that_break_anywhere_tell_the_truth() {
    let (mut ok, mut no, mut maybe) = (0, 0, 0);
    for seed in seeds(100) {
        let orbs = pair();
        let (servant, target) = over(&orbs).await;
        let targets = over_three(&orbs, &target).await;
        let faults = RandomFaults::seeded(seed).cut_within(3000).limit_to_first(9);
        orbs.set_random_faults(faults.clone());
        let calls: Vec<_> = (0..24u64)
            .map(|number| {
                let target = targets[number as usize % 3].with_timeout(Duration::from_secs(20));
                let target = if number % 2 == 0 { target.with_retry(Retry::Never) } else { target };
                tokio::spawn(async move { target.once(number, 0, octets(number as usize * 20)).await })
            })
            .collect();
        for (number, call) in (0..).zip(calls) {
            let (times, outcome) = (servant.times(number), call.await.unwrap());
            let times = times.max(servant.times(number));
            match outcome {
                Ok((same, back)) => {
                    assert!(same == number && back == octets(number as usize * 20), "{faults}");
                    assert_eq!(times, 1, "{faults}: {number} was executed {times} times");
                    ok += 1;
                }
                Err(error) => match error.completed {
                    CompletionStatus::No => {
                        assert_eq!(times, 0, "{faults}: {number} was executed: {error}");
                        no += 1;
                    }
                    CompletionStatus::Maybe => {
                        assert!(times <= 1, "{faults}: {number} was executed {times} times: {error}");
                        maybe += 1;
                    }
                    CompletionStatus::Yes => panic!("{faults}: {error}"),
                },
            }
        }
        // Timeouts close stalled connections. Then there is a new connection, which may be faulty too.
        for target in &targets {
            let mut tries = 0;
            while target.add(20, 3).await.is_err() {
                tokio::time::sleep(Duration::from_secs(200)).await;
                tries += 1;
                assert!(tries < 10, "{faults}: it does not recover");
            }
        }
        drop((target, targets));
        leaves_nothing(orbs, servant, &faults.to_string()).await;
    }
    assert!(std::env::var_os("ZORB_FAULTS").is_some() || ok > 0 && no > 0 && maybe > 0, "{ok} {no} {maybe}");
}

#[tokio::test(start_paused = true)]
async fn messages_with_random_bits_flipped_leave_later_calls_intact() {
    for seed in seeds(60) {
        let orbs = pair();
        let (servant, target) = over(&orbs).await;
        let faults = RandomFaults::seeded(seed).flip_within(40_000).limit_to_first(3);
        orbs.set_random_faults(faults.clone());
        for number in 0..6 {
            let hasty = target.with_retry(Retry::Never).with_timeout(Duration::from_secs(90));
            let result = hasty.once(number, 0, octets(6000)).await;
            if let Ok((same, back)) = result {
                // A single flipped bit changes exactly one bit.
                let wrong: u32 = back.iter().zip(&octets(6000)).map(|(a, b)| (a ^ b).count_ones()).sum();
                assert!((same ^ number).count_ones() + wrong <= 1, "{faults}");
            }
            let result = hasty.put(octets(20_000)).await;
            assert!(result.is_err() || result.is_ok_and(|len| (len ^ 20_000).count_ones() <= 1), "{faults}");
        }
        let mut tries = 0;
        while target.add(20, 3).await.ok() != Some(23) {
            tokio::time::sleep(Duration::from_secs(200)).await;
            tries += 1;
            assert!(tries < 6, "{faults}: it does not recover");
        }
        drop(target);
        leaves_nothing(orbs, servant, &faults.to_string()).await;
    }
}

#[test]
fn each_connection_has_faults_of_its_own_and_the_later_ones_none_that_harm() {
    let faults = RandomFaults::seeded(17).cut_within(100).flip_within(100).limit_to_first(2);
    let harmful = |of: PipeFaults| of.cut_after.is_some() || of.flipped_bit.is_some();
    let of = |connection| {
        let (there, back) = faults.of_connection(connection);
        (there, back, harmful(there) || harmful(back))
    };
    assert!(of(0).2 && of(1).2 && !of(2).2 && !of(1000).2);
    assert_ne!(of(0), of(1));
    assert_ne!(of(2), of(3), "pieces and delays differ all the same");
    assert_eq!(of(1), of(1));
    assert_eq!(faults.to_string(), "faults of seed 17 (ZORB_FAULTS=17 replays it)");
    let cuts: Vec<_> = (0..50)
        .map(|seed| RandomFaults::seeded(seed).cut_within(9).of_connection(0))
        .map(|(a, b)| if a.cut_after.is_some() { a.cut } else { b.cut })
        .collect();
    for cut in [Cut::End, Cut::Reset, Cut::Silence] {
        assert!(cuts.contains(&cut), "{cut:?}");
    }
}

#[tokio::test]
async fn a_test_that_fails_says_its_seed() {
    let failed = Child::start("fails-by-seed", &[]).await.output().await;
    assert!(!failed.status.success());
    let text = String::from_utf8_lossy(&failed.stderr);
    assert!(
        text.contains("ZORB_FAULTS=4711 replays it") && text.contains("connection 0: requests PipeFaults"),
        "{text}"
    );
}
