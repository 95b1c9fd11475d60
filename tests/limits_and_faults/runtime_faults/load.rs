//! Many clients, and a shutdown while they call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use zorb::Retry;
use zorb::prelude::*;

use crate::runtime_faults::on_both_flavours;
use crate::runtime_faults::probe::{Probe, ProbeRef, tcp, tcp_with};
use test_support::transport::builder;

on_both_flavours! {
    async fn a_shutdown_under_load_answers_every_request_or_says_that_it_was_not_executed() {
        for retry in [Retry::Never, Retry::default()] {
            // Both sides close in an orderly way, however busy the machine is: a peer that does not read in
            // time loses the last data.
            let mut limits = zorb::Limits::default();
            limits.linger_timeout = Duration::from_secs(20);
            let tcp = tcp_with(limits).await;
            let (answered, refused) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
            let tasks: Vec<_> = (0..16)
                .map(|i| {
                    let probe = tcp.probe.with_retry(retry);
                    let (answered, refused) = (Arc::clone(&answered), Arc::clone(&refused));
                    tokio::spawn(async move {
                        loop {
                            let result = match i % 4 {
                                0 => probe.nap(2).await,
                                1 => probe.echo(vec![1; 50_000]).await.map(drop),
                                _ => probe.add(i, 1).await.map(drop),
                            };
                            match result {
                                Ok(()) => answered.fetch_add(1, Ordering::SeqCst),
                                Err(error) => {
                                    assert_eq!(error.completed, CompletionStatus::No, "{error}");
                                    refused.fetch_add(1, Ordering::SeqCst);
                                    return;
                                }
                            };
                        }
                    })
                })
                .collect();
            tokio::time::sleep(Duration::from_millis(60)).await;
            let report = tcp.server.shutdown().await;
            assert_eq!((report.connections, report.aborted_connections), (1, 0));
            for task in tasks {
                task.await.unwrap();
            }
            assert_eq!(refused.load(Ordering::SeqCst), 16);
            let (begun, ended) = (tcp.servant.begun(), tcp.servant.ended());
            assert_eq!(begun, ended, "requests were given up in the middle");
            assert_eq!(answered.load(Ordering::SeqCst), ended, "an executed request was not answered");
        }
    }

    async fn oneways_queued_before_a_shutdown_arrive() {
        let tcp = tcp().await;
        for _ in 0..1000 {
            tcp.probe.note(1).await.unwrap();
        }
        tcp.probe.note_after(500, 5).await.unwrap();
        tcp.client.shutdown().await;
        // The server reads to the end of the stream before it drops the connection.
        let here = tcp.here.clone();
        let mut noted = 0;
        for _ in 0..1000 {
            noted = here.noted().await.unwrap();
            if noted == 1500 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(noted, 1500);
        tcp.server.shutdown().await;
    }

    async fn a_restarted_server_serves_the_old_references() {
        let tcp = tcp().await;
        let address = tcp.server.endpoints().remove(0);
        let gone = Arc::new(AtomicBool::new(false));
        let caller = {
            let (probe, gone) = (tcp.probe.clone(), Arc::clone(&gone));
            tokio::spawn(async move {
                let (mut answered_after, mut failed) = (0, 0);
                while answered_after < 100 {
                    match probe.add(1, 2).await {
                        Ok(sum) => {
                            assert_eq!(sum, 3);
                            answered_after += u32::from(gone.load(Ordering::SeqCst));
                        }
                        Err(error) => {
                            assert_eq!(error.completed, CompletionStatus::No, "{error}");
                            failed += 1;
                            tokio::time::sleep(Duration::from_millis(5)).await;
                        }
                    }
                }
                failed
            })
        };
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tcp.server.shutdown().await;
        drop(tcp.here);
        drop(tcp.server);
        let endpoint = format!("iiop://{address}");
        let again = builder().listen(endpoint).start_paused().build().await.unwrap();
        gone.store(true, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(10)).await;
        let _probe: ProbeRef = again.activate_named("Probe", Probe::default()).unwrap();
        again.resume();
        caller.await.unwrap();
        again.shutdown().await;
    }

    async fn two_hundred_clients_connect_at_once() {
        let server = builder().listen("iiop://127.0.0.1:0").max_connections(400, 400).build().await.unwrap();
        let servant = Arc::new(Probe::default());
        let here: ProbeRef = server.activate(Arc::clone(&servant)).unwrap();
        let text = here.to_string();
        let clients: Vec<_> = (0..200)
            .map(|i| {
                let text = text.clone();
                tokio::spawn(async move {
                    let client = builder().build().await.unwrap();
                    let probe: ProbeRef = client.resolve(&text).await.unwrap();
                    for k in 0..5 {
                        assert_eq!(probe.add(i, k).await.unwrap(), i + k);
                    }
                    assert_eq!(client.open_connections(), 1);
                    client
                })
            })
            .collect();
        let mut orbs = Vec::new();
        for client in clients {
            orbs.push(client.await.unwrap());
        }
        assert_eq!(servant.ended(), 1000);
        assert_eq!(server.open_connections(), 200);
        for orb in orbs {
            orb.shutdown().await;
        }
        let report = server.shutdown().await;
        assert_eq!(report.aborted_connections, 0);
        assert_eq!(server.open_connections(), 0);
    }

    async fn clients_over_the_limit_are_turned_away_and_the_others_are_served() {
        let server = builder().listen("iiop://127.0.0.1:0").max_connections(100, 10).evict_idle_after(None);
        let server = server.build().await.unwrap();
        let here: ProbeRef = server.activate(Probe::default()).unwrap();
        let text = here.to_string();
        let clients: Vec<_> = (0..30)
            .map(|_| {
                let text = text.clone();
                tokio::spawn(async move {
                    let client = builder().build().await.unwrap();
                    let probe: ProbeRef = client.resolve_unchecked(&text).await.unwrap();
                    let result = probe.add(1, 2).await;
                    (client, probe, result)
                })
            })
            .collect();
        let mut seated = Vec::new();
        let mut turned_away = 0;
        for client in clients {
            let (client, probe, result) = client.await.unwrap();
            match result {
                Ok(sum) => {
                    assert_eq!(sum, 3);
                    seated.push((client, probe));
                }
                Err(error) => {
                    let kinds = [SystemExceptionKind::CommFailure, SystemExceptionKind::Transient];
                    assert!(kinds.contains(&error.kind), "{error}");
                    assert_eq!(error.completed, CompletionStatus::No, "{error}");
                    turned_away += 1;
                }
            }
        }
        assert_eq!((seated.len(), turned_away), (10, 20));
        for (client, probe) in seated {
            assert_eq!(probe.add(2, 3).await.unwrap(), 5);
            client.shutdown().await;
        }
        // The slot of a closed connection can be reused.
        let client = builder().build().await.unwrap();
        let mut last = None;
        for _ in 0..200 {
            let probe: ProbeRef = client.resolve_unchecked(&text).await.unwrap();
            match probe.add(2, 3).await {
                Ok(sum) => return assert_eq!(sum, 5),
                Err(error) => last = Some(error),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{last:?}");
    }

    async fn objects_come_and_go_while_they_are_called() {
        let tcp = tcp().await;
        for round in 0..20 {
            let here: ProbeRef = tcp.server.activate(Probe::default()).unwrap();
            let there: ProbeRef = tcp.client.resolve(&here.to_string()).await.unwrap();
            let caller = tokio::spawn(async move {
                let mut answered = 0;
                loop {
                    match there.add(1, 2).await {
                        Ok(sum) => {
                            assert_eq!(sum, 3);
                            answered += 1;
                        }
                        Err(error) => {
                            assert_eq!(error.kind, SystemExceptionKind::ObjectNotExist, "{error}");
                            assert_eq!(error.completed, CompletionStatus::No);
                            return answered;
                        }
                    }
                }
            });
            tokio::time::sleep(Duration::from_millis(round % 3)).await;
            assert!(tcp.server.deactivate_and_wait(&here).await);
            caller.await.unwrap();
        }
        assert_eq!(tcp.server.active_objects(), 1);
        assert_eq!(tcp.client.open_connections(), 1);
    }
}
