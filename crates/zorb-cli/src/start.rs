//! The start of a command, and the handling of panics before the command serves requests.

use std::io::Write;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use tokio::runtime::{Builder, Runtime};
use zorb::{Orb, OrbBuilder};

use crate::limits::MaxMessageValue;

/// True after the command has begun to serve requests. From then on, a panic does not end the program.
static IS_SERVING: AtomicBool = AtomicBool::new(false);

const FAILURE_EXIT_CODE: i32 = 3;

const PANIC_EXIT_CODE: i32 = 101;

/// Installs a panic hook that ends the program, unless the program is serving requests. Without the hook, a
/// tokio runtime that cannot create a thread would panic, and then wait forever for its missing threads.
pub(crate) fn exit_on_panic(is_json: bool) {
    let previous_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if IS_SERVING.load(Ordering::Relaxed) || std::env::var_os("RUST_BACKTRACE").is_some() {
            previous_hook(info);
        }
        if !IS_SERVING.load(Ordering::Relaxed) {
            let (text, code) = panic_message(info);
            let mut out = std::io::stderr().lock();
            let _ = match is_json {
                true => writeln!(out, "{}", serde_json::json!({ "error": text })),
                false => writeln!(out, "zorb: {text}"),
            };
            std::process::exit(code);
        }
    }));
}

fn panic_message(info: &PanicHookInfo<'_>) -> (String, i32) {
    let text = info.payload().downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| info.payload().downcast_ref::<&str>().copied()).unwrap_or("a panic");
    // tokio and the standard library panic if the system cannot create a thread.
    if text.contains("spawn") {
        let hint = "too little memory or too many threads; see ulimit -v and ulimit -u";
        return (format!("cannot start: {text}: {hint}"), FAILURE_EXIT_CODE);
    }
    let location = info.location().map(|location| format!(" at {location}")).unwrap_or_default();
    (format!("this is a bug in zorb: {text}{location}"), PANIC_EXIT_CODE)
}

/// Marks the program as serving requests. From now on, a panic fails one request, and the program continues.
pub(crate) fn set_serving() {
    IS_SERVING.store(true, Ordering::Relaxed);
}

/// Returns the builder of the ORB of a server. `orb_args` are the -ORB options.
pub(crate) fn server_builder(
    orb_args: &[String],
    max_message: MaxMessageValue,
    listen: &[String],
    admin: Option<&str>,
) -> anyhow::Result<OrbBuilder> {
    let (builder, rest) = Orb::from_args(orb_args.iter().cloned())?;
    if let Some(unknown) = rest.first() {
        bail!("{unknown} is not an -ORB option");
    }
    let mut builder = max_message.apply(builder)?;
    for url in listen {
        builder = builder.listen(url);
    }
    Ok(match admin {
        Some(admin) => builder.admin(admin),
        None => builder,
    })
}

/// Creates a runtime with this number of worker threads, by default one for each core.
pub(crate) fn runtime(workers: Option<usize>) -> anyhow::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    if let Some(workers) = workers {
        builder.worker_threads(workers);
    }
    builder.enable_all().build().context("cannot start the runtime")
}
