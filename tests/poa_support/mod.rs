//! Two ORBs, and a record of events: helpers of the tests of POAs.
#![allow(dead_code, clippy::unwrap_used, reason = "helpers of tests; not every one needs all of them")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use zorb::Orb;

/// Returns a server that listens, and a client.
pub(crate) async fn orbs() -> (Orb, Orb) {
    let server = super::transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    (server, super::transport::builder().build().await.unwrap())
}

/// The events, in order.
#[derive(Clone, Default)]
pub(crate) struct Story(Arc<Mutex<Vec<String>>>);

impl Story {
    pub(crate) fn tell(&self, event: impl Into<String>) {
        self.0.lock().unwrap().push(event.into());
    }

    /// Returns all events, and removes them.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// Waits until the event was recorded.
    pub(crate) async fn until(&self, event: &str) {
        let there = async {
            while !self.0.lock().unwrap().iter().any(|told| told == event) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), there).await.unwrap();
    }
}
