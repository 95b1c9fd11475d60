//! Calls that lead back, through other ORBs, to the calling object.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

use test_support::transport;
use zorb::prelude::*;

zorb::idl! {
    module Nested {
        interface Node {
            void next(in Node node);
            /// Has the next node begin.
            void kick(in long depth);
            /// Calls on, and adds the sum to what `reached` gives.
            oneway void begin(in long depth);
            /// Calls on. Gives the number of calls that it led to.
            long visit(in long depth);
            oneway void note();
            long reached();
            long noted();
        };
    };
}

use nested::{NodeRef, NodeServant};

#[derive(Default)]
struct Node {
    next: OnceLock<NodeRef>,
    reached: AtomicI32,
    noted: AtomicI32,
}

impl Node {
    fn to(&self) -> &NodeRef {
        self.next.get().unwrap()
    }

    async fn on(&self, depth: i32) -> Result<i32, SystemException> {
        self.to().note().await?;
        if depth == 0 { Ok(0) } else { Ok(1 + self.to().visit(depth - 1).await?) }
    }
}

impl NodeServant for Arc<Node> {
    async fn next(&self, node: Option<NodeRef>) -> Result<(), SystemException> {
        assert!(self.next.set(node.unwrap()).is_ok());
        Ok(())
    }

    async fn kick(&self, depth: i32) -> Result<(), SystemException> {
        self.to().begin(depth).await
    }

    async fn begin(&self, depth: i32) -> Result<(), SystemException> {
        let sum = self.on(depth).await?;
        self.reached.fetch_add(sum, Ordering::SeqCst);
        Ok(())
    }

    async fn visit(&self, depth: i32) -> Result<i32, SystemException> {
        self.on(depth).await
    }

    async fn note(&self) -> Result<(), SystemException> {
        self.noted.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn reached(&self) -> Result<i32, SystemException> {
        Ok(self.reached.load(Ordering::SeqCst))
    }

    async fn noted(&self) -> Result<i32, SystemException> {
        Ok(self.noted.load(Ordering::SeqCst))
    }
}

/// The place where the servants run.
#[derive(Debug, Clone, Copy)]
enum Mode {
    InPlace,
    Spawned,
    Blocking,
}

/// Returns a ring of `length` ORBs, with an object each.
async fn ring(mode: Mode, length: usize) -> Vec<(Orb, NodeRef)> {
    let mut nodes = Vec::new();
    for _ in 0..length {
        let orb = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
        let activation = orb.activation();
        let activation = match mode {
            Mode::InPlace => activation,
            Mode::Spawned => activation.spawned(),
            Mode::Blocking => activation.blocking(),
        };
        let node: NodeRef = activation.activate(Arc::new(Node::default())).unwrap();
        nodes.push((orb, node));
    }
    for at in 0..length {
        let (orb, _) = &nodes[at];
        let next: NodeRef = orb.resolve_unchecked(&nodes[(at + 1) % length].1.to_string()).await.unwrap();
        nodes[at].1.next(&next).await.unwrap();
    }
    nodes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_oneway_that_calls_back_over_its_own_connection_does_not_wait_for_itself() {
    const DEPTH: i32 = 20;
    for mode in [Mode::InPlace, Mode::Spawned, Mode::Blocking] {
        for length in [2, 3] {
            let nodes = ring(mode, length).await;
            let (_, last) = nodes.last().unwrap();
            // The oneway uses the connection by which the ring leads back.
            last.kick(DEPTH).await.unwrap();
            let (_, first) = &nodes[0];
            let reached = tokio::time::timeout(Duration::from_secs(60), async {
                while first.reached().await.unwrap() == 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
            reached.await.unwrap_or_else(|_| panic!("{mode:?}, {length} nodes: it waits for itself"));
            assert_eq!(first.reached().await.unwrap(), DEPTH, "{mode:?}, {length} nodes");
            // Two-way from the start.
            assert_eq!(last.visit(DEPTH).await.unwrap(), DEPTH);
            for (orb, _) in nodes {
                assert_eq!(orb.shutdown().await.aborted_connections, 0);
            }
        }
    }
}

#[tokio::test]
async fn a_oneway_that_makes_no_call_is_done_before_the_next_request_for_its_object() {
    zorb::idl! {
        typedef sequence<long> Numbers;
        interface Ledger {
            oneway void slow(in long number);
            Numbers seen();
        };
    }
    #[derive(Default)]
    struct Book(std::sync::Mutex<Vec<i32>>);
    impl LedgerServant for Book {
        async fn slow(&self, number: i32) -> Result<(), SystemException> {
            tokio::time::sleep(Duration::from_millis(5)).await;
            self.0.lock().unwrap().push(number);
            Ok(())
        }
        async fn seen(&self) -> Result<Seq<i32>, SystemException> {
            Ok(self.0.lock().unwrap().clone().into())
        }
    }
    let server = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let book: LedgerRef = server.activate(Book::default()).unwrap();
    let client = transport::builder().build().await.unwrap();
    let book: LedgerRef = client.resolve_unchecked(&book.to_string()).await.unwrap();
    for number in 0..10 {
        book.slow(number).await.unwrap();
    }
    assert_eq!(*book.seen().await.unwrap(), *(0..10).collect::<Vec<i32>>());
}
