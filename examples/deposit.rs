//! A large argument is received directly into memory that the servant provides: a mapped file, a buffer of
//! its own, the start of a page.
//!
//! `@stream` invokes the servant while the sequence is still being received. The servant lends memory, and
//! the kernel writes the bytes of the socket directly into it. There is no intermediate copy, and the ORB
//! holds no memory for them.
//!
//! ```text
//! cargo run --release --example deposit             # 64 MiB
//! cargo run --release --example deposit -- 512
//! ```

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use bytes::BytesMut;
use memmap2::MmapMut;
use zorb::prelude::*;
use zorb::{ByteStream, DepositTarget, Limits};

zorb::idl! {
    typedef sequence<octet> Octets;

    /// The file is full, or can not be written to.
    exception NotStored { string why; };

    interface Archive {
        /// Keeps `data` in a file, and gives a checksum of what is in it.
        unsigned long long store(in string name, @stream in Octets data) raises (NotStored);
        /// The checksum of what arrives in memory that the servant has ready.
        unsigned long long check(@stream in Octets data) raises (NotStored);
        /// The same in whole pages, as for a device that reads them.
        unsigned long long check_pages(@stream in Octets data);
    };
}

/// Maximum number of bytes that are stored of one call.
const LIMIT: usize = 1 << 30;

/// A file that is mapped window by window, so that a file of any size takes only a few mebibytes of address
/// space.
struct MappedFile {
    file: File,
    window: Option<(u64, MmapMut)>,
}

const WINDOW: u64 = 16 << 20;

impl MappedFile {
    fn create(path: &PathBuf, len: u64) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        file.set_len(len)?;
        Ok(Self { file, window: None })
    }

    /// Maps the window that begins at `start`.
    #[expect(unsafe_code, reason = "a map is valid only while nobody else makes the file shorter")]
    fn map(&self, start: u64) -> io::Result<MmapMut> {
        let len = WINDOW.min(self.file.metadata()?.len().saturating_sub(start));
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let mut options = memmap2::MmapOptions::new();
        // SAFETY: this process has just created the file, in a directory of its own.
        unsafe { options.offset(start).len(len).map_mut(&self.file) }
    }
}

impl DepositTarget for MappedFile {
    fn room(&mut self, at: u64, _left: u64) -> io::Result<&mut [u8]> {
        let start = at / WINDOW * WINDOW;
        if self.window.as_ref().is_none_or(|(mapped, _)| *mapped != start) {
            self.window = Some((start, self.map(start)?));
        }
        let room = self.window.as_mut().and_then(|(_, map)| map.get_mut((at - start) as usize..));
        Ok(room.unwrap_or_default())
    }

    /// The filled part may be written to the disk.
    fn filled(&mut self, at: u64, n: usize) -> io::Result<()> {
        match &self.window {
            Some((start, map)) => map.flush_async_range((at - start) as usize, n),
            None => Ok(()),
        }
    }
}

struct Files {
    directory: PathBuf,
}

impl ArchiveServant for Files {
    async fn store(&self, name: &str, data: ByteStream) -> Result<u64, archive::StoreError> {
        let name = name.replace(['/', '\\'], "_");
        let path = self.directory.join(name);
        let file = MappedFile::create(&path, data.remaining()).map_err(not_stored)?;
        // A failure of the target is a user exception here; an aborted stream remains a system exception.
        match data.deposit_into(file).await {
            Ok(_) => Ok(sum(&std::fs::read(&path).map_err(not_stored)?)),
            Err(error) if error.target_error().is_some() => Err(not_stored(error).into()),
            Err(error) => Err(SystemException::from(error).into()),
        }
    }

    async fn check(&self, data: ByteStream) -> Result<u64, archive::CheckError> {
        // A target rejects data that exceeds its capacity. The capacity is limited to what this servant
        // accepts.
        let len = data.remaining().min(LIMIT as u64) as usize;
        let filled = data.deposit_into(BytesMut::zeroed(len)).await.map_err(not_stored)?;
        Ok(sum(&filled))
    }

    async fn check_pages(&self, data: ByteStream) -> Result<u64, SystemException> {
        let pages = data.into_aligned(4096, LIMIT).await?;
        assert_eq!(pages.as_ptr() as usize % 4096, 0, "it starts a page");
        Ok(sum(&pages))
    }
}

fn not_stored(error: impl std::fmt::Display) -> NotStored {
    NotStored { why: error.to_string() }
}

fn sum(octets: &[u8]) -> u64 {
    octets.iter().fold(octets.len() as u64, |sum, octet| sum.rotate_left(1) ^ u64::from(*octet))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mebibytes: usize = std::env::args().nth(1).map_or(Ok(64), |argument| argument.parse())?;
    let directory = std::env::temp_dir().join(format!("zorb-deposit-{}", std::process::id()));
    std::fs::create_dir(&directory)?;

    let mut limits = Limits::default();
    limits.max_message_size = 2 * LIMIT;
    let server = Orb::builder().limits(limits.clone()).listen("iiop://127.0.0.1:0").build().await?;
    let archive: ArchiveRef = server.activate(Files { directory: directory.clone() })?;
    let client = Orb::builder().limits(limits).build().await?;
    let archive: ArchiveRef = client.resolve(&archive.to_string()).await?;

    let data = Bytes::from((0..mebibytes << 20).map(|i| (i % 251) as u8).collect::<Vec<u8>>());
    let expected = sum(&data);
    let begun = Instant::now();
    assert_eq!(archive.store("data", data.clone()).await?, expected);
    println!("{mebibytes} MiB in a mapped file: {:?}, reading it again included", begun.elapsed());
    let begun = Instant::now();
    assert_eq!(archive.check(data.clone()).await?, expected);
    println!("{mebibytes} MiB in a buffer of the servant's: {:?}", begun.elapsed());
    let begun = Instant::now();
    assert_eq!(archive.check_pages(data).await?, expected);
    println!("{mebibytes} MiB in pages: {:?}", begun.elapsed());
    println!("{} octets of {} were copied", server.stats().bytes_copied_in, server.stats().bytes_in);

    server.shutdown().await;
    std::fs::remove_dir_all(directory)?;
    Ok(())
}
