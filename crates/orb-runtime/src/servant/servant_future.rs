//! The futures of servant methods.

use std::future::Future;
use std::pin::Pin;

/// The future of a servant method, which is an `async fn`. All futures implement this trait. It exists only
/// for the compiler's error message about methods that are not `async`.
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
