//! Files of any size in constant memory: the client reads a file while it is sent, the server writes it while
//! it is received.
//!
//! ```text
//! cargo run --release --example files                  # 256 MiB of its own making
//! cargo run --release --example files -- FILE          # your file, to the temporary directory and back
//! ```

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use zorb::prelude::*;
use zorb::{ByteSource, ByteStream, Limits};

zorb::idl! {
    typedef sequence<octet> Octets;
    exception NoRoom { unsigned long long left; };

    interface Depot {
        /// Returns the number of bytes that were stored.
        unsigned long long store(in string name, @stream in Octets content) raises (NoRoom);
    };
}

/// Keeps files in a directory.
struct Disk {
    directory: PathBuf,
    /// Maximum size of a file, bytes.
    room: u64,
}

impl DepotServant for Disk {
    async fn store(&self, name: &str, mut content: ByteStream) -> Result<u64, depot::StoreError> {
        let len = content.remaining();
        if len > self.room {
            // The client receives this immediately; the rest of its data is not awaited.
            return Err(NoRoom { left: self.room }.into());
        }
        // The name comes from the client, so only its last component is used.
        let name = Path::new(name).file_name().unwrap_or("unnamed".as_ref());
        let kind = SystemExceptionKind::PersistStore;
        let mut file = tokio::fs::File::create(self.directory.join(name)).await.or_system_exception(kind)?;
        while let Some(chunk) = content.next().await {
            // While the disk is slow, the socket is not read, which also slows down the client.
            file.write_all(&chunk?).await.or_system_exception(kind)?;
        }
        file.flush().await.or_system_exception(kind)?;
        Ok(len)
    }
}

/// A reader that prints its progress.
struct Progress<R> {
    reader: R,
    read: u64,
    len: u64,
}

impl<R: AsyncRead + Unpin> AsyncRead for Progress<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.reader).poll_read(cx, buf))?;
        let tenths = |read: u64| (read * 10).checked_div(self.len).unwrap_or(10);
        let now = self.read + (buf.filled().len() - before) as u64;
        if tenths(now) > tenths(self.read) {
            println!("{:3} %", tenths(now) * 10);
        }
        self.read = now;
        Poll::Ready(Ok(()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let directory = std::env::temp_dir().join(format!("zorb-files-{}", std::process::id()));
    tokio::fs::create_dir_all(directory.join("depot")).await?;
    let path = match std::env::args_os().nth(1) {
        Some(path) => path.into(),
        None => {
            let path = directory.join("content");
            tokio::fs::write(&path, vec![0x5a; 256 << 20]).await?;
            path
        }
    };

    let mut limits = Limits::default();
    limits.max_message_size = u32::MAX as usize; // the maximum of GIOP
    let server = Orb::builder().limits(limits).listen("iiop://127.0.0.1:0").build().await?;
    let depot: DepotRef = server.activate(Disk { directory: directory.join("depot"), room: 4 << 30 })?;
    let narrow: DepotRef = server.activate(Disk { directory: directory.join("depot"), room: 1_000_000 })?;

    // The deadline of the call, a minute by default, includes the transfer of the file.
    let client = Orb::builder().build().await?;
    let hour = Duration::from_secs(3600);
    let depot: DepotRef = client.resolve::<DepotRef>(&depot.to_string()).await?.with_timeout(hour);
    let narrow: DepotRef = client.resolve(&narrow.to_string()).await?;

    // A file by its path.
    let start = Instant::now();
    let stored = depot.store("first", ByteSource::file(&path).await?).await?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{stored} octets in {seconds:.3} s: {:.1} Gbit/s", stored as f64 * 8.0 / seconds / 1e9);

    // Any reader, here one that prints its progress. The length must be known, because it is sent before the
    // data.
    let file = tokio::fs::File::open(&path).await?;
    let len = file.metadata().await?.len();
    let reader = Progress { reader: file, read: 0, len };
    depot.store("second", ByteSource::reader(len, reader)).await?;

    // A servant that raises an exception does not wait for the rest.
    match narrow.store("third", ByteSource::file(&path).await?).await {
        Err(depot::StoreError::NoRoom(refused)) => println!("refused: {refused}"),
        other => println!("stored: {other:?}"),
    }

    client.shutdown().await;
    server.shutdown().await;
    println!("memory for receiving: {:?}", server.pool_stats());
    tokio::fs::remove_dir_all(&directory).await?;
    Ok(())
}
