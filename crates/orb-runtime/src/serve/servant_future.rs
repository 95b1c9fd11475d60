//! What methods of servants return.

use std::future::Future;

/// The future that a method of a servant returns. Each future is one: a servant's method is an `async fn`.
///
/// The trait exists for its message where a method is not `async`.
#[diagnostic::on_unimplemented(
    message = "a method of a servant must be an `async fn`",
    label = "`{Self}` is not a future",
    note = "write `async fn` instead of `fn`"
)]
pub trait ServantFuture: Future {}

#[diagnostic::do_not_recommend]
impl<F: Future + ?Sized> ServantFuture for F {}
