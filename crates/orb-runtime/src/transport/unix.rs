//! Unix sockets: listeners at a path of the file system, for processes on the same machine.
//!
//! Connected sockets are read and written by the same system calls as TCP sockets.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::fs::Mode;
use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use tokio::net::{TcpStream, UnixListener};

/// The length of the backlog. It is the same as for TCP.
const BACKLOG: i32 = 1024;
const RECONNECT_DELAY: Duration = Duration::from_millis(10);
/// The maximum number of attempts to lock the directory of a socket file. It is limited, because any process
/// that may read the directory can keep the directory locked.
const MAX_LOCK_ATTEMPTS: u32 = 100;
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(2);

/// A listening socket. Dropping it removes its file, unless another server has replaced the file.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: UnixListener,
    file: SocketFile,
}

#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// The device and inode numbers, which identify the file independently of its path.
    id: (u64, u64),
}

impl Listener {
    /// Accepts the next connection. Dropping the future loses no connection.
    pub(crate) async fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.socket.accept().await?;
        into_stream(stream.into_std()?)
    }

    /// Accepts a connection that is already in the backlog. Does not ask tokio whether there is one.
    pub(crate) fn accept_now(&self) -> io::Result<(Socket, SockAddr)> {
        SockRef::from(&self.socket).accept()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }

    pub(crate) fn new(socket: OwnedFd, file: SocketFile) -> io::Result<Self> {
        Ok(Self { socket: UnixListener::from_std(socket.into())?, file })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _lock = lock_directory(&self.path);
        if fs::symlink_metadata(&self.path).is_ok_and(|found| file_id(&found) == self.id) {
            // If this fails, the next server finds the file without a listener and replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens on a path. `mode` sets the file's permission bits. Clients need write permission to connect.
///
/// Replaces a socket file on which no server listens. For all other existing files, returns `AddrInUse`.
pub(crate) fn bind(
    path: &Path,
    mode: Option<u32>,
    buffer_size: Option<usize>,
) -> io::Result<(OwnedFd, SocketFile)> {
    let address = SockAddr::unix(path)?;
    let socket = new_socket(buffer_size)?;
    // `bind` then creates the file with at most these bits. On other systems, the bits are set after `bind`,
    // but before the socket listens and clients can connect.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(mode) = mode {
        rustix::fs::fchmod(&socket, Mode::from_raw_mode(mode))?;
    }
    let lock = lock_directory(path);
    if let Err(error) = socket.bind(&address) {
        if error.kind() != io::ErrorKind::AddrInUse {
            return Err(error);
        }
        remove_stale_socket(path, &address)?;
        socket.bind(&address)?;
    }
    let file = SocketFile { path: path.to_owned(), id: file_id(&fs::symlink_metadata(path)?) };
    // Set the bits that the process's umask may have removed.
    let permitted = mode.map_or(Ok(()), |mode| fs::set_permissions(path, Permissions::from_mode(mode)));
    let listening = permitted.and_then(|()| socket.listen(BACKLOG));
    // Unlock first, because `file` is dropped on an error, and its drop takes the lock itself.
    drop(lock);
    listening.map(|()| (socket.into(), file))
}

/// Connects to the server that listens on the path. Waits while the server's backlog is full.
pub(crate) async fn connect(path: &Path, buffer_size: Option<usize>) -> io::Result<TcpStream> {
    let address = SockAddr::unix(path)?;
    loop {
        let socket = new_socket(buffer_size)?;
        match socket.connect(&address) {
            Ok(()) => return into_stream(OwnedFd::from(socket).into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                tokio::time::sleep(RECONNECT_DELAY).await
            }
            Err(error) => return Err(error),
        }
    }
}

fn new_socket(buffer_size: Option<usize>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    if let Some(size) = buffer_size {
        socket.set_recv_buffer_size(size)?;
        socket.set_send_buffer_size(size)?;
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Converts a connected socket to a `TcpStream`, which works for all address families.
fn into_stream(stream: UnixStream) -> io::Result<TcpStream> {
    stream.set_nonblocking(true)?;
    TcpStream::from_std(OwnedFd::from(stream).into())
}

fn remove_stale_socket(path: &Path, address: &SockAddr) -> io::Result<()> {
    let in_use = |text: &str| Err(io::Error::new(io::ErrorKind::AddrInUse, text));
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return in_use("a file that is not a socket exists at the path");
    }
    match new_socket(None)?.connect(address) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        _ => in_use("another server listens on the path"),
    }
}

/// Locks the directory of a socket file while the file is created or removed. Without the lock, a starting
/// server could remove the file of another one that is about to listen. Returns `None` on failure.
fn lock_directory(path: &Path) -> Option<File> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = File::open(directory).ok()?;
    for _ in 0..MAX_LOCK_ATTEMPTS {
        match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(directory),
            Err(error) if error == rustix::io::Errno::WOULDBLOCK => std::thread::sleep(LOCK_RETRY_DELAY),
            Err(_) => return None,
        }
    }
    None
}

fn file_id(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener as StdListener;

    use super::*;

    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("zorb-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn path(&self) -> PathBuf {
            self.0.join("socket")
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn stale_socket_is_replaced() {
        let directory = Directory::new("stale");
        drop(StdListener::bind(directory.path()).unwrap());
        assert!(directory.path().exists());
        let (_socket, _file) = bind(&directory.path(), None, None).unwrap();
        UnixStream::connect(directory.path()).unwrap();
    }

    #[test]
    fn neither_a_server_nor_another_file_is_replaced() {
        let directory = Directory::new("taken");
        let listener = StdListener::bind(directory.path()).unwrap();
        let error = bind(&directory.path(), None, None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(error.to_string().contains("another server"), "{error}");
        UnixStream::connect(directory.path()).unwrap();
        drop(listener);

        fs::remove_file(directory.path()).unwrap();
        fs::write(directory.path(), "precious").unwrap();
        let error = bind(&directory.path(), None, None).unwrap_err();
        assert!(error.to_string().contains("not a socket"), "{error}");
        assert_eq!(fs::read_to_string(directory.path()).unwrap(), "precious");

        // A symbolic link to a stale socket is not replaced either.
        let stale = directory.0.join("stale");
        drop(StdListener::bind(&stale).unwrap());
        fs::remove_file(directory.path()).unwrap();
        std::os::unix::fs::symlink(&stale, directory.path()).unwrap();
        assert!(bind(&directory.path(), None, None).is_err());
        assert!(stale.exists());
    }

    #[test]
    fn file_is_removed_with_its_server_unless_another_server_replaced_it() {
        let directory = Directory::new("gone");
        let (socket, file) = bind(&directory.path(), None, None).unwrap();
        drop((socket, file));
        assert!(!directory.path().exists());

        let (_socket, file) = bind(&directory.path(), None, None).unwrap();
        fs::remove_file(directory.path()).unwrap();
        let _other = StdListener::bind(directory.path()).unwrap();
        drop(file);
        assert!(directory.path().exists());
    }

    #[test]
    fn locked_directory_does_not_block_bind_and_removal() {
        let directory = Directory::new("locked");
        let lock = File::open(&directory.0).unwrap();
        rustix::fs::flock(&lock, FlockOperation::LockExclusive).unwrap();
        let (_socket, file) = bind(&directory.path(), None, None).unwrap();
        UnixStream::connect(directory.path()).unwrap();
        drop(file);
        assert!(!directory.path().exists());
    }

    #[test]
    fn file_has_the_requested_permissions() {
        let directory = Directory::new("mode");
        for mode in [0o600, 0o666, 0o660] {
            let (_socket, _file) = bind(&directory.path(), Some(mode), None).unwrap();
            let found = fs::metadata(directory.path()).unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode, "{found:o}");
        }
    }

    #[tokio::test]
    async fn connect_waits_while_the_backlog_is_full() {
        let directory = Directory::new("full");
        let (socket, file) = bind(&directory.path(), None, None).unwrap();
        rustix::net::listen(&socket, 0).unwrap();
        let mut waiting = Vec::new();
        let path = directory.path();
        while let Ok(stream) = tokio::time::timeout(Duration::from_millis(100), connect(&path, None)).await {
            waiting.push(stream.unwrap());
            assert!(waiting.len() < 64);
        }
        let listener = Listener::new(socket, file).unwrap();
        let (accepted, connected) = tokio::join!(
            async {
                for _ in &waiting {
                    listener.accept().await.unwrap();
                }
                listener.accept().await
            },
            connect(&path, None)
        );
        accepted.unwrap();
        connected.unwrap();
        assert_eq!(listener.path(), directory.path());
    }
}
