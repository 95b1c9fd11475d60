//! Operations that every object has (`_is_a`, `_non_existent`), LocateRequests, and the flushing of oneways.

use std::sync::atomic::Ordering;

use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_proto::CallError;

use crate::client;
use crate::client::call_progress::ForwardRule;
use crate::connection::{SharedConnection, now};
use crate::reference::object::ObjectRef;
use crate::reference::operation::Operation;
use crate::servant::request::OBJECT_REPOSITORY_ID;

static IS_A: Operation = Operation::twoway("_is_a");
static NON_EXISTENT: Operation = Operation::twoway("_non_existent");
static NOT_EXISTENT: Operation = Operation::twoway("_not_existent");

impl ObjectRef {
    /// Returns whether the object has the interface. Calls the object only if neither the reference nor a
    /// servant in this process gives the answer.
    pub(crate) async fn call_is_a(&self, repository_id: &str) -> Result<bool, SystemException> {
        if repository_id == OBJECT_REPOSITORY_ID || repository_id == self.ior().type_id {
            return Ok(true);
        }
        if let Some(entry) = self.active_entry()
            && entry.skeleton.repository_ids() != [OBJECT_REPOSITORY_ID]
            && client::exists_here(self, &entry, "_is_a").await?
            && let Some(is) = entry.skeleton.is_a(repository_id)
        {
            return Ok(is);
        }
        client::invoke(self, &IS_A, |e| e.put_str(repository_id), |d| d.read_bool(), |_, _| None).await
    }

    pub(crate) async fn call_non_existent(&self) -> Result<bool, SystemException> {
        if let Some(entry) = self.active_entry()
            && entry.skeleton.forward_location().is_none()
        {
            return Ok(!client::exists_here(self, &entry, "_non_existent").await?);
        }
        let answer = match call_predicate(self, &NON_EXISTENT).await {
            // Servers of GIOP 1.0 know the operation only by its old name.
            Err(error) if error.kind == SystemExceptionKind::BadOperation => {
                call_predicate(self, &NOT_EXISTENT).await
            }
            answer => answer,
        };
        match answer {
            Err(error) if error.kind == SystemExceptionKind::ObjectNotExist => Ok(true),
            answer => answer,
        }
    }

    /// Returns whether the server has the object, or for an object of this ORB, whether it may exist.
    pub(crate) async fn locate_exists(&self) -> Result<bool, SystemException> {
        if let Some(key) = self.own_key() {
            return Ok(self.orb().may_be_here(key));
        }
        client::locate::locate(self, ForwardRule::ByRebindMode).await
    }

    pub(crate) async fn bind_now(&self) -> Result<(), SystemException> {
        self.clear_bound();
        let exists = match self.own_key() {
            Some(key) => self.orb().may_be_here(key),
            None => client::locate::locate(self, ForwardRule::Always).await?,
        };
        if exists {
            return Ok(());
        }
        Err(SystemException::object_not_exist()
            .with_minor(minor::OBJECT_NOT_EXIST_NO_OBJECT)
            .with_reason("the server does not have the object"))
    }

    pub(crate) async fn flush_oneways(&self) -> Result<(), SystemException> {
        let flushed = match self.binding() {
            None => Ok(()),
            Some(binding) => {
                let flushed = match binding.link.upgrade() {
                    Some(link) => flush(self, &link).await,
                    None if binding.lost_oneways() => Err(oneways_lost("the connection broke")),
                    None => Ok(()),
                };
                if flushed.is_err() && binding.lost_oneways() {
                    binding.is_loss_reported.store(true, Ordering::Relaxed);
                }
                flushed
            }
        };
        // Take the record of earlier losses even if the flush failed, because its error reports these, too.
        let lost_before = self.take_lost_oneways();
        flushed?;
        if lost_before { Err(oneways_lost("an earlier connection broke")) } else { Ok(()) }
    }
}

async fn call_predicate(target: &ObjectRef, operation: &'static Operation) -> Result<bool, SystemException> {
    client::invoke(target, operation, |_| Ok(()), |d| d.read_bool(), |_, _| None).await
}

/// Waits until the queue of the connection is written. Fails at the deadline that a call made now would have.
async fn flush(target: &ObjectRef, link: &SharedConnection) -> Result<(), SystemException> {
    let failed =
        |error: CallError| oneways_lost(&format!("the connection to {} broke: {error}", link.peer()));
    let begun = now();
    let Some(deadline) = client::deadline(target, begun) else { return link.flushed().await.map_err(failed) };
    match tokio::time::timeout_at(deadline.into(), link.flushed()).await {
        Ok(flushed) => flushed.map_err(failed),
        Err(_) => {
            let (peer, backlog) = (link.peer(), link.backlog());
            let waited = deadline.saturating_duration_since(begun);
            let text =
                format!("{peer} has not accepted all oneways within {waited:?}: {backlog} bytes are queued");
            Err(SystemException::timeout()
                .with_minor(minor::TIMEOUT_REQUEST_END)
                .completed(CompletionStatus::Maybe)
                .with_reason(text))
        }
    }
}

#[cold]
fn oneways_lost(reason: &str) -> SystemException {
    SystemException::comm_failure()
        .completed(CompletionStatus::Maybe)
        .with_reason(format!("oneways may be lost: {reason}"))
}
