//! The start of a command: failures during the start end it with a message and an exit code.

use std::io::Write;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use tokio::runtime::{Builder, Runtime};

/// Whether the command serves requests. A panic in one request must not end it.
static SERVES: AtomicBool = AtomicBool::new(false);

/// The exit code for failed input or output.
const FAILED: i32 = 3;

/// The exit code of Rust for a program that panicked.
const PANICKED: i32 = 101;

/// Installs a panic hook that ends the program until it [`serves`]. Without the hook, a runtime that cannot
/// create a thread would panic, and then wait forever for its missing threads.
pub(crate) fn end_on_panic(json: bool) {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if SERVES.load(Ordering::Relaxed) || std::env::var_os("RUST_BACKTRACE").is_some() {
            others(info);
        }
        if !SERVES.load(Ordering::Relaxed) {
            let (text, code) = told(info);
            let mut out = std::io::stderr().lock();
            let _ = match json {
                true => writeln!(out, "{}", serde_json::json!({ "error": text })),
                false => writeln!(out, "zorb: {text}"),
            };
            std::process::exit(code);
        }
    }));
}

fn told(info: &PanicHookInfo<'_>) -> (String, i32) {
    let text = info.payload().downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| info.payload().downcast_ref::<&str>().copied()).unwrap_or("a panic");
    // tokio and the standard library panic if the system cannot create a thread.
    if text.contains("spawn") {
        let help = "too little memory or too many threads (ulimit -v, ulimit -u)";
        return (format!("cannot start: {text}: {help}"), FAILED);
    }
    let at = info.location().map(|at| format!(" at {at}")).unwrap_or_default();
    (format!("this is a bug of zorb: {text}{at}"), PANICKED)
}

/// Marks the program as serving: from now on a panic fails one request, and the program continues.
pub(crate) fn serves() {
    SERVES.store(true, Ordering::Relaxed);
}

/// Creates a runtime with this number of threads, by default one for each core.
///
/// # Errors
/// The system provides no threads or no descriptors.
pub(crate) fn threads(workers: Option<usize>) -> anyhow::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    if let Some(workers) = workers {
        builder.worker_threads(workers);
    }
    builder.enable_all().build().context("cannot start")
}
