//! The futures of servant methods.

use std::future::Future;
use std::pin::Pin;

/// The future that a servant method returns. All futures implement it: a servant method is an `async fn`.
///
/// The trait exists for its error message about methods that are not `async`.
#[diagnostic::on_unimplemented(
    message = "a method of a servant must be an `async fn`",
    label = "`{Self}` is not a future",
    note = "write `async fn` instead of `fn`"
)]
pub trait ServantFuture: Future {}

#[diagnostic::do_not_recommend]
impl<F: Future + ?Sized> ServantFuture for F {}

/// The future of a collocated call.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
