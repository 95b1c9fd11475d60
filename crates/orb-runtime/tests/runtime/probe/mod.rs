//! A hand-written interface for the runtime's own tests, equivalent to what `idl!` would generate for
//!
//! ```idl
//! interface Probe {
//!     void ping();
//!     long add(in long a, in long b);
//!     void sleep(in unsigned long milliseconds);
//!     void panic();
//!     oneway void note(in long value, in unsigned long milliseconds);
//!     sequence<octet> echo(in sequence<octet> octets);
//!     sequence<long> notes();
//! };
//! ```
#![allow(dead_code)]

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use orb_runtime::private as v1;
use orb_runtime::{ObjectRef, Orb, OrbBuilder, Reference, SystemException, Transport};
use v1::{CdrDecode, CdrEncode, OpTable, Operation, Outcome, ServerRequest};

/// Returns a builder of ORBs with the transport under test. `ZORB_TEST_TRANSPORT=uring` selects io_uring, and
/// `uring-threads` selects io_uring on threads of the ORB. On runtimes with several threads, `uring` selects
/// the latter, too.
pub fn builder() -> OrbBuilder {
    let several = tokio::runtime::Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == tokio::runtime::RuntimeFlavor::MultiThread);
    Orb::builder().transport(match std::env::var("ZORB_TEST_TRANSPORT").as_deref() {
        Ok("uring") if !several => Transport::IoUring,
        Ok("uring" | "uring-threads") => Transport::IoUringThreads(2),
        Ok("epoll") | Err(_) => Transport::Epoll,
        Ok(other) => panic!("ZORB_TEST_TRANSPORT is `{other}`, none of `epoll`, `uring` and `uring-threads`"),
    })
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRef(ObjectRef);

impl Reference for ProbeRef {
    const REPOSITORY_ID: &'static str = "IDL:Probe:1.0";
    fn from_object(object: ObjectRef) -> Self {
        Self(object)
    }
    fn as_object(&self) -> &ObjectRef {
        &self.0
    }
}

impl fmt::Display for ProbeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ProbeRef {
    pub async fn ping(&self) -> Result<(), SystemException> {
        static OP: Operation = Operation::twoway("ping").of(&INTERFACE, 0);
        if let Some(local) = v1::local::<dyn ProbeLocal>(&self.0) {
            return local.call(&self.0, &OP, |s| Box::pin(async move { s.probe().ping().await })).await;
        }
        v1::invoke(&self.0, &OP, |_| Ok(()), |_| Ok(()), |_, _| None).await
    }
    pub async fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        static OP: Operation = Operation::twoway("add");
        v1::invoke(
            &self.0,
            &OP,
            |e| {
                e.put_i32(a);
                e.put_i32(b);
                Ok(())
            },
            |d| d.read_i32(),
            |_, _| None,
        )
        .await
    }
    pub async fn sleep(&self, milliseconds: u32) -> Result<(), SystemException> {
        static OP: Operation = Operation::twoway("sleep");
        v1::invoke(&self.0, &OP, |e| milliseconds.encode(e), |_| Ok(()), |_, _| None).await
    }
    pub async fn panic(&self) -> Result<(), SystemException> {
        static OP: Operation = Operation::twoway("panic");
        v1::invoke(&self.0, &OP, |_| Ok(()), |_| Ok(()), |_, _| None).await
    }
    pub async fn note(&self, value: i32, milliseconds: u32) -> Result<(), SystemException> {
        static OP: Operation = Operation::oneway("note");
        v1::send_oneway(&self.0, &OP, |e| {
            e.put_i32(value);
            e.put_u32(milliseconds);
            Ok(())
        })
        .await
    }
    pub async fn echo(&self, octets: Bytes) -> Result<Bytes, SystemException> {
        static OP: Operation = Operation::twoway("echo");
        v1::invoke(&self.0, &OP, |e| octets.encode(e), Bytes::decode, |_, _| None).await
    }
    pub async fn notes(&self) -> Result<Vec<i32>, SystemException> {
        static OP: Operation = Operation::twoway("notes");
        v1::invoke(&self.0, &OP, |_| Ok(()), Vec::decode, |_, _| None).await
    }
    pub async fn nonsense(&self) -> Result<(), SystemException> {
        static OP: Operation = Operation::twoway("nonsense");
        v1::invoke(&self.0, &OP, |_| Ok(()), |_| Ok(()), |_, _| None).await
    }
}

#[derive(Default)]
pub struct Probe {
    pub notes: Mutex<Vec<i32>>,
    pub cancelled: Arc<std::sync::atomic::AtomicUsize>,
}

impl Probe {
    async fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

pub trait ProbeLocal: Send + Sync {
    fn probe(&self) -> &Probe;
}

struct Skeleton(Probe);

impl ProbeLocal for Skeleton {
    fn probe(&self) -> &Probe {
        &self.0
    }
}

impl v1::Serves<Probe> for ProbeRef {
    fn skeleton(servant: Probe) -> Arc<dyn v1::Skeleton> {
        Arc::new(Skeleton(servant))
    }
}

static IDS: [&str; 1] = ["IDL:Probe:1.0"];
static TABLE: OpTable<7, 16> = OpTable::new(["ping", "add", "sleep", "panic", "note", "echo", "notes"]);
static INTERFACE: v1::Interface =
    v1::Interface::new("IDL:Probe:1.0", &["ping", "add", "sleep", "panic", "note", "echo", "notes"]);

impl v1::Skeleton for Skeleton {
    fn repository_ids(&self) -> &'static [&'static str] {
        &IDS
    }
    fn dispatch(self: Arc<Self>, request: ServerRequest, slot: &mut v1::DispatchSlot) {
        slot.set(async move { serve(&self.0, request).await });
    }
    fn operations(&self) -> v1::Operations {
        v1::Operations { names: TABLE.names(), counts: &[7] }
    }
    fn downcast_into(self: Arc<Self>, out: &mut dyn Any) {
        if let Some(out) = out.downcast_mut::<Option<Arc<dyn ProbeLocal>>>() {
            *out = Some(self);
        }
    }
}

async fn serve(probe: &Probe, mut request: ServerRequest) -> Outcome {
    macro_rules! arguments {
        ($($ty:ty),*) => {{
            match request.decode(|d| Ok(($(<$ty>::decode(d)?,)*))) {
                Ok(values) => values,
                Err(error) => return request.bad_arguments(error),
            }
        }};
    }
    match request.operation_index(&TABLE) {
        Some(0) => {
            let done = probe.ping().await;
            match done {
                Ok(()) => request.reply(|_| Ok(())),
                Err(error) => request.system_exception(error),
            }
        }
        Some(1) => {
            let (a, b) = arguments!(i32, i32);
            request.reply(|e| (a + b).encode(e))
        }
        Some(2) => {
            let (milliseconds,) = arguments!(u32);
            let current = orb_runtime::request();
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(milliseconds.into())) => {}
                () = current.cancelled() => {
                    probe.cancelled.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                }
            }
            request.reply(|_| Ok(()))
        }
        Some(3) => panic!("as asked"),
        Some(4) => {
            let (value, milliseconds) = arguments!(i32, u32);
            if milliseconds > 0 {
                tokio::time::sleep(Duration::from_millis(milliseconds.into())).await;
            }
            probe.notes.lock().unwrap().push(value);
            request.reply(|_| Ok(()))
        }
        Some(5) => {
            let (octets,) = arguments!(Bytes);
            request.reply(|e| octets.encode(e))
        }
        Some(6) => {
            let notes = probe.notes.lock().unwrap().clone();
            request.reply(|e| notes.encode(e))
        }
        _ => request.other_operation(&IDS),
    }
}
