//! The conventional `-ORBtraceLevel`: sends the library's events to stderr where the program set no subscriber.

use tracing::Level;

/// Sets a plain subscriber on stderr. Levels are omniORB's: 0 nothing, 1 warnings, 2 to 9 what happens, from 10 each
/// connection and call, from 25 each message.
pub(crate) fn to_stderr(level: u32) {
    let level = match level {
        0 => return,
        1 => Level::WARN,
        2..=9 => Level::INFO,
        10..=24 => Level::DEBUG,
        _ => Level::TRACE,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_target(true)
        .finish();
    // Somebody else's subscriber stays: it was set on purpose.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
