//! Effects of requests on later ones, and the order in which held requests are served.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use test_support::transport;
use zorb::prelude::*;
use zorb::wire::{ContextId, ServiceContext};
use zorb::{ActivateError, Orb, OrbBuilder, ReplyInfo, SyncScope};

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
            void follow(in Log other);
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

    async fn follow(&self, _other: Option<LogRef>) -> Result<(), SystemException> {
        Ok(())
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

// clause: poa.pi.contexts, giop.context.reply
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
    let (server, client, log) = over_tcp(transport::builder().start_paused()).await;
    let numbers: Vec<i32> = (0..500).collect();
    for number in &numbers {
        log.add(*number).await.unwrap();
    }
    log.flush().await.unwrap();
    // The requests have arrived, and none is served.
    let waits = Arc::new(log.with_timeout(Duration::from_millis(200)));
    assert_eq!(waits.all().await.unwrap_err().kind, SystemExceptionKind::Timeout);
    server.resume();
    assert_eq!(log.all().await.unwrap(), numbers);
    // Later requests follow them in order.
    log.add(-1).await.unwrap();
    assert_eq!(log.all().await.unwrap().last(), Some(&-1));
    client.shutdown().await;
}

#[tokio::test]
async fn an_object_that_may_come_is_not_denied() {
    let server = transport::builder().listen("iiop://127.0.0.1:0").start_paused().build().await.unwrap();
    let client = transport::builder().build().await.unwrap();
    let url = format!("corbaloc:iiop:1.2@{}/Log", server.endpoints()[0]);
    let log: LogRef = client.resolve_unchecked(&url).await.unwrap();
    // After a restart, clients arrive before the objects are activated.
    assert!(log.locate().await.unwrap());
    let gone: LogRef = server.activate(Log::default()).unwrap();
    let old: LogRef = client.resolve_unchecked(&gone.to_string()).await.unwrap();
    assert!(old.locate().await.unwrap());
    assert!(server.deactivate(&gone));
    assert!(!old.locate().await.unwrap(), "the ORB's own keys are used once");
    server.resume();
    assert!(!log.locate().await.unwrap());
    let _here: LogRef = server.activate_named("Log", Log::default()).unwrap();
    assert!(log.locate().await.unwrap());
}

// clause: giop.response_flags.forward, poa.messaging.sync_scope.with_server
#[tokio::test]
async fn a_server_has_a_oneway_only_where_the_object_is() {
    let (server, _client, log) = over_tcp(transport::builder()).await;
    let told = log.with_sync_scope(SyncScope::Server);
    told.add(1).await.unwrap();
    assert_eq!(log.all().await.unwrap().to_vec(), [1]);
    let here: LogRef = server.resolve(&log.to_string()).await.unwrap();
    assert!(server.deactivate_and_wait(&here).await);
    assert_eq!(told.add(2).await.unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
}

#[tokio::test]
async fn a_call_inside_of_the_process_is_held_no_longer_than_its_deadline() {
    let orb = Orb::builder().start_paused().build().await.unwrap();
    let log: LogRef = orb.activate(Log::default()).unwrap();
    let error = log.with_timeout(Duration::from_millis(20)).all().await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Timeout, CompletionStatus::No));
    orb.resume();
    assert_eq!(log.all().await.unwrap().len(), 0);
}

// clause: exc.kind.bad_param, exc.completed.marshal
#[tokio::test]
async fn reference_without_an_address_is_refused_and_not_sent_as_nil() {
    let (_server, client, log) = over_tcp(transport::builder()).await;
    let mute: LogRef = client.activate(Log::default()).unwrap();
    let error = log.follow(&mute).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::BadParam, CompletionStatus::No));
    assert!(error.to_string().contains(".listen("), "{error}");
    // Within the process it needs no port, and nil is nil.
    mute.follow(&mute).await.unwrap();
    log.follow(None).await.unwrap();
}

#[tokio::test]
async fn a_plain_key_is_none_of_the_orbs_own() {
    let orb = Orb::builder().build().await.unwrap();
    let error = orb.activate_named::<LogRef, _>(b"\xfbzo\x01account 1234", Log::default()).unwrap_err();
    assert!(matches!(error, ActivateError::ReservedKey(_)), "{error}");
}

/// Records whether a request began after the end of its object was announced.
#[derive(Default)]
struct Guarded {
    over: AtomicBool,
    late: AtomicUsize,
}

impl LogServant for Guarded {
    async fn add(&self, _number: i32) -> Result<(), SystemException> {
        Ok(())
    }

    async fn mark(&self, _number: i32) -> Result<(), SystemException> {
        Ok(())
    }

    async fn marked(&self, number: i32) -> Result<i32, SystemException> {
        if self.over.load(Ordering::SeqCst) {
            self.late.fetch_add(1, Ordering::SeqCst);
        }
        Ok(number)
    }

    async fn follow(&self, _other: Option<LogRef>) -> Result<(), SystemException> {
        Ok(())
    }

    async fn all(&self) -> Result<Seq<i32>, SystemException> {
        Ok(Seq::default())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn no_request_starts_behind_the_end_of_its_object() {
    let server = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let client = transport::builder().build().await.unwrap();
    for _ in 0..50 {
        let servant = Arc::new(Guarded::default());
        let here: LogRef = server.activate(Arc::clone(&servant)).unwrap();
        let callers: Vec<_> =
            [client.resolve_unchecked::<LogRef>(&here.to_string()).await.unwrap(), here.clone()]
                .into_iter()
                .map(|log| tokio::spawn(async move { while log.marked(1).await.is_ok() {} }))
                .collect();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(server.deactivate_and_wait(&here).await);
        servant.over.store(true, Ordering::SeqCst);
        for caller in callers {
            caller.await.unwrap();
        }
        assert_eq!(servant.late.load(Ordering::SeqCst), 0);
    }
    client.shutdown().await;
}
