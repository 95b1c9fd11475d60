//! The files in which clients and server record calls. They still exist after a child process is killed.
//!
//! The files have no names. `ttcp soak` creates them, and its children open the descriptors of `ttcp soak` in
//! `/proc`. Therefore no files remain when all processes have ended.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

const RECORD_BYTES: usize = 16;

/// The client number in the calls of [`MisbehavingPeers`](super::faults::MisbehavingPeers). The outcomes of
/// these calls are not recorded.
pub(super) const RAW_CLIENT: u16 = u16::MAX;

/// The id of a call. It consists of the client's number, the index of the call among the client's calls, and
/// a check value, by which the server detects requests that were corrupted on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id(pub(super) u64);

impl Id {
    pub(super) fn new(client: u16, index: u32) -> Id {
        let high = u64::from(client) << 48 | u64::from(index) << 16;
        Id(high | check_value(high))
    }

    pub(super) fn client(self) -> u16 {
        (self.0 >> 48) as u16
    }

    pub(super) fn is_valid(self) -> bool {
        self.0 & 0xffff == check_value(self.0 & !0xffff)
    }
}

fn check_value(high: u64) -> u64 {
    high.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Outcome {
    /// The call was started. A later record has the outcome.
    Begun = 1,
    /// The call had a reply or a user exception, or it is a oneway that is known to have arrived.
    Answered = 2,
    /// The call ended with COMPLETED_YES, so it was executed.
    Yes = 3,
    /// The call ended with COMPLETED_NO, so it was not executed.
    No = 4,
    /// The call ended with COMPLETED_MAYBE, so it may have been executed.
    Maybe = 5,
    /// The caller dropped the call, or it is a oneway with an unknown outcome.
    Unknown = 6,
    /// The call had not ended long after its deadline.
    Hung = 7,
}

impl Outcome {
    const ALL: [Outcome; 7] = [
        Outcome::Begun,
        Outcome::Answered,
        Outcome::Yes,
        Outcome::No,
        Outcome::Maybe,
        Outcome::Unknown,
        Outcome::Hung,
    ];

    /// Returns how often a call with this outcome may have been executed.
    pub(super) fn executions(self) -> std::ops::RangeInclusive<u32> {
        match self {
            Outcome::Answered | Outcome::Yes => 1..=1,
            Outcome::No => 0..=0,
            Outcome::Begun | Outcome::Maybe | Outcome::Unknown | Outcome::Hung => 0..=1,
        }
    }
}

/// The start or the outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) id: Id,
    pub(super) outcome: Outcome,
    /// The index of the call's kind in [`KINDS`](super::calls::KINDS).
    pub(super) kind: u8,
    /// Whether the call must be answered: it has no short deadline, and the client does not give its ORB up.
    pub(super) must_be_answered: bool,
    /// 0 for no system exception, or its index in [`ALL`](zorb::SystemExceptionKind::ALL) plus 1.
    pub(super) exception: u8,
}

/// A file that a child process writes, and `ttcp soak` reads.
#[derive(Debug)]
pub(super) struct RecordFile(File);

impl RecordFile {
    pub(super) fn new() -> io::Result<RecordFile> {
        tempfile::tempfile().map(RecordFile)
    }

    /// Returns the path at which a child can open the file.
    pub(super) fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()))
    }

    pub(super) fn open(path: &std::path::Path) -> io::Result<RecordFile> {
        File::options().append(true).open(path).map(RecordFile)
    }

    pub(super) fn append_execution(&self, id: Id) -> io::Result<()> {
        // The id is written by a single system call. So a killed process has written all of it or nothing.
        (&self.0).write_all(&id.0.to_le_bytes())
    }

    pub(super) fn append_record(&self, record: Record) -> io::Result<()> {
        let mut bytes = [0; RECORD_BYTES];
        let Record { id, outcome, kind, must_be_answered, exception } = record;
        let flags = [outcome as u8, kind, u8::from(must_be_answered), exception];
        for (target, byte) in bytes.iter_mut().zip(id.0.to_le_bytes().into_iter().chain(flags)) {
            *target = byte;
        }
        (&self.0).write_all(&bytes)
    }

    /// Returns all ids of executed calls so far, and removes them from the file.
    pub(super) fn take_executions(&mut self) -> io::Result<Vec<Id>> {
        let bytes = self.take_bytes()?;
        Ok(bytes.as_chunks().0.iter().map(|id| Id(u64::from_le_bytes(*id))).collect())
    }

    /// Returns the client's records so far, and removes them from the file.
    pub(super) fn take_records(&mut self) -> io::Result<Vec<Record>> {
        let bytes = self.take_bytes()?;
        let record = |bytes: &[u8]| {
            let (id, rest) = bytes.split_first_chunk::<8>()?;
            let [outcome, kind, flag, exception, ..] = *rest else { return None };
            let outcome = Outcome::ALL.into_iter().find(|known| *known as u8 == outcome)?;
            let id = Id(u64::from_le_bytes(*id));
            Some(Record { id, outcome, kind, must_be_answered: flag == 1, exception })
        };
        Ok(bytes.chunks_exact(RECORD_BYTES).filter_map(record).collect())
    }

    fn take_bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.0.seek(SeekFrom::Start(0))?;
        self.0.read_to_end(&mut bytes)?;
        self.0.set_len(0)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_contain_their_client_and_corrupt_ids_are_detected() {
        let id = Id::new(7, 12_345);
        assert!(id.is_valid() && id.client() == 7);
        for bit in 0..64 {
            assert!(!Id(id.0 ^ 1 << bit).is_valid(), "bit {bit}");
        }
    }

    #[test]
    fn records_written_through_the_path_are_read_once() {
        let mut file = RecordFile::new().unwrap();
        let writer = RecordFile::open(&file.path()).unwrap();
        let record = Record {
            id: Id::new(1, 2),
            outcome: Outcome::Maybe,
            kind: 3,
            must_be_answered: true,
            exception: 4,
        };
        writer.append_record(record).unwrap();
        assert_eq!(file.take_records().unwrap(), [record]);
        assert!(file.take_records().unwrap().is_empty());
        writer.append_execution(record.id).unwrap();
        writer.append_execution(Id(9)).unwrap();
        assert_eq!(file.take_executions().unwrap(), [record.id, Id(9)]);
    }
}
