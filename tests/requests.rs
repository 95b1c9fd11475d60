//! What requests leave behind for the next ones, and in which order those that had to wait are served.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod transport;

use std::sync::{Arc, Mutex};

use zorb::prelude::*;
use zorb::wire::{ContextId, ServiceContext};
use zorb::{Orb, OrbBuilder, ReplyInfo};

zorb::idl! {
    module Requests {
        typedef sequence<long> Numbers;
        interface Log {
            oneway void add(in long number);
            /// Leaves a service context for a reply that it does not have.
            oneway void mark(in long number);
            /// A reply with a service context.
            long marked(in long number);
            Numbers all();
        };
    };
}

use requests::{LogRef, LogServant};

const MARK: ContextId = ContextId(0x7a6f_7201);

#[derive(Default)]
struct Log(Mutex<Vec<i32>>);

impl Log {
    fn leave(&self, number: i32) {
        let data = Bytes::copy_from_slice(&number.to_be_bytes());
        zorb::request().set_reply_context(ServiceContext { id: MARK, data });
    }
}

impl LogServant for Log {
    async fn add(&self, number: i32) -> Result<(), SystemException> {
        self.0.lock().unwrap().push(number);
        Ok(())
    }

    async fn mark(&self, number: i32) -> Result<(), SystemException> {
        self.leave(number);
        self.add(number).await
    }

    async fn marked(&self, number: i32) -> Result<i32, SystemException> {
        self.leave(number);
        Ok(number)
    }

    async fn all(&self) -> Result<Seq<i32>, SystemException> {
        Ok(self.0.lock().unwrap().clone().into())
    }
}

async fn over_tcp(server: OrbBuilder) -> (Orb, Orb, LogRef) {
    let server = server.listen("iiop://127.0.0.1:0").build().await.unwrap();
    let client = transport::builder().build().await.unwrap();
    let here: LogRef = server.activate(Log::default()).unwrap();
    let log = client.resolve_unchecked(&here.to_string()).await.unwrap();
    (server, client, log)
}

fn marks(info: &ReplyInfo) -> Vec<ServiceContext> {
    info.contexts().into_iter().filter(|context| context.id == MARK).collect()
}

#[tokio::test]
async fn what_a_oneway_leaves_for_a_reply_goes_into_none() {
    let (_server, _client, log) = over_tcp(transport::builder()).await;
    let info = ReplyInfo::new();
    let log = log.with_reply_info(&info);
    for round in 0..20 {
        // Alone, and with the next request in the same read.
        log.mark(round).await.unwrap();
        if round % 2 == 0 {
            log.flush().await.unwrap();
        }
        assert_eq!(log.all().await.unwrap().len() as i32, round + 1);
        assert_eq!(marks(&info), [], "round {round}");
        assert_eq!(log.marked(round).await.unwrap(), round);
        let [only] = marks(&info).try_into().unwrap();
        assert_eq!(only.data.as_ref(), round.to_be_bytes());
    }
}

#[tokio::test]
async fn requests_that_wait_are_served_in_the_order_in_which_they_came() {
    let (server, client, log) = over_tcp(transport::builder().hold()).await;
    let numbers: Vec<i32> = (0..500).collect();
    for number in &numbers {
        log.add(*number).await.unwrap();
    }
    log.flush().await.unwrap();
    // They are there, and none is served.
    let waits = Arc::new(log.with_timeout(Duration::from_millis(200)));
    assert_eq!(waits.all().await.unwrap_err().kind, SystemExceptionKind::Timeout);
    server.accept();
    assert_eq!(log.all().await.unwrap(), numbers);
    // And goes on in order behind them.
    log.add(-1).await.unwrap();
    assert_eq!(log.all().await.unwrap().last(), Some(&-1));
    client.shutdown().await;
}
