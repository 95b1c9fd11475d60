//! The operations that every object has, as calls: `_is_a`, `_non_existent` and locating.

use std::sync::atomic::Ordering;

use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
use giop_proto::CallError;

use crate::client as invoke;
use crate::connection::{SharedConnection, now};
use crate::errors::{seconds, unexecuted};
use crate::reference::object::ObjectRef;
use crate::reference::operation::Operation;
use crate::servant::request::OBJECT_ID;

impl ObjectRef {
    /// Asks the object whether it has the interface, if its reference does not say so.
    pub(crate) async fn call_is_a(&self, repository_id: &str) -> Result<bool, SystemException> {
        is_a(self, repository_id).await
    }

    /// Asks whether the object is gone.
    pub(crate) async fn call_non_existent(&self) -> Result<bool, SystemException> {
        non_existent(self).await
    }

    /// Asks the server whether it has the object.
    pub(crate) async fn call_locate(&self) -> Result<bool, SystemException> {
        locate(self).await
    }

    /// Binds the reference anew.
    pub(crate) async fn bind_now(&self) -> Result<(), SystemException> {
        validate_connection(self).await
    }

    /// Waits until all oneways are written.
    pub(crate) async fn flush_oneways(&self) -> Result<(), SystemException> {
        flush(self).await
    }
}

static IS_A: Operation = Operation::twoway("_is_a");
static NON_EXISTENT: Operation = Operation::twoway("_non_existent");
static NOT_EXISTENT: Operation = Operation::twoway("_not_existent");

async fn is_a(target: &ObjectRef, repository_id: &str) -> Result<bool, SystemException> {
    if repository_id == OBJECT_ID || repository_id == target.ior().type_id {
        return Ok(true);
    }
    if let Some(entry) = target.home()
        && entry.skeleton.repository_ids() != [OBJECT_ID]
        && invoke::is_there(target, &entry, "_is_a").await?
        && let Some(is) = entry.skeleton.is_a(repository_id)
    {
        return Ok(is);
    }
    invoke::invoke(target, &IS_A, |e| e.put_str(repository_id), |d| d.read_bool(), |_, _| None).await
}

async fn non_existent(target: &ObjectRef) -> Result<bool, SystemException> {
    if let Some(entry) = target.home()
        && entry.skeleton.elsewhere().is_none()
    {
        return Ok(!invoke::is_there(target, &entry, "_non_existent").await?);
    }
    let asked = ask(target, &NON_EXISTENT).await;
    let asked = match asked {
        // Servers of GIOP 1.0 know it under its old name only.
        Err(error) if error.kind == SystemExceptionKind::BadOperation => ask(target, &NOT_EXISTENT).await,
        other => other,
    };
    match asked {
        Err(error) if error.kind == SystemExceptionKind::ObjectNotExist => Ok(true),
        other => other,
    }
}

async fn ask(target: &ObjectRef, operation: &'static Operation) -> Result<bool, SystemException> {
    invoke::invoke(target, operation, |_| Ok(()), |d| d.read_bool(), |_, _| None).await
}

async fn locate(target: &ObjectRef) -> Result<bool, SystemException> {
    if let Some(key) = target.own_key() {
        return Ok(target.orb().may_be_here(key));
    }
    invoke::locate::locate(target).await
}

async fn validate_connection(target: &ObjectRef) -> Result<(), SystemException> {
    target.forget_bound();
    let here = match target.own_key() {
        Some(key) => target.orb().may_be_here(key),
        None => invoke::locate::bind_anew(target).await?,
    };
    if here {
        return Ok(());
    }
    let kind = SystemExceptionKind::ObjectNotExist;
    Err(unexecuted(kind, minor::OBJECT_NOT_EXIST_NO_OBJECT).because("the server does not have the object"))
}

async fn flush(target: &ObjectRef) -> Result<(), SystemException> {
    let written = match target.binding() {
        None => Ok(()),
        Some(binding) => {
            let written = match binding.link.upgrade() {
                Some(link) => written(target, &link).await,
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
    let lost_before = target.take_lost_oneways();
    written?;
    if lost_before { Err(lost("an earlier connection broke")) } else { Ok(()) }
}

/// Waits until the queue of the connection is written, or until the deadline of a call made now.
async fn written(target: &ObjectRef, link: &SharedConnection) -> Result<(), SystemException> {
    let failed = |error: CallError| lost(&format!("the connection to {} broke: {error}", link.peer()));
    let begun = now();
    let Some(deadline) = invoke::deadline(target, begun) else { return link.flushed().await.map_err(failed) };
    match tokio::time::timeout_at(deadline.into(), link.flushed()).await {
        Ok(flushed) => flushed.map_err(failed),
        Err(_) => {
            let kind = SystemExceptionKind::Timeout;
            let waited = seconds(deadline.saturating_duration_since(begun));
            Err(SystemException::new(kind, minor::TIMEOUT_REQUEST_END, CompletionStatus::Maybe).because(
                format!(
                    "{} has not taken all oneways within {waited}: {} bytes are queued",
                    link.peer(),
                    link.backlog()
                ),
            ))
        }
    }
}

#[cold]
fn lost(how: &str) -> SystemException {
    SystemException::new(SystemExceptionKind::CommFailure, MinorCode::NONE, CompletionStatus::Maybe)
        .because(format!("oneways may be lost: {how}"))
}
