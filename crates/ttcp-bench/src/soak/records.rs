//! What both sides note while they work, in files that outlive a process that is killed.
//!
//! The files have no names: `ttcp soak` opens them, and its children reach them as descriptors of it. So nothing is left behind,
//! however everything ends.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// Octets of a client's record.
const RECORD: usize = 16;

/// The number of a client that is no client: calls of raw sockets, whose outcome nobody waits for.
pub(super) const RAW: u16 = u16::MAX;

/// The number of a call: who made it, which of its calls, and a check, because garbage is sent too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id(pub(super) u64);

impl Id {
    /// The call of that client with that place among its calls.
    pub(super) fn new(client: u16, place: u32) -> Id {
        let high = u64::from(client) << 48 | u64::from(place) << 16;
        Id(high | check(high))
    }

    /// Who made the call.
    pub(super) fn client(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// Whether it is one that somebody made.
    pub(super) fn is_sound(self) -> bool {
        self.0 & 0xffff == check(self.0 & !0xffff)
    }
}

fn check(high: u64) -> u64 {
    high.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48
}

/// What became of a call, as its caller was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Outcome {
    /// It is on its way. What has no other record was not told.
    Begun = 1,
    /// A reply, or an exception of the operation: it was executed.
    Answered = 2,
    /// COMPLETED_YES: it was executed.
    Yes = 3,
    /// COMPLETED_NO: it was not executed.
    No = 4,
    /// COMPLETED_MAYBE.
    Maybe = 5,
    /// The caller dropped it, or it is a oneway of which nothing more is known.
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

    /// How often the call may have been executed.
    pub(super) fn executions(self) -> std::ops::RangeInclusive<u32> {
        match self {
            Outcome::Answered | Outcome::Yes => 1..=1,
            Outcome::No => 0..=0,
            Outcome::Begun | Outcome::Maybe | Outcome::Unknown | Outcome::Hung => 0..=1,
        }
    }
}

/// A line of a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    /// Which call.
    pub(super) id: Id,
    /// What became of it.
    pub(super) outcome: Outcome,
    /// The kind of call: its place in the list of kinds.
    pub(super) kind: u8,
    /// Whether nothing but the server may keep it from being answered: no short deadline, no connection given up.
    pub(super) owed: bool,
    /// The system exception: its place in the list of the OMG, from 1 on; 0 for none.
    pub(super) exception: u8,
}

/// A file that somebody writes to and somebody else reads.
#[derive(Debug)]
pub(super) struct Notes(File);

impl Notes {
    /// An empty file without a name.
    ///
    /// # Errors
    /// The directory of temporary files can not be written to.
    pub(super) fn new() -> io::Result<Notes> {
        tempfile::tempfile().map(Notes)
    }

    /// Where a child finds it.
    pub(super) fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()))
    }

    /// The file of that path, to be added to.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn open(path: &std::path::Path) -> io::Result<Notes> {
        File::options().append(true).open(path).map(Notes)
    }

    /// Adds that a call is executed.
    ///
    /// # Errors
    /// Of the file: there is no room, for one.
    pub(super) fn executed(&self, id: Id) -> io::Result<()> {
        // One write: whoever is killed has written it or not.
        (&self.0).write_all(&id.0.to_le_bytes())
    }

    /// Adds what became of a call.
    ///
    /// # Errors
    /// Of the file.
    pub(super) fn note(&self, record: Record) -> io::Result<()> {
        let mut octets = [0; RECORD];
        let Record { id, outcome, kind, owed, exception } = record;
        let flags = [outcome as u8, kind, u8::from(owed), exception];
        for (to, from) in octets.iter_mut().zip(id.0.to_le_bytes().into_iter().chain(flags)) {
            *to = from;
        }
        (&self.0).write_all(&octets)
    }

    /// All executions so far, which are forgotten.
    ///
    /// # Errors
    /// Of the file.
    pub(super) fn take_executions(&mut self) -> io::Result<Vec<Id>> {
        let octets = self.take()?;
        Ok(octets.chunks_exact(8).filter_map(number).collect())
    }

    /// All records so far, which are forgotten.
    ///
    /// # Errors
    /// Of the file.
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
    fn numbers_say_who_made_them_and_garbage_is_known() {
        let id = Id::new(7, 12_345);
        assert!(id.is_sound() && id.client() == 7);
        for bit in 0..64 {
            assert!(!Id(id.0 ^ 1 << bit).is_sound(), "bit {bit}");
        }
    }

    #[test]
    fn what_is_noted_through_the_path_is_read_once() {
        let mut notes = Notes::new().unwrap();
        let writer = Notes::open(&notes.path()).unwrap();
        let record = Record { id: Id::new(1, 2), outcome: Outcome::Maybe, kind: 3, owed: true, exception: 4 };
        writer.note(record).unwrap();
        assert_eq!(notes.take_records().unwrap(), [record]);
        assert!(notes.take_records().unwrap().is_empty());
        writer.executed(record.id).unwrap();
        writer.executed(Id(9)).unwrap();
        assert_eq!(notes.take_executions().unwrap(), [record.id, Id(9)]);
    }
}
