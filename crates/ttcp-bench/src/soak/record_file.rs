//! The records of both sides, in files that outlive a killed process.
//!
//! The files have no names: `ttcp soak` opens them, and its children reach them as descriptors of that
//! process. Therefore nothing remains, in whatever way the processes end.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// Size of a client's record, bytes.
const RECORD: usize = 16;

/// The client number of raw sockets, which do not await the outcome of their calls.
pub(super) const RAW: u16 = u16::MAX;

/// The id of a call: its client, its index among the client's calls, and a check value, because garbage is
/// sent too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id(pub(super) u64);

impl Id {
    /// Returns the id of the call with index `place` of that client.
    pub(super) fn new(client: u16, place: u32) -> Id {
        let high = u64::from(client) << 48 | u64::from(place) << 16;
        Id(high | check(high))
    }

    /// Returns the client that made the call.
    pub(super) fn client(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// Returns whether the check value is correct, which means that a client created the id.
    pub(super) fn is_sound(self) -> bool {
        self.0 & 0xffff == check(self.0 & !0xffff)
    }
}

fn check(high: u64) -> u64 {
    high.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48
}

/// The outcome of a call as its caller knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Outcome {
    /// The call was begun. Without another record, the outcome was not reported.
    Begun = 1,
    /// A reply, or an exception of the operation: it was executed.
    Answered = 2,
    /// COMPLETED_YES: it was executed.
    Yes = 3,
    /// COMPLETED_NO: it was not executed.
    No = 4,
    /// COMPLETED_MAYBE.
    Maybe = 5,
    /// The caller dropped it, or it is a oneway with an unknown outcome.
    Unknown = 6,
    /// It did not end by itself, long after its deadline.
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

    /// Returns how often the call may have been executed.
    pub(super) fn executions(self) -> std::ops::RangeInclusive<u32> {
        match self {
            Outcome::Answered | Outcome::Yes => 1..=1,
            Outcome::No => 0..=0,
            Outcome::Begun | Outcome::Maybe | Outcome::Unknown | Outcome::Hung => 0..=1,
        }
    }
}

/// A record of a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    /// The call.
    pub(super) id: Id,
    /// Its outcome.
    pub(super) outcome: Outcome,
    /// The kind of call: its index in the list of kinds.
    pub(super) kind: u8,
    /// Whether only the server may prevent an answer: no short deadline, no connection given up.
    pub(super) owed: bool,
    /// The system exception: its position in the OMG's list, from 1; 0 for none.
    pub(super) exception: u8,
}

/// A record file that one process writes and another reads.
#[derive(Debug)]
pub(super) struct RecordFile(File);

impl RecordFile {
    /// Creates an empty file without a name.
    ///
    /// # Errors
    /// The directory of temporary files cannot be written.
    pub(super) fn new() -> io::Result<RecordFile> {
        tempfile::tempfile().map(RecordFile)
    }

    /// Returns the path by which a child opens it.
    pub(super) fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()))
    }

    /// Opens the file of that path for appending.
    ///
    /// # Errors
    /// It does not exist.
    pub(super) fn open(path: &std::path::Path) -> io::Result<RecordFile> {
        File::options().append(true).open(path).map(RecordFile)
    }

    /// Appends that a call is executed.
    ///
    /// # Errors
    /// Errors of the file, for example a full disk.
    pub(super) fn executed(&self, id: Id) -> io::Result<()> {
        // A single write, so that a killed process has written all of it or nothing.
        (&self.0).write_all(&id.0.to_le_bytes())
    }

    /// Appends the outcome of a call.
    ///
    /// # Errors
    /// Errors of the file.
    pub(super) fn note(&self, record: Record) -> io::Result<()> {
        let mut octets = [0; RECORD];
        let Record { id, outcome, kind, owed, exception } = record;
        let flags = [outcome as u8, kind, u8::from(owed), exception];
        for (to, from) in octets.iter_mut().zip(id.0.to_le_bytes().into_iter().chain(flags)) {
            *to = from;
        }
        (&self.0).write_all(&octets)
    }

    /// Returns all executions so far, and removes them.
    ///
    /// # Errors
    /// Errors of the file.
    pub(super) fn take_executions(&mut self) -> io::Result<Vec<Id>> {
        let octets = self.take()?;
        Ok(octets.chunks_exact(8).filter_map(number).collect())
    }

    /// Returns all records so far, and removes them.
    ///
    /// # Errors
    /// Errors of the file.
    pub(super) fn take_records(&mut self) -> io::Result<Vec<Record>> {
        let octets = self.take()?;
        let record = |octets: &[u8]| {
            let (id, rest) = octets.split_first_chunk::<8>()?;
            let [outcome, kind, owed, exception, ..] = rest else { return None };
            let outcome = Outcome::ALL.into_iter().find(|known| *known as u8 == *outcome)?;
            let id = Id(u64::from_le_bytes(*id));
            Some(Record { id, outcome, kind: *kind, owed: *owed == 1, exception: *exception })
        };
        Ok(octets.chunks_exact(RECORD).filter_map(record).collect())
    }

    fn take(&mut self) -> io::Result<Vec<u8>> {
        let mut octets = Vec::new();
        self.0.seek(SeekFrom::Start(0))?;
        self.0.read_to_end(&mut octets)?;
        self.0.set_len(0)?;
        Ok(octets)
    }
}

fn number(octets: &[u8]) -> Option<Id> {
    octets.first_chunk().map(|octets| Id(u64::from_le_bytes(*octets)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_contain_their_client_and_corrupt_ids_are_detected() {
        let id = Id::new(7, 12_345);
        assert!(id.is_sound() && id.client() == 7);
        for bit in 0..64 {
            assert!(!Id(id.0 ^ 1 << bit).is_sound(), "bit {bit}");
        }
    }

    #[test]
    fn what_is_noted_through_the_path_is_read_once() {
        let mut notes = RecordFile::new().unwrap();
        let writer = RecordFile::open(&notes.path()).unwrap();
        let record = Record { id: Id::new(1, 2), outcome: Outcome::Maybe, kind: 3, owed: true, exception: 4 };
        writer.note(record).unwrap();
        assert_eq!(notes.take_records().unwrap(), [record]);
        assert!(notes.take_records().unwrap().is_empty());
        writer.executed(record.id).unwrap();
        writer.executed(Id(9)).unwrap();
        assert_eq!(notes.take_executions().unwrap(), [record.id, Id(9)]);
    }
}
