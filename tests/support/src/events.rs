//! Two ORBs, and a record of events: helpers of the tests of POAs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use zorb::Orb;

/// Returns a server that listens, and a client.
pub async fn orbs() -> (Orb, Orb) {
    let server = crate::transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    (server, crate::transport::builder().build().await.unwrap())
}

/// The events, in order.
#[derive(Clone, Default)]
pub struct Story(Arc<Mutex<Vec<String>>>);

impl Story {
    /// Adds an event.
    pub fn tell(&self, event: impl Into<String>) {
        self.0.lock().unwrap().push(event.into());
    }

    /// Returns all events, and removes them.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// Waits until the event was recorded.
    pub async fn until(&self, event: &str) {
        let there = async {
            while !self.0.lock().unwrap().iter().any(|told| told == event) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), there).await.unwrap();
    }
}
