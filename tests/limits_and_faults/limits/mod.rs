//! The limits that an endpoint guarantees, and their documentation in docs/RELIABILITY.md.

mod document;
mod endless;
mod floods;
mod memory;
mod places;
mod replies;
mod shedding;
mod slow;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use test_support::transport;
use tokio::sync::Semaphore;
use zorb::prelude::*;
use zorb::{Limit, Limits};

zorb::idl! {
    typedef sequence<string> Words;
    typedef sequence<octet> Octets;
    typedef sequence<any> Anys;
    exception Refused { Anys why; };
    interface Desk {
        long add(in long a, in long b);
        Octets large(in unsigned long octets);
        // It waits until the test lets it go on.
        Octets later(in unsigned long octets);
        // Both wait until the test lets them go on.
        long hold(in long a);
        oneway void note(in long a);
        unsigned long keep(in Words words);
        // Values of four bytes that take more than eight times as much memory.
        unsigned long take(in Anys anys);
        Anys anys(in unsigned long count);
        void refuse(in unsigned long count) raises (Refused);
    };
}

/// A servant whose requests wait until they are released.
struct Servant {
    begun: AtomicUsize,
    gate: Semaphore,
}

impl Default for Servant {
    fn default() -> Self {
        Self { begun: AtomicUsize::new(0), gate: Semaphore::new(0) }
    }
}

impl Servant {
    fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    async fn wait(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.gate.acquire().await.unwrap().forget();
    }

    fn let_go(&self, requests: usize) {
        self.gate.add_permits(requests);
    }
}

impl DeskServant for Servant {
    async fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        Ok(a + b)
    }

    async fn large(&self, octets: u32) -> Result<Bytes, SystemException> {
        Ok(vec![7; octets as usize].into())
    }

    async fn later(&self, octets: u32) -> Result<Bytes, SystemException> {
        self.wait().await;
        self.large(octets).await
    }

    async fn hold(&self, a: i32) -> Result<i32, SystemException> {
        self.wait().await;
        Ok(a)
    }

    async fn note(&self, _: i32) -> Result<(), SystemException> {
        self.wait().await;
        Ok(())
    }

    async fn take(&self, anys: &[Any]) -> Result<u32, SystemException> {
        Ok(anys.len() as u32)
    }

    async fn anys(&self, count: u32) -> Result<Vec<Any>, SystemException> {
        Ok(vec![Any::default(); count as usize])
    }

    async fn refuse(&self, count: u32) -> Result<(), desk::RefuseError> {
        Err(Refused { why: vec![Any::default(); count as usize] }.into())
    }

    async fn keep(&self, words: &[String]) -> Result<u32, SystemException> {
        self.wait().await;
        Ok(words.len() as u32)
    }
}

/// Returns two ORBs connected by pipes, with a server of those options, and a reference to its servant.
async fn desk(server: zorb::OrbBuilder) -> (zorb::testing::Pair, Arc<Servant>, DeskRef) {
    let pair = zorb::testing::pair_of(Orb::builder(), server);
    let servant = Arc::new(Servant::default());
    let published: DeskRef = pair.server.activate_named("desk", Arc::clone(&servant)).unwrap();
    let desk = pair.client.resolve(&published.to_string()).await.unwrap();
    (pair, servant, desk)
}

fn hits(orb: &Orb, limit: Limit) -> u32 {
    orb.stats().limit_hits.of(limit)
}

/// Lets all other tasks run until they are idle: tokio's clock does not advance in the meantime.
async fn rest() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}
