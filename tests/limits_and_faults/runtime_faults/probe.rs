//! The object that is called in these tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use zorb::prelude::*;
use zorb::testing::Pair as Orbs;

use test_support::transport::builder;

zorb::idl! {
    module Faults {
        typedef sequence<octet> Octets;
        exception Refused { long why; string text; };
        enum Shade { LIGHT, DARK };
        union Choice switch (Shade) { case LIGHT: long number; case DARK: string text; };
        struct Item { string name; long value; };
        typedef sequence<Item> Items;

        interface Probe {
            attribute long level;
            void ping();
            long add(in long a, in long b);
            void nap(in unsigned long milliseconds);
            /// Panics after that time.
            void stumble(in unsigned long milliseconds);
            /// Refuses negative values, and finds no resources for 0.
            long guarded(in long value) raises (Refused);
            Octets echo(in Octets data);
            Items all(in Choice choice, inout Item item, out Octets octets, in Probe other);
            /// Calls `nap` of another object.
            void nap_there(in Probe there, in unsigned long milliseconds);
            oneway void note(in long value);
            oneway void note_after(in long value, in unsigned long milliseconds);
            oneway void trip();
            long noted();
        };
    };
}

pub(crate) use faults::{Choice, Item, ProbeRef, ProbeServant, Refused, probe::GuardedError};

/// Counts its calls.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    /// Calls of `add`, `echo` and `nap` that began.
    pub(crate) begun: AtomicU32,
    /// Calls that ended.
    pub(crate) ended: AtomicU32,
    /// Requests that were cancelled while they slept.
    pub(crate) cancelled: AtomicU32,
    noted: AtomicI32,
    level: AtomicI32,
}

impl Probe {
    pub(crate) fn begun(&self) -> u32 {
        self.begun.load(Ordering::SeqCst)
    }

    pub(crate) fn ended(&self) -> u32 {
        self.ended.load(Ordering::SeqCst)
    }

    pub(crate) fn cancelled(&self) -> u32 {
        self.cancelled.load(Ordering::SeqCst)
    }

    fn begin(&self) -> End<'_> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        End(self)
    }
}

struct End<'p>(&'p Probe);

impl End<'_> {
    fn reached(self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

impl ProbeServant for Probe {
    async fn level(&self) -> Result<i32, SystemException> {
        Ok(self.level.load(Ordering::SeqCst))
    }

    async fn set_level(&self, level: i32) -> Result<(), SystemException> {
        self.level.store(level, Ordering::SeqCst);
        Ok(())
    }

    async fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    async fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        self.begin().reached();
        Ok(a.wrapping_add(b))
    }

    async fn nap(&self, milliseconds: u32) -> Result<(), SystemException> {
        let end = self.begin();
        let request = zorb::request();
        tokio::select! {
            () = request.cancelled() => {
                self.cancelled.fetch_add(1, Ordering::SeqCst);
            }
            () = tokio::time::sleep(Duration::from_millis(milliseconds.into())) => end.reached(),
        }
        Ok(())
    }

    async fn stumble(&self, milliseconds: u32) -> Result<(), SystemException> {
        if milliseconds > 0 {
            tokio::time::sleep(Duration::from_millis(milliseconds.into())).await;
        }
        panic!("stumbled after {milliseconds} ms")
    }

    async fn guarded(&self, value: i32) -> Result<i32, GuardedError> {
        match value {
            ..0 => Err(Refused { why: value, text: "negative".to_owned() }.into()),
            0 => Err(SystemException::no_resources().with_minor(zorb::MinorCode::omg(1)).into()),
            _ => Ok(value * 2),
        }
    }

    async fn echo(&self, data: Bytes) -> Result<Bytes, SystemException> {
        self.begin().reached();
        Ok(data)
    }

    async fn all(
        &self,
        choice: &Choice,
        item: Item,
        other: Option<ProbeRef>,
    ) -> Result<(Vec<Item>, Item, Bytes), SystemException> {
        let (name, value) = match choice {
            Choice::Number(number) => ("number", *number),
            Choice::Text(text) => (text.as_str(), -1),
        };
        let level = match &other {
            Some(other) => other.level().await?,
            None => i32::MIN,
        };
        let items =
            vec![Item { name: name.to_owned(), value }, Item { name: "level".to_owned(), value: level }];
        let changed = Item { name: item.name.chars().rev().collect(), value: item.value + 1 };
        Ok((items, changed, Bytes::from_static(b"octets")))
    }

    async fn nap_there(&self, there: Option<ProbeRef>, milliseconds: u32) -> Result<(), SystemException> {
        there.ok_or("nil").or_system_exception(SystemExceptionKind::BadParam)?.nap(milliseconds).await
    }

    async fn note(&self, value: i32) -> Result<(), SystemException> {
        self.noted.fetch_add(value, Ordering::SeqCst);
        Ok(())
    }

    async fn note_after(&self, value: i32, milliseconds: u32) -> Result<(), SystemException> {
        tokio::time::sleep(Duration::from_millis(milliseconds.into())).await;
        self.note(value).await
    }

    async fn trip(&self) -> Result<(), SystemException> {
        panic!("tripped")
    }

    async fn noted(&self) -> Result<i32, SystemException> {
        Ok(self.noted.load(Ordering::SeqCst))
    }
}

/// Server and client over TCP, with the client's reference.
pub(crate) struct Tcp {
    pub(crate) server: Orb,
    pub(crate) client: Orb,
    pub(crate) servant: Arc<Probe>,
    pub(crate) here: ProbeRef,
    pub(crate) probe: ProbeRef,
}

pub(crate) async fn tcp() -> Tcp {
    tcp_with(zorb::Limits::default()).await
}

/// Connects both over TCP, with these limits.
pub(crate) async fn tcp_with(limits: zorb::Limits) -> Tcp {
    let server = builder().limits(limits.clone()).listen("iiop://127.0.0.1:0").build().await.unwrap();
    let servant = Arc::new(Probe::default());
    let here: ProbeRef = server.activate_named("Probe", Arc::clone(&servant)).unwrap();
    let client = builder().limits(limits).build().await.unwrap();
    let probe = client.resolve(&here.to_string()).await.unwrap();
    Tcp { server, client, servant, here, probe }
}

/// Activates a servant at the server of a pair, and returns it with the client's reference. No connection is
/// opened yet.
pub(crate) async fn over(orbs: &Orbs) -> (Arc<Probe>, ProbeRef) {
    let servant = Arc::new(Probe::default());
    let here: ProbeRef = orbs.server.activate(Arc::clone(&servant)).unwrap();
    let probe = orbs.client.resolve_unchecked(&here.to_string()).await.unwrap();
    (servant, probe)
}
