//! The operations that every object has, as calls: `_is_a`, `_non_existent` and locating.

use std::sync::atomic::Ordering;

use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_proto::CallError;

use crate::client as invoke;
use crate::connection::{SharedConnection, now};
use crate::errors::seconds;
use crate::reference::object::ObjectRef;
use crate::reference::operation::Operation;
use crate::servant::request::OBJECT_REPOSITORY_ID;

static IS_A: Operation = Operation::twoway("_is_a");
static NON_EXISTENT: Operation = Operation::twoway("_non_existent");
static NOT_EXISTENT: Operation = Operation::twoway("_not_existent");

impl ObjectRef {
    /// Asks the object whether it has the interface, if its reference does not say so.
    pub(crate) async fn call_is_a(&self, repository_id: &str) -> Result<bool, SystemException> {
        if repository_id == OBJECT_REPOSITORY_ID || repository_id == self.ior().type_id {
            return Ok(true);
        }
        if let Some(entry) = self.active_entry()
            && entry.skeleton.repository_ids() != [OBJECT_REPOSITORY_ID]
            && invoke::is_there(self, &entry, "_is_a").await?
            && let Some(is) = entry.skeleton.is_a(repository_id)
        {
            return Ok(is);
        }
        invoke::invoke(self, &IS_A, |e| e.put_str(repository_id), |d| d.read_bool(), |_, _| None).await
    }

    /// Asks whether the object is gone.
    pub(crate) async fn call_non_existent(&self) -> Result<bool, SystemException> {
        if let Some(entry) = self.active_entry()
            && entry.skeleton.forward_location().is_none()
        {
            return Ok(!invoke::is_there(self, &entry, "_non_existent").await?);
        }
        let asked = ask(self, &NON_EXISTENT).await;
        let asked = match asked {
            // Servers of GIOP 1.0 know it under its old name only.
            Err(error) if error.kind == SystemExceptionKind::BadOperation => ask(self, &NOT_EXISTENT).await,
            other => other,
        };
        match asked {
            Err(error) if error.kind == SystemExceptionKind::ObjectNotExist => Ok(true),
            other => other,
        }
    }

    /// Asks the server whether it has the object.
    pub(crate) async fn call_locate(&self) -> Result<bool, SystemException> {
        if let Some(key) = self.own_key() {
            return Ok(self.orb().may_be_here(key));
        }
        invoke::locate::locate(self, false).await
    }

    /// Binds the reference anew.
    pub(crate) async fn bind_now(&self) -> Result<(), SystemException> {
        self.clear_bound();
        let here = match self.own_key() {
            Some(key) => self.orb().may_be_here(key),
            None => invoke::locate::locate(self, true).await?,
        };
        if here {
            return Ok(());
        }
        Err(SystemException::object_not_exist()
            .with_minor(minor::OBJECT_NOT_EXIST_NO_OBJECT)
            .with_reason("the server does not have the object"))
    }

    /// Waits until all oneways are written.
    pub(crate) async fn flush_oneways(&self) -> Result<(), SystemException> {
        let written = match self.binding() {
            None => Ok(()),
            Some(binding) => {
                let written = match binding.link.upgrade() {
                    Some(link) => written(self, &link).await,
                    None if binding.lost_oneways() => Err(lost("the connection broke")),
                    None => Ok(()),
                };
                if written.is_err() && binding.lost_oneways() {
                    binding.loss_reported.store(true, Ordering::Relaxed);
                }
                written
            }
        };
        // Clear the flag before returning: one error reports both losses.
        let lost_before = self.take_lost_oneways();
        written?;
        if lost_before { Err(lost("an earlier connection broke")) } else { Ok(()) }
    }
}

async fn ask(target: &ObjectRef, operation: &'static Operation) -> Result<bool, SystemException> {
    invoke::invoke(target, operation, |_| Ok(()), |d| d.read_bool(), |_, _| None).await
}

/// Waits until the queue of the connection is written, or until the deadline of a call made now.
async fn written(target: &ObjectRef, link: &SharedConnection) -> Result<(), SystemException> {
    let failed = |error: CallError| lost(&format!("the connection to {} broke: {error}", link.peer()));
    let begun = now();
    let Some(deadline) = invoke::deadline(target, begun) else { return link.flushed().await.map_err(failed) };
    match tokio::time::timeout_at(deadline.into(), link.flushed()).await {
        Ok(flushed) => flushed.map_err(failed),
        Err(_) => {
            let waited = seconds(deadline.saturating_duration_since(begun));
            Err(SystemException::timeout()
                .with_minor(minor::TIMEOUT_REQUEST_END)
                .completed(CompletionStatus::Maybe)
                .with_reason(format!(
                    "{} has not taken all oneways within {waited}: {} bytes are queued",
                    link.peer(),
                    link.backlog()
                )))
        }
    }
}

#[cold]
fn lost(how: &str) -> SystemException {
    SystemException::comm_failure()
        .completed(CompletionStatus::Maybe)
        .with_reason(format!("oneways may be lost: {how}"))
}
