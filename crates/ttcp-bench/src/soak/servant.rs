//! The servants of the server of a soak.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::ValueEnum;
use zorb::dynamic::{DynServant, DynamicException, ServerRequest};
use zorb::poa::{Refusal, ServantActivator};
use zorb::prelude::*;
use zorb::{ByteSource, ByteStream, MinorCode, ObjectId, Poa, Servant};

use super::contract::{
    Choice, Record, Refused, SlimServant, TargetRef, TargetServant, call_bytes, checksum, target,
};
use super::record_file::{Id, RecordFile};

/// The message of the intended panics in the operation `fail`.
pub(super) const PANIC_MESSAGE: &str = "a servant of the soak panics";
const MAX_DEPOSIT_BYTES: usize = 8 << 20;
/// Size of the items of a result that is created while it is sent.
const ITEM_BYTES: usize = 10_000;
/// A sabotaged server misbehaves in one of this many calls.
const CALLS_PER_FAULT: u64 = 40;

/// Intended misbehaviour of the server, to test that the soak detects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sabotage {
    /// Record executions twice
    RecordTwice,
    /// Do not answer calls
    NoReply,
    /// Return wrong results
    WrongResults,
    /// Leak tasks
    LeakTasks,
    /// Leak open files
    LeakFiles,
}

pub(super) struct ServerState {
    executions: RecordFile,
    sabotage: Option<Sabotage>,
    call_count: AtomicU64,
    executing_calls: AtomicU64,
    /// The numbers of received oneways, by the id of the flood to which they belong.
    floods: Mutex<HashMap<u64, u32>>,
    /// The ids of the objects that calls created.
    created: Mutex<HashSet<u64>>,
}

/// The name of the POA with the objects that calls create.
pub(super) const CREATED_POA: &str = "made";

/// A guard: until it is dropped, a call counts as executing.
struct ExecutionGuard<'s>(&'s ServerState);

impl Drop for ExecutionGuard<'_> {
    fn drop(&mut self) {
        self.0.executing_calls.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ServerState {
    pub(super) fn new(executions: RecordFile, sabotage: Option<Sabotage>) -> ServerState {
        ServerState {
            executions,
            sabotage,
            call_count: AtomicU64::new(0),
            executing_calls: AtomicU64::new(0),
            floods: Mutex::default(),
            created: Mutex::default(),
        }
    }

    pub(super) fn executing_calls(&self) -> u64 {
        self.executing_calls.load(Ordering::Relaxed)
    }

    /// Discards the counts of floods and the created objects. They remain if clients are killed or give a
    /// connection up.
    pub(super) async fn discard_remains(&self, poa: &Poa) {
        self.floods().clear();
        let left = std::mem::take(&mut *self.created());
        for id in left {
            if let Ok(ended) = poa.deactivate_object(&ObjectId::from(id.to_string())) {
                ended.completed().await;
            }
        }
    }

    /// Records that the call is executed. A servant must call this function before it does anything else.
    async fn begin(&self, id: u64) -> Result<ExecutionGuard<'_>, SystemException> {
        let id = Id(id);
        if !id.is_valid() {
            return Err(SystemException::bad_param());
        }
        self.executing_calls.fetch_add(1, Ordering::Relaxed);
        let execution = ExecutionGuard(self);
        self.record_execution(id)?;
        if self.call_count.fetch_add(1, Ordering::Relaxed) % CALLS_PER_FAULT == CALLS_PER_FAULT - 1 {
            match self.sabotage {
                Some(Sabotage::RecordTwice) => self.record_execution(id)?,
                Some(Sabotage::NoReply) => std::future::pending().await,
                Some(Sabotage::LeakTasks) => drop(tokio::spawn(std::future::pending::<()>())),
                Some(Sabotage::LeakFiles) => std::mem::forget(std::fs::File::open("/dev/null")),
                Some(Sabotage::WrongResults) | None => {}
            }
        }
        Ok(execution)
    }

    fn record_execution(&self, id: Id) -> Result<(), SystemException> {
        self.executions
            .append_execution(id)
            .map_err(|error| SystemException::persist_store().with_source(error))
    }

    fn returns_wrong_result(&self) -> bool {
        self.sabotage == Some(Sabotage::WrongResults)
            && self.call_count.load(Ordering::Relaxed).is_multiple_of(CALLS_PER_FAULT)
    }

    fn created(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.created.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn floods(&self) -> MutexGuard<'_, HashMap<u64, u32>> {
        self.floods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone)]
pub(super) struct Target(pub(super) Arc<ServerState>);

impl TargetServant for Target {
    async fn ping(&self, id: u64) -> Result<(), SystemException> {
        let _execution = self.0.begin(id).await?;
        Ok(())
    }

    async fn echo_octets(&self, id: u64, value: Bytes) -> Result<Bytes, SystemException> {
        let _execution = self.0.begin(id).await?;
        Ok(if self.0.returns_wrong_result() { Bytes::from_static(b"wrong result") } else { value })
    }

    async fn echo_longs(&self, id: u64, value: Seq<i32>) -> Result<Seq<i32>, SystemException> {
        let _execution = self.0.begin(id).await?;
        Ok(value)
    }

    async fn echo_doubles(&self, id: u64, value: Seq<f64>) -> Result<Seq<f64>, SystemException> {
        let _execution = self.0.begin(id).await?;
        Ok(value)
    }

    async fn echo_texts(&self, id: u64, value: &[String]) -> Result<Vec<String>, SystemException> {
        let _execution = self.0.begin(id).await?;
        Ok(value.to_vec())
    }

    async fn echo_records(&self, id: u64, value: &[Record]) -> Result<Vec<Record>, SystemException> {
        let _execution = self.0.begin(id).await?;
        Ok(value.to_vec())
    }

    async fn echo_choice(&self, id: u64, value: &Choice) -> Result<Choice, SystemException> {
        let _execution = self.0.begin(id).await?;
        Ok(value.clone())
    }

    async fn echo_any(&self, id: u64, value: &Any) -> Result<Any, SystemException> {
        let _execution = self.0.begin(id).await?;
        Ok(value.clone())
    }

    async fn echo_wide(&self, id: u64, value: WStr<'_>) -> Result<WString, SystemException> {
        let _execution = self.0.begin(id).await?;
        Ok(value.into())
    }

    async fn produce(&self, id: u64, len: u32) -> Result<ByteSource, SystemException> {
        let _execution = self.0.begin(id).await?;
        let all = call_bytes(id, len as usize);
        if len.is_multiple_of(2) {
            return Ok(all.into());
        }
        let items = (0..all.len())
            .step_by(ITEM_BYTES)
            .map(move |start| Ok::<_, SystemException>(all.slice(start..all.len().min(start + ITEM_BYTES))));
        Ok(ByteSource::stream(len.into(), futures_util::stream::iter(items)))
    }

    async fn consume(&self, id: u64, mut value: ByteStream) -> Result<u64, SystemException> {
        let _execution = self.0.begin(id).await?;
        let mut sum = 0;
        while let Some(bytes) = value.next().await {
            sum = checksum(sum, &bytes?);
        }
        Ok(sum)
    }

    async fn deposit(&self, id: u64, value: ByteStream) -> Result<u64, SystemException> {
        let _execution = self.0.begin(id).await?;
        Ok(checksum(0, &value.into_aligned(4096, MAX_DEPOSIT_BYTES).await?))
    }

    async fn refuse(&self, id: u64) -> Result<(), target::RefuseError> {
        let _execution = self.0.begin(id).await?;
        Err(Refused { id, why: "as requested".to_owned() }.into())
    }

    #[expect(clippy::panic, reason = "a servant that panics is one of the faults")]
    async fn fail(&self, id: u64, how: u8) -> Result<(), SystemException> {
        let exception = |kind, completed| Err(SystemException::new(kind, MinorCode::NONE, completed));
        if how == 1 {
            return exception(SystemExceptionKind::NoResources, CompletionStatus::No);
        }
        let _execution = self.0.begin(id).await?;
        if how == 0 {
            return exception(SystemExceptionKind::NoPermission, CompletionStatus::Yes);
        }
        panic!("{PANIC_MESSAGE}");
    }

    async fn nap(&self, id: u64, milliseconds: u32) -> Result<(), SystemException> {
        let _execution = self.0.begin(id).await?;
        tokio::time::sleep(Duration::from_millis(milliseconds.into())).await;
        Ok(())
    }

    async fn inward(&self, id: u64, inner: u64) -> Result<(), SystemException> {
        let _execution = self.0.begin(id).await?;
        let own: TargetRef = zorb::request().target();
        // This call was executed, even if the inner call fails.
        own.ping(inner).await.map_err(|exception| exception.completed(CompletionStatus::Yes))
    }

    async fn connection(&self) -> Result<String, SystemException> {
        Ok(format!("{} {}", std::process::id(), zorb::request().peer()))
    }

    async fn hint(&self, id: u64, flood: u64) -> Result<(), SystemException> {
        let _execution = self.0.begin(id).await?;
        *self.0.floods().entry(flood).or_default() += 1;
        Ok(())
    }

    async fn hinted(&self, flood: u64) -> Result<u32, SystemException> {
        Ok(self.0.floods().remove(&flood).unwrap_or_default())
    }

    async fn make(&self, id: u64) -> Result<String, SystemException> {
        let _execution = self.0.begin(id).await?;
        // If the ORB is shutting down, the POA no longer exists. Even so, the call was executed.
        let adapter_gone = || SystemException::obj_adapter().completed(CompletionStatus::Yes);
        let poa = zorb::request().orb().root_poa().find(CREATED_POA).map_err(|_| adapter_gone())?;
        let new: TargetRef =
            poa.activate_with_id(id.to_string(), self.clone()).map_err(|_| adapter_gone())?;
        self.0.created().insert(id);
        Ok(new.to_string())
    }

    async fn unmake(&self, id: u64) -> Result<(), SystemException> {
        let _execution = self.0.begin(id).await?;
        let request = zorb::request();
        if let Some(poa) = request.poa() {
            // This fails if the object was deactivated concurrently.
            let _ = poa.deactivate_object(&ObjectId::from(request.object_id()));
        }
        Ok(())
    }
}

/// The servant activator of objects that are incarnated when they are called.
pub(super) struct Activator(pub(super) Target);

impl ServantActivator for Activator {
    async fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        Ok(Servant::of::<TargetRef, _>(self.0.clone()))
    }
}

/// The servant of `Slim`, which can be called through a compiled or a dynamic skeleton.
pub(super) struct Slim(pub(super) Arc<ServerState>);

impl SlimServant for Slim {
    async fn bump(&self, id: u64) -> Result<u64, SystemException> {
        let _execution = self.0.begin(id).await?;
        Ok(id.wrapping_add(1))
    }
}

impl DynServant for Slim {
    async fn invoke(&self, request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let id = request.get::<u64>("id")?;
        let _execution = self.0.begin(id).await?;
        Ok(request.returning(id.wrapping_add(1))?)
    }
}
