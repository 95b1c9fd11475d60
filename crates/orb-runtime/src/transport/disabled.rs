//! Replacements for the transports that this build or this system does not support: TLS, Unix sockets,
//! io_uring. Their types have no values. Therefore their methods never run.

/// Implements the methods of a type that has no values.
macro_rules! never {
    ($type:ident $(async fn $later:ident(&self) -> $made:ty;)* $(fn $method:ident(&self $(, $argument:ty)*) $(-> $result:ty)?;)*) => {
        impl $type {
            $(pub(crate) async fn $later(&self) -> $made {
                match self.0 {}
            })*
            $(pub(crate) fn $method(&self $(, _: $argument)*) $(-> $result)? {
                match self.0 {}
            })*
        }
    };
}

#[cfg(not(feature = "tls"))]
pub(crate) mod tls {
    use std::convert::Infallible;
    use std::io;
    use std::sync::Arc;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use giop_proto::outbox::Transmit;
    use giop_proto::receive::ReadBuf;

    use crate::tls::TlsSession;
    use crate::transport::outcome::Progress;

    #[derive(Debug)]
    pub(crate) struct TlsSocket(Infallible);

    never! {
        TlsSocket
        fn session(&self) -> &Arc<TlsSession>;
        fn try_read(&self, &mut ReadBuf) -> io::Result<Option<usize>>;
        fn spin_read(&self, &mut ReadBuf, Duration) -> io::Result<Option<usize>>;
        fn try_write(&self, &mut Transmit) -> io::Result<Progress>;
        fn write_now(&self, &mut Transmit) -> io::Result<Progress>;
        fn wait(&self, bool, bool, Duration) -> io::Result<()>;
        fn poll_read_ready(&self, &mut Context<'_>) -> Poll<io::Result<()>>;
        fn poll_write_ready(&self, &mut Context<'_>) -> Poll<io::Result<()>>;
        fn shut_down_write(&self);
        fn shut_down_socket(&self);
    }
}

#[cfg(not(unix))]
pub(crate) mod unix {
    use std::convert::Infallible;
    use std::io;
    use std::path::Path;

    use rustix::fd::OwnedFd;
    use socket2::{SockAddr, Socket};
    use tokio::net::TcpStream;

    #[derive(Debug)]
    pub(crate) struct Listener(Infallible);

    #[derive(Debug)]
    pub(crate) struct SocketFile(Infallible);

    never! {
        Listener
        async fn accept(&self) -> io::Result<TcpStream>;
        fn accept_now(&self) -> io::Result<(Socket, SockAddr)>;
        fn path(&self) -> &Path;
    }

    impl Listener {
        pub(crate) fn new(_: OwnedFd, file: SocketFile) -> io::Result<Self> {
            match file.0 {}
        }
    }

    pub(crate) fn bind(_: &Path, _: Option<u32>, _: Option<usize>) -> io::Result<(OwnedFd, SocketFile)> {
        Err(unsupported())
    }

    pub(crate) async fn connect(_: &Path, _: Option<usize>) -> io::Result<TcpStream> {
        Err(unsupported())
    }

    fn unsupported() -> io::Error {
        io::Error::new(io::ErrorKind::Unsupported, "Unix sockets are not supported on this system")
    }
}

#[cfg(not(all(feature = "uring", target_os = "linux")))]
pub(crate) mod uring {
    use std::convert::Infallible;
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use std::task::{Context, Poll};
    use std::thread::ThreadId;
    use std::time::Duration;

    use giop_proto::outbox::Transmit;
    use giop_proto::pool::BufferPool;
    use giop_proto::receive::ReadBuf;
    use tokio::net::TcpStream;
    use tokio::runtime::Handle;

    use crate::transport::outcome::{ReadCompletion, RingRead};
    use crate::transport::threads::IoThread;

    #[derive(Debug)]
    pub(crate) struct UringSocket(Infallible);

    #[derive(Clone)]
    pub(crate) struct RingHandle(Infallible);

    never! {
        RingHandle
        fn has_ended(&self) -> bool;
        fn enter_calls(&self) -> &Arc<AtomicU64>;
    }

    never! {
        UringSocket
        fn thread(&self) -> Option<&Arc<IoThread>>;
        fn is_on_ring_thread(&self) -> bool;
        fn set_waker(&self, &Context<'_>);
        fn poll_read_ready(&self, &Context<'_>) -> Poll<io::Result<()>>;
        fn take_read(&self) -> RingRead;
        fn start_read(&self, ReadBuf, ReadCompletion);
        fn set_low_water(&self, usize) -> io::Result<()>;
        fn start_header_read(&self);
        fn cancel_read(&self);
        fn start_write(&self, Transmit);
        fn take_written(&self) -> Option<(Transmit, io::Result<()>)>;
        fn process_completions(&self);
        fn spin(&self, Duration) -> bool;
        fn shut_down_write(&self);
        fn close(&self);
    }

    impl RingHandle {
        pub(crate) fn of_current_runtime() -> io::Result<Self> {
            let text = "this build does not support io_uring, which requires Linux and the feature `uring`";
            Err(io::Error::new(io::ErrorKind::Unsupported, text))
        }

        pub(crate) fn for_thread(_: &Handle, _: ThreadId) -> io::Result<Self> {
            Self::of_current_runtime()
        }
    }

    impl UringSocket {
        pub(crate) fn new(
            ring: RingHandle,
            _: TcpStream,
            _: &Arc<BufferPool>,
            _: &Arc<AtomicU64>,
            _: Option<Arc<IoThread>>,
        ) -> io::Result<Self> {
            match ring.0 {}
        }
    }
}
