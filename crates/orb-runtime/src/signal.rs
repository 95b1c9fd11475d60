//! Signals that end a server: [`shutdown`].

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Waits for a signal with which a terminal, a service manager or a container runtime asks the program to
/// end. Use it as `orb.run_until(zorb::signal::shutdown())`.
///
/// * On Unix: SIGINT (Ctrl-C) and SIGTERM (`systemctl stop`, `docker stop`, `kill`).
/// * On Windows: Ctrl-C, Ctrl-Break, closing the console, logging off and shutting down.
///
/// This function installs the signal handlers. A signal that arrives before the future is polled is not lost.
///
/// The first signal completes all futures of `shutdown` in this process, even if they are created later. The
/// second signal ends the process at once. On Unix, it does so even if servants block all threads, and the
/// exit status is 130 (SIGINT) or 143 (SIGTERM). On Windows, only Ctrl-C and Ctrl-Break count as the second
/// signal.
///
/// After the first call, the first signal no longer ends the process by itself. Therefore, call this function
/// in programs, not in libraries.
///
/// # Errors
/// If the system rejects a signal handler, the first poll of the future returns the error.
/// [`Shutdown::new`] returns it earlier.
///
/// # Panics
/// Panics outside of a tokio runtime, and in a runtime without I/O (`enable_io`).
///
/// # Cancel safety
/// On Unix, dropping the future loses no signal, because a signal also completes later futures. On Windows,
/// a signal is lost if the future is dropped before it is polled again.
///
/// ```no_run
/// # use orb_runtime as zorb;
/// # async fn serve(orb: zorb::Orb) -> std::io::Result<()> {
/// // `run_until` returns after requests in flight have completed.
/// let report = orb.run_until(zorb::signal::shutdown()).await?;
/// println!("{} connections closed", report.connections);
/// # Ok(()) }
/// ```
pub fn shutdown() -> Shutdown {
    Shutdown { signals: system::Signals::catch().map_err(Some) }
}

/// The future of [`shutdown`].
#[derive(Debug)]
#[must_use = "the first signal has no effect unless this future is awaited"]
pub struct Shutdown {
    /// The caught signals, or the error of the failed installation. The error is `None` once it was returned.
    signals: Result<system::Signals, Option<io::Error>>,
}

impl Shutdown {
    /// Creates the future of [`shutdown`]. The future never returns an error.
    ///
    /// # Errors
    /// The system rejects a signal handler.
    ///
    /// # Panics
    /// Panics under the same conditions as [`shutdown`].
    pub fn new() -> io::Result<Self> {
        system::Signals::catch().map(|signals| Self { signals: Ok(signals) })
    }
}

impl Future for Shutdown {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.signals {
            Ok(signals) => signals.poll(cx).map(Ok),
            Err(error) => Poll::Ready(Err(error.take().unwrap_or_else(|| io::ErrorKind::Other.into()))),
        }
    }
}

#[cfg(unix)]
mod system {
    use std::io;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, LazyLock, Mutex, PoisonError};
    use std::task::{Context, Poll};

    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::flag;
    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// Whether a signal has arrived. The handlers set it.
    static ARRIVED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

    /// If a signal ends a process, shells report this number plus the signal's number as its exit status.
    const SIGNAL_EXIT_BASE: i32 = 128;

    #[derive(Debug)]
    pub(super) struct Signals {
        interrupt: Signal,
        terminate: Signal,
    }

    impl Signals {
        pub(super) fn catch() -> io::Result<Self> {
            register_handlers()?;
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
            })
        }

        pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            let Self { interrupt, terminate } = self;
            let woken = [interrupt.poll_recv(cx), terminate.poll_recv(cx)];
            // The handlers set the flag before tokio is notified of the signal.
            match ARRIVED.load(Ordering::SeqCst) || woken.iter().any(Poll::is_ready) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        }
    }

    /// Registers two handlers for each signal. The first ends the process if the other one has set the flag.
    fn register_handlers() -> io::Result<()> {
        static HANDLED: Mutex<bool> = Mutex::new(false);
        let mut handled = HANDLED.lock().unwrap_or_else(PoisonError::into_inner);
        if !*handled {
            for number in [SIGINT, SIGTERM] {
                flag::register_conditional_shutdown(number, SIGNAL_EXIT_BASE + number, Arc::clone(&ARRIVED))?;
                flag::register(number, Arc::clone(&ARRIVED))?;
            }
            *handled = true;
        }
        Ok(())
    }
}

#[cfg(windows)]
mod system {
    use std::io;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Poll};

    use tokio::signal::windows::{
        CtrlBreak, CtrlC, CtrlClose, CtrlLogoff, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_logoff,
        ctrl_shutdown,
    };

    static ARRIVED: AtomicBool = AtomicBool::new(false);

    /// `STATUS_CONTROL_C_EXIT`: the exit status of a process that Ctrl-C has ended.
    const CTRL_C_EXIT_STATUS: i32 = 0xC000_013A_u32.cast_signed();

    #[derive(Debug)]
    pub(super) struct Signals {
        ctrl_c: CtrlC,
        ctrl_break: CtrlBreak,
        close: CtrlClose,
        logoff: CtrlLogoff,
        shutdown: CtrlShutdown,
    }

    impl Signals {
        pub(super) fn catch() -> io::Result<Self> {
            Ok(Self {
                ctrl_c: ctrl_c()?,
                ctrl_break: ctrl_break()?,
                close: ctrl_close()?,
                logoff: ctrl_logoff()?,
                shutdown: ctrl_shutdown()?,
            })
        }

        pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            let Self { ctrl_c, ctrl_break, close, logoff, shutdown } = self;
            let woken = [
                ctrl_c.poll_recv(cx),
                ctrl_break.poll_recv(cx),
                close.poll_recv(cx),
                logoff.poll_recv(cx),
                shutdown.poll_recv(cx),
            ];
            if woken.iter().any(Poll::is_ready) {
                if !ARRIVED.swap(true, Ordering::SeqCst) {
                    exit_at_next_signal();
                }
                return Poll::Ready(());
            }
            if ARRIVED.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        }
    }

    fn exit_at_next_signal() {
        let (Ok(mut next_ctrl_c), Ok(mut next_ctrl_break)) = (ctrl_c(), ctrl_break()) else { return };
        tokio::spawn(async move {
            tokio::select! {
                _ = next_ctrl_c.recv() => {}
                _ = next_ctrl_break.recv() => {}
            }
            std::process::exit(CTRL_C_EXIT_STATUS)
        });
    }
}
