//! Large values: time-consuming work on them delays no other call, even if everything runs on one thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use zorb::dynamic::{DynServant, DynamicException, Request, ServerRequest};
use zorb::prelude::*;
use zorb::{CompletionStatus, Servant};

use super::meter::{ByName, Compiled, Kept, MeterRef, interface};

/// Calls of another client while the long one waits.
const OTHERS: usize = 20;

/// Occupies the runtime's only thread for blocking work until this is dropped, so that decoding there waits.
struct Busy(#[expect(dead_code, reason = "the thread waits for its end")] Sender<()>);

impl Busy {
    fn begin() -> Self {
        let (end, ended) = channel::<()>();
        tokio::task::spawn_blocking(move || ended.recv());
        Self(end)
    }
}

/// Runs a test on one thread, with one more for blocking work.
fn on_one_thread(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().max_blocking_threads(1).build().unwrap().block_on(test);
}

/// A dynamic servant that records that it was called.
struct Asked {
    servant: ByName,
    asked: Arc<AtomicBool>,
    /// Occupies the thread for blocking work as soon as something large is requested.
    occupies: Option<Arc<Mutex<Option<Busy>>>>,
}

impl DynServant for Asked {
    async fn invoke(&self, request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        if request.operation() == "kept" {
            self.asked.store(true, Ordering::SeqCst);
            if let Some(busy) = &self.occupies {
                *busy.lock().unwrap() = Some(Busy::begin());
            }
        }
        self.servant.invoke(request).await
    }
}

/// Returns many nested anys: 120 KiB.
fn anys() -> Any {
    let one = (0..20).fold(Any::default(), |inner, _| Any::new(inner).unwrap());
    Any::new(vec![one; 1_500]).unwrap()
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

/// A server and its two clients, each with a connection of its own.
struct Scene {
    server: Orb,
    meter: MeterRef,
    other: MeterRef,
    _clients: [Orb; 2],
}

async fn served(servant: Servant) -> Scene {
    let server = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let url = server.activation().named("meter").activate_erased(servant).unwrap().to_string();
    let client = async || {
        let orb = Orb::builder().build().await.unwrap();
        let meter: MeterRef = orb.resolve_unchecked(&url).await.unwrap();
        assert_eq!(meter.title().await.unwrap(), "meter");
        (orb, meter)
    };
    let ((one, meter), (two, other)) = (client().await, client().await);
    Scene { server, meter, other, _clients: [one, two] }
}

async fn others_are_answered(meter: &MeterRef) {
    for call in 0..OTHERS {
        assert_eq!(meter.mean(call as i32, 0, 0.0).await.unwrap(), call as f64 / 3.0);
    }
}

#[test]
fn calls_are_answered_while_large_arguments_are_decoded() {
    on_one_thread(async {
        let asked = Arc::new(AtomicBool::new(false));
        let servant = Asked { servant: ByName(Arc::default()), asked: Arc::clone(&asked), occupies: None };
        let Scene { server, meter, other, _clients } = served(Servant::dynamic(interface(), servant)).await;
        let busy = Busy::begin();
        let before = server.stats().messages_in;
        let long = tokio::spawn(async move { meter.kept(&anys()).await });
        until(|| server.stats().messages_in > before).await;
        others_are_answered(&other).await;
        assert!(!asked.load(Ordering::SeqCst) && !long.is_finished(), "decoded where others are served");
        drop(busy);
        assert_eq!(long.await.unwrap().unwrap(), anys());
    });
}

#[test]
fn calls_are_answered_while_large_results_are_encoded() {
    on_one_thread(async {
        let (asked, busy) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let (servant, occupies) = (ByName(Arc::default()), Some(Arc::clone(&busy)));
        let servant = Asked { servant, asked: Arc::clone(&asked), occupies };
        let Scene { server: _server, meter, other, _clients } =
            served(Servant::dynamic(interface(), servant)).await;
        let long = tokio::spawn(async move { meter.kept(&anys()).await });
        until(|| asked.load(Ordering::SeqCst)).await;
        others_are_answered(&other).await;
        assert!(!long.is_finished(), "encoded where others are served");
        drop(busy.lock().unwrap().take());
        assert_eq!(long.await.unwrap().unwrap(), anys());
    });
}

#[test]
fn calls_are_answered_while_a_large_reply_is_decoded() {
    on_one_thread(async {
        let servant = Servant::of::<MeterRef, _>(Compiled(Arc::new(Kept::default())));
        let Scene { server, meter, other, _clients } = served(servant).await;
        let busy = Busy::begin();
        let before = server.stats().messages_out;
        let call = Request::of(&meter, &interface(), "kept").unwrap().with("given", anys()).unwrap();
        let long = tokio::spawn(async move { call.invoke().await });
        until(|| server.stats().messages_out > before).await;
        others_are_answered(&other).await;
        assert!(!long.is_finished(), "decoded where others are called");
        drop(busy);
        assert_eq!(long.await.unwrap().unwrap().get::<Any>().unwrap(), anys());
    });
}

/// A servant that blocks its thread anyway needs no other thread.
#[test]
fn large_arguments_of_a_servant_that_blocks_its_thread_are_decoded_there() {
    on_one_thread(async {
        let servant = Servant::dynamic(interface(), ByName(Arc::default())).blocking();
        let Scene { server: _server, meter, _clients, .. } = served(servant).await;
        assert_eq!(meter.kept(&anys()).await.unwrap(), anys());
    });
}

#[test]
fn large_arguments_that_do_not_decode_are_an_exception_of_their_call() {
    on_one_thread(async {
        let Scene { server: _server, meter, other, _clients } =
            served(Servant::dynamic(interface(), ByName(Arc::default()))).await;
        // In place of a sequence of readings.
        let call = Request::new(&meter, "sorted").input("given", vec![u32::MAX; 1 << 15]).unwrap();
        let Err(DynamicException::System(error)) = call.invoke().await else { panic!("decoded") };
        assert_eq!((error.kind, error.completed), (SystemExceptionKind::Marshal, CompletionStatus::No));
        others_are_answered(&meter).await;
        others_are_answered(&other).await;
    });
}
