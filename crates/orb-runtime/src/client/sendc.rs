//! Calls that pass their outcome to a reply handler (the callback model of the OMG's asynchronous messaging).

use std::future::Future;

use giop_codec::exception::SystemException;

use crate::client::deferred::Defer;

/// Sends a call, and passes its outcome to `reply` in a task of the current runtime. Called by generated
/// code.
///
/// The call is polled once before this returns, as in [`Defer::deferred`]. If the reference has a connection,
/// the request has then been sent. `reply` always runs in the task.
///
/// # Errors
/// INITIALIZE outside of a tokio runtime: nothing is sent, and `reply` is not called.
pub fn sendc<T, F>(
    call: impl Future<Output = T> + Send + 'static,
    reply: impl FnOnce(T) -> F + Send + 'static,
) -> Result<(), SystemException>
where
    T: Send + 'static,
    F: Future<Output = ()> + Send,
{
    let runtime = tokio::runtime::Handle::try_current().map_err(|_| crate::errors::no_runtime())?;
    let call = call.deferred();
    runtime.spawn(async move { reply(call.await).await });
    Ok(())
}

/// Copies a large array to the heap, without a copy on the stack. Called by generated code.
pub fn boxed_array<T: Clone, const N: usize>(array: &[T; N]) -> Box<[T; N]> {
    // The conversion cannot fail, because the vector has N elements.
    array.to_vec().try_into().unwrap_or_else(|_| Box::new(array.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use giop_codec::exception::SystemExceptionKind;

    #[test]
    fn boxed_array_equals_the_array() {
        let array = [3_u64; 100_000];
        assert_eq!(*boxed_array(&array), array);
        assert_eq!(*boxed_array(&[[1_u8, 2], [3, 4]]), [[1, 2], [3, 4]]);
    }

    #[test]
    fn without_a_runtime_nothing_is_sent() {
        let error = sendc(async { unreachable!("the call was polled") }, |(): ()| async {}).unwrap_err();
        assert_eq!(error.kind, SystemExceptionKind::Initialize);
    }
}
