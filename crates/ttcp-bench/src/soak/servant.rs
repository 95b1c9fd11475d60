//! The objects that are called.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::ValueEnum;
use zorb::dynamic::{DynServant, DynamicException, ServerRequest};
use zorb::poa::{Refusal, ServantActivator};
use zorb::prelude::*;
use zorb::{ByteSource, ByteStream, MinorCode, ObjectId, Poa, Servant};

use super::contract::{
    Choice, Record, Refused, SlimServant, TargetRef, TargetServant, checksum, octets, target,
};
use super::record_file::{Id, RecordFile};

/// The message of intended panics, those of `fail`.
pub(super) const PANIC: &str = "a servant of the soak panics";
/// Maximum size that is stored of one stream, bytes.
const LONGEST: usize = 8 << 20;
/// Size of an element of a stream that is created while it is sent, bytes.
const ITEM: usize = 10_000;
/// A server with an injected fault shows it in one of this many calls.
const SELDOM: u64 = 40;

/// How a server is made to err, to see that it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sabotage {
    /// Executes twice
    Twice,
    /// Does not answer
    Mute,
    /// Answers something else
    Corrupt,
    /// Keeps a task for ever
    Leak,
    /// Opens a file for ever
    Files,
}

/// State shared by all objects of a server.
pub(super) struct ServerState {
    notes: RecordFile,
    sabotage: Option<Sabotage>,
    calls: AtomicU64,
    busy: AtomicU64,
    floods: Mutex<HashMap<u64, u32>>,
    made: Mutex<HashSet<u64>>,
}

/// The POA of objects that calls create.
pub(super) const MADE: &str = "made";

/// A running execution of a call.
struct ExecutionGuard<'s>(&'s ServerState);

impl Drop for ExecutionGuard<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ServerState {
    pub(super) fn new(notes: RecordFile, sabotage: Option<Sabotage>) -> ServerState {
        ServerState {
            notes,
            sabotage,
            calls: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            floods: Mutex::default(),
            made: Mutex::default(),
        }
    }

    /// Returns the number of calls that are executing now.
    pub(super) fn busy(&self) -> u64 {
        self.busy.load(Ordering::Relaxed)
    }

    /// Discards what killed or given-up clients left: floods whose count was not queried, and objects that
    /// were not deactivated.
    pub(super) async fn sweep(&self, made: &Poa) {
        self.floods().clear();
        let left = std::mem::take(&mut *self.made());
        for id in left {
            if let Ok(ended) = made.deactivate_object(&ObjectId::from(id.to_string())) {
                ended.completed().await;
            }
        }
    }

    /// Records that the call is executed, before anything else is done for it.
    async fn begin(&self, id: u64) -> Result<ExecutionGuard<'_>, SystemException> {
        let id = Id(id);
        if !id.is_sound() {
            let no = CompletionStatus::No;
            return Err(SystemException::new(SystemExceptionKind::BadParam, MinorCode::NONE, no));
        }
        self.busy.fetch_add(1, Ordering::Relaxed);
        let busy = ExecutionGuard(self);
        self.note(id)?;
        if self.calls.fetch_add(1, Ordering::Relaxed) % SELDOM == SELDOM - 1 {
            match self.sabotage {
                Some(Sabotage::Twice) => self.note(id)?,
                Some(Sabotage::Mute) => std::future::pending().await,
                Some(Sabotage::Leak) => drop(tokio::spawn(std::future::pending::<()>())),
                Some(Sabotage::Files) => std::mem::forget(std::fs::File::open("/dev/null")),
                Some(Sabotage::Corrupt) | None => {}
            }
        }
        Ok(busy)
    }

    fn note(&self, id: Id) -> Result<(), SystemException> {
        self.notes.executed(id).map_err(|error| {
            let kind = SystemExceptionKind::PersistStore;
            SystemException::new(kind, MinorCode::NONE, CompletionStatus::No).with_source(error)
        })
    }

    fn is_corrupt(&self) -> bool {
        self.sabotage == Some(Sabotage::Corrupt) && self.calls.load(Ordering::Relaxed).is_multiple_of(SELDOM)
    }

    fn made(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn floods(&self) -> MutexGuard<'_, HashMap<u64, u32>> {
        self.floods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An object of the soak.
#[derive(Clone)]
pub(super) struct Target(pub(super) Arc<ServerState>);

impl TargetServant for Target {
    async fn ping(&self, id: u64) -> Result<(), SystemException> {
        let _busy = self.0.begin(id).await?;
        Ok(())
    }

    async fn echo_octets(&self, id: u64, value: Bytes) -> Result<Bytes, SystemException> {
        let _busy = self.0.begin(id).await?;
        Ok(if self.0.is_corrupt() { Bytes::from_static(b"something else") } else { value })
    }

    async fn echo_longs(&self, id: u64, value: Seq<i32>) -> Result<Seq<i32>, SystemException> {
        let _busy = self.0.begin(id).await?;
        Ok(value)
    }

    async fn echo_doubles(&self, id: u64, value: Seq<f64>) -> Result<Seq<f64>, SystemException> {
        let _busy = self.0.begin(id).await?;
        Ok(value)
    }

    async fn echo_texts(&self, id: u64, value: &[String]) -> Result<Vec<String>, SystemException> {
        let _busy = self.0.begin(id).await?;
        Ok(value.to_vec())
    }

    async fn echo_records(&self, id: u64, value: &[Record]) -> Result<Vec<Record>, SystemException> {
        let _busy = self.0.begin(id).await?;
        Ok(value.to_vec())
    }

    async fn echo_choice(&self, id: u64, value: &Choice) -> Result<Choice, SystemException> {
        let _busy = self.0.begin(id).await?;
        Ok(value.clone())
    }

    async fn echo_any(&self, id: u64, value: &Any) -> Result<Any, SystemException> {
        let _busy = self.0.begin(id).await?;
        Ok(value.clone())
    }

    async fn echo_wide(&self, id: u64, value: WStr<'_>) -> Result<WString, SystemException> {
        let _busy = self.0.begin(id).await?;
        Ok(value.into())
    }

    async fn produce(&self, id: u64, len: u32) -> Result<ByteSource, SystemException> {
        let _busy = self.0.begin(id).await?;
        let all = octets(id, len as usize);
        if len.is_multiple_of(2) {
            return Ok(all.into());
        }
        let items = (0..all.len())
            .step_by(ITEM)
            .map(move |start| Ok::<_, SystemException>(all.slice(start..all.len().min(start + ITEM))));
        Ok(ByteSource::stream(len.into(), futures_util::stream::iter(items)))
    }

    async fn consume(&self, id: u64, mut value: ByteStream) -> Result<u64, SystemException> {
        let _busy = self.0.begin(id).await?;
        let mut sum = 0;
        while let Some(octets) = value.next().await {
            sum = checksum(sum, &octets?);
        }
        Ok(sum)
    }

    async fn deposit(&self, id: u64, value: ByteStream) -> Result<u64, SystemException> {
        let _busy = self.0.begin(id).await?;
        Ok(checksum(0, &value.into_aligned(4096, LONGEST).await?))
    }

    async fn refuse(&self, id: u64) -> Result<(), target::RefuseError> {
        let _busy = self.0.begin(id).await?;
        Err(Refused { id, why: "as it was told".to_owned() }.into())
    }

    #[expect(clippy::panic, reason = "a servant that panics is one of the faults")]
    async fn fail(&self, id: u64, how: u8) -> Result<(), SystemException> {
        let exception = |kind, completed| Err(SystemException::new(kind, MinorCode::NONE, completed));
        if how == 1 {
            return exception(SystemExceptionKind::NoResources, CompletionStatus::No);
        }
        let _busy = self.0.begin(id).await?;
        if how == 0 {
            return exception(SystemExceptionKind::NoPermission, CompletionStatus::Yes);
        }
        panic!("{PANIC}");
    }

    async fn nap(&self, id: u64, milliseconds: u32) -> Result<(), SystemException> {
        let _busy = self.0.begin(id).await?;
        tokio::time::sleep(Duration::from_millis(milliseconds.into())).await;
        Ok(())
    }

    async fn inward(&self, id: u64, inner: u64) -> Result<(), SystemException> {
        let _busy = self.0.begin(id).await?;
        let own: TargetRef = zorb::request().target();
        // Regardless of the outcome of the inner call, this one was executed.
        own.ping(inner).await.map_err(|exception| exception.completed(CompletionStatus::Yes))
    }

    async fn connection(&self) -> Result<String, SystemException> {
        Ok(format!("{} {}", std::process::id(), zorb::request().peer()))
    }

    async fn hint(&self, id: u64, flood: u64) -> Result<(), SystemException> {
        let _busy = self.0.begin(id).await?;
        *self.0.floods().entry(flood).or_default() += 1;
        Ok(())
    }

    async fn hinted(&self, flood: u64) -> Result<u32, SystemException> {
        Ok(self.0.floods().remove(&flood).unwrap_or_default())
    }

    async fn make(&self, id: u64) -> Result<String, SystemException> {
        let _busy = self.0.begin(id).await?;
        // The ORB is shutting down, so its POA no longer exists. The call was executed nevertheless.
        let gone = || {
            let yes = CompletionStatus::Yes;
            SystemException::new(SystemExceptionKind::ObjAdapter, MinorCode::NONE, yes)
        };
        let made = zorb::request().orb().root_poa().find(MADE).map_err(|_| gone())?;
        let new: TargetRef = made.activate_with_id(id.to_string(), self.clone()).map_err(|_| gone())?;
        self.0.made().insert(id);
        Ok(new.to_string())
    }

    async fn unmake(&self, id: u64) -> Result<(), SystemException> {
        let _busy = self.0.begin(id).await?;
        let request = zorb::request();
        if let Some(poa) = request.poa() {
            // It may have been deactivated concurrently.
            let _ = poa.deactivate_object(&ObjectId::from(request.object_id()));
        }
        Ok(())
    }
}

/// Incarnates objects when they are called.
pub(super) struct Activator(pub(super) Target);

impl ServantActivator for Activator {
    async fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        Ok(Servant::of::<TargetRef, _>(self.0.clone()))
    }
}

/// The servant whose replies are received by handlers.
pub(super) struct Slim(pub(super) Arc<ServerState>);

impl SlimServant for Slim {
    async fn bump(&self, id: u64) -> Result<u64, SystemException> {
        let _busy = self.0.begin(id).await?;
        Ok(id.wrapping_add(1))
    }
}

impl DynServant for Slim {
    async fn invoke(&self, request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let id = request.get::<u64>("id")?;
        let _busy = self.0.begin(id).await?;
        Ok(request.returning(id.wrapping_add(1))?)
    }
}
