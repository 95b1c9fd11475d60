//! The signal that ends a server: [`shutdown`].

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Waits for the signal by which a terminal, a service manager or a container ends the program:
/// `orb.run_until(zorb::signal::shutdown())`.
///
/// On Unix these are SIGINT (Ctrl-C) and SIGTERM (`systemctl stop`, `docker stop`, `kill`). On Windows they
/// are Ctrl-C, Ctrl-Break, closing the console, logging off and shutting down. They are caught from this call
/// on, not only from the first poll of the future, so a signal between the two is not lost.
///
/// The first signal completes this future and all other futures of `shutdown` in this process, created before
/// or after it. The second signal ends the process at once, even if a servant blocks all threads of the
/// runtime. The exit status is 130 after SIGINT and 143 after SIGTERM.
///
/// Signals belong to the process: from the first call on, and permanently, they no longer end it by
/// themselves. A library should leave the call to the program.
///
/// # Errors
/// The future fails at once if the system accepts no handler. [`Shutdown::new`] returns that error earlier.
///
/// # Panics
/// Outside a tokio runtime, and in one without I/O (`enable_io`).
///
/// # Cancel safety
/// Dropping the future loses no signal: a signal completes later futures too.
///
/// ```no_run
/// # use orb_runtime as zorb;
/// # async fn serve(orb: zorb::Orb) -> std::io::Result<()> {
/// // Requests in flight are answered before it returns.
/// let report = orb.run_until(zorb::signal::shutdown()).await?;
/// println!("{} connections closed", report.connections);
/// # Ok(()) }
/// ```
pub fn shutdown() -> Shutdown {
    Shutdown { signals: system::Signals::catch().map_err(Some) }
}

/// The future of [`shutdown`].
#[derive(Debug)]
#[must_use = "it does nothing until it is awaited, but the signals are caught"]
pub struct Shutdown {
    /// The error until it has been returned.
    signals: Result<system::Signals, Option<io::Error>>,
}

impl Shutdown {
    /// Creates the future of [`shutdown`], for programs that must not start without it.
    ///
    /// # Errors
    /// The system accepts no handler. The future has no other errors.
    ///
    /// # Panics
    /// Under the same conditions as [`shutdown`].
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

    /// A signal has arrived. Set by the handlers.
    static ARRIVED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

    /// Offset of a signal's number in the exit status that a shell reports for a process that a signal has
    /// ended.
    const BY_SIGNAL: i32 = 128;

    #[derive(Debug)]
    pub(super) struct Signals {
        interrupt: Signal,
        terminate: Signal,
    }

    impl Signals {
        pub(super) fn catch() -> io::Result<Self> {
            handle()?;
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
            })
        }

        pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            let Self { interrupt, terminate } = self;
            let woken = [interrupt.poll_recv(cx), terminate.poll_recv(cx)];
            // The flag is set before tokio learns of a signal.
            match ARRIVED.load(Ordering::SeqCst) || woken.iter().any(Poll::is_ready) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        }
    }

    /// Registers handlers: the first signal sets the flag, and the next one ends the process. Handlers run in
    /// the order of their registration. The one that exits is registered first, so that it sees whether the
    /// flag was set before.
    fn handle() -> io::Result<()> {
        static HANDLED: Mutex<bool> = Mutex::new(false);
        let mut handled = HANDLED.lock().unwrap_or_else(PoisonError::into_inner);
        if !*handled {
            for number in [SIGINT, SIGTERM] {
                flag::register_conditional_shutdown(number, BY_SIGNAL + number, Arc::clone(&ARRIVED))?;
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

    /// A signal has arrived.
    static ARRIVED: AtomicBool = AtomicBool::new(false);

    /// STATUS_CONTROL_C_EXIT: the exit status of a process that Ctrl-C has ended.
    const BY_CTRL_C: i32 = 0xC000_013A_u32.cast_signed();

    #[derive(Debug)]
    pub(super) struct Signals {
        c: CtrlC,
        pause: CtrlBreak,
        close: CtrlClose,
        logoff: CtrlLogoff,
        shutdown: CtrlShutdown,
    }

    impl Signals {
        pub(super) fn catch() -> io::Result<Self> {
            Ok(Self {
                c: ctrl_c()?,
                pause: ctrl_break()?,
                close: ctrl_close()?,
                logoff: ctrl_logoff()?,
                shutdown: ctrl_shutdown()?,
            })
        }

        pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            let Self { c, pause, close, logoff, shutdown } = self;
            let woken = [
                c.poll_recv(cx),
                pause.poll_recv(cx),
                close.poll_recv(cx),
                logoff.poll_recv(cx),
                shutdown.poll_recv(cx),
            ];
            if woken.iter().any(Poll::is_ready) {
                if !ARRIVED.swap(true, Ordering::SeqCst) {
                    exit_by_the_next();
                }
                return Poll::Ready(());
            }
            if ARRIVED.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        }
    }

    /// Lets another Ctrl-C or Ctrl-Break end the process, as long as the runtime runs.
    fn exit_by_the_next() {
        let (Ok(mut c), Ok(mut pause)) = (ctrl_c(), ctrl_break()) else { return };
        tokio::spawn(async move {
            tokio::select! {
                _ = c.recv() => {}
                _ = pause.recv() => {}
            }
            std::process::exit(BY_CTRL_C)
        });
    }
}
