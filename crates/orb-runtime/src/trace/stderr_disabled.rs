//! Replacement for the log on stderr without the feature `trace-stderr`.

/// Sets no subscriber.
///
/// # Errors
/// Unless the level is 0, the reason why there is no log.
pub(crate) fn to_stderr(level: u32) -> Result<(), &'static str> {
    match level {
        0 => Ok(()),
        _ => Err("it needs the feature `trace-stderr`, or set a subscriber of the `tracing` crate"),
    }
}

/// Returns at once, because nothing is written.
pub(crate) async fn written() {}
