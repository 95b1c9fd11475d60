//! The journal: a second copy of the contents of a store, in a file beside the database.
//!
//! It starts with all contexts and bindings, followed by the changes of each batch. Every frame has a
//! checksum. It is written before the database commits, so that each acknowledged change is in both files.
//! When it has become much longer than its initial part, it is rewritten.
//!
//! ```text
//! journal = "zorb names\n\x01", frame*
//! frame   = length: u32, checksum: u32, last: u8, number: u64, chain: u64, contexts: u64,
//!           bindings: u64, next: u64, effect*
//! effect  = 0, context: u64                               there is this context
//!         | 1, context: u64                               the context was destroyed
//!         | 2, context: u64, key: text, target: bytes     the name is bound
//!         | 3, context: u64, key: text                    the name is free
//! ```
//!
//! Several frames may form one batch; the last of them is marked. Integers are big-endian. Texts and bytes
//! start with their length (u32).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut};
use redb::{Database, ReadableTable};

use super::super::index::Index;
use super::super::record::{put, take};
use super::super::{Bound, ContextId, Key, Target};
use super::Broken;
use super::files::{Files, JournalFile};
use super::tables::{BINDINGS, CONTEXTS, Counts, Version, open_record, seal};

/// The start of a journal. The last byte is the version of the format.
const MAGIC: &[u8; 12] = b"zorb names\n\x01";

/// The size of the length and the checksum of a frame, and the size of its other fields before the effects.
const HEAD: usize = 8;
const FIXED: usize = 1 + 5 * 8;

/// The number of bytes of effects after which a frame ends.
const FRAME: usize = 1024 * 1024;

/// The number of bytes by which a journal may exceed twice its initial length before it is rewritten.
const SLACK: u64 = 1024 * 1024;

/// The maximum time until appended data is synchronized to disk. The database is synchronized at once. The
/// delay only matters after a loss of power that also damages the database.
const SYNC: Duration = Duration::from_secs(1);

/// A part of the effect of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    Context(ContextId),
    NoContext(ContextId),
    Bind(ContextId, Key, Target),
    Unbind(ContextId, Key),
}

impl Effect {
    /// Applies it to the index for lookups.
    pub(super) fn tell(self, index: &Index) {
        match self {
            Self::Context(id) => index.add_context(id),
            Self::NoContext(id) => index.remove_context(id),
            Self::Bind(context, key, target) => index.bind(context, key, Bound::new(target)),
            Self::Unbind(context, key) => index.unbind(context, &key),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Context(ContextId(id)) => {
                out.put_u8(0);
                out.put_u64(*id);
            }
            Self::NoContext(ContextId(id)) => {
                out.put_u8(1);
                out.put_u64(*id);
            }
            Self::Bind(ContextId(id), key, target) => {
                out.put_u8(2);
                out.put_u64(*id);
                put(out, key.text().as_bytes());
                put(out, &target.write());
            }
            Self::Unbind(ContextId(id), key) => {
                out.put_u8(3);
                out.put_u64(*id);
                put(out, key.text().as_bytes());
            }
        }
    }

    /// Reads the next effect. Returns `None` if it is invalid.
    fn read(rest: &mut &[u8]) -> Option<Self> {
        let kind = rest.try_get_u8().ok()?;
        let context = ContextId(rest.try_get_u64().ok()?);
        let key = |rest: &mut &[u8]| Key::from_text(std::str::from_utf8(take(rest)?).ok()?);
        Some(match kind {
            0 => Self::Context(context),
            1 => Self::NoContext(context),
            2 => Self::Bind(context, key(rest)?, Target::read(take(rest)?)?),
            3 => Self::Unbind(context, key(rest)?),
            _ => return None,
        })
    }
}

/// Returns the value of a chain after a frame. Two stores with the same chain have had the same changes.
fn chained(chain: u64, effects: &[u8]) -> u64 {
    let sum = u64::from(crc32fast::hash(effects));
    (chain.rotate_left(23) ^ sum ^ effects.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn frame(out: &mut Vec<u8>, last: bool, version: Version, counts: &Counts, effects: &[u8]) {
    let begin = out.len();
    // Frames end soon after `FRAME` bytes, and one effect comes from one message.
    let len = u32::try_from(FIXED + effects.len()).unwrap_or(u32::MAX);
    out.put_u32(len);
    out.put_u32(0);
    out.put_u8(u8::from(last));
    for number in [version.number, version.chain, counts.contexts, counts.bindings, counts.next] {
        out.put_u64(number);
    }
    out.put_slice(effects);
    let mut sum = crc32fast::Hasher::new();
    sum.update(&len.to_be_bytes());
    sum.update(out.get(begin + HEAD..).unwrap_or_default());
    if let Some(place) = out.get_mut(begin + 4..begin + HEAD) {
        place.copy_from_slice(&sum.finalize().to_be_bytes());
    }
}

/// The frames of a batch, and the version of the store after it.
pub(super) struct Batch {
    frames: Vec<u8>,
    pub(super) version: Version,
}

impl Batch {
    /// Creates the batch of changes to a store of version `before`. `counts` are those after the changes.
    pub(super) fn new(before: Version, counts: &Counts, effects: &[Effect]) -> Self {
        // Of several changes of one name only the last is kept: a group is written whole for each member that
        // joins.
        let mut seen = HashSet::new();
        let mut kept: Vec<&Effect> = effects
            .iter()
            .rev()
            .filter(|effect| match effect {
                Effect::Bind(context, key, _) | Effect::Unbind(context, key) => seen.insert((*context, key)),
                Effect::Context(_) | Effect::NoContext(_) => true,
            })
            .collect();
        kept.reverse();
        let mut parts = vec![Vec::new()];
        for effect in kept {
            if parts.last().is_some_and(|part| part.len() >= FRAME) {
                parts.push(Vec::new());
            }
            if let Some(part) = parts.last_mut() {
                effect.write(part);
            }
        }
        let chain = parts.iter().fold(before.chain, |chain, part| chained(chain, part));
        let version = Version { number: before.number.saturating_add(1), chain };
        let mut frames = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            frame(&mut frames, number + 1 == parts.len(), version, counts, part);
        }
        Self { frames, version }
    }
}

/// A journal that is written to.
pub(super) struct Journal {
    file: Box<dyn JournalFile>,
    len: u64,
    /// The version of the store after its last batch.
    version: Version,
    /// The version and the length before that batch, if it was appended by this value.
    before: Option<(Version, u64)>,
    /// The length at which it is rewritten.
    limit: u64,
    /// The time at which the first byte was appended that may not be on disk yet.
    unsynced: Option<Instant>,
}

impl Journal {
    /// Continues a journal after its last complete batch.
    ///
    /// # Errors
    /// The data after that batch cannot be truncated.
    pub(super) fn resume(file: Box<dyn JournalFile>, found: &Scan) -> io::Result<Self> {
        if !found.is_whole {
            file.set_len(found.end)?;
        }
        let limit = found.base.saturating_mul(2).saturating_add(SLACK);
        Ok(Self { file, len: found.end, version: found.version, before: None, limit, unsynced: None })
    }

    /// Writes a new journal with the contents of the database.
    ///
    /// # Errors
    /// The database is damaged, or the disk is full. The existing journal is left unchanged.
    pub(super) fn rewrite(files: &dyn Files, db: &Database) -> Result<Self, Broken> {
        let txn = db.begin_read()?;
        let meta = txn.open_table(super::tables::META)?;
        let counts = Counts::read(&meta)?;
        let counts = counts.ok_or_else(|| Broken("nothing says how much there is".to_owned()))?;
        let version = Version::read(&meta)?;
        let mut file = files.new_journal()?;
        let mut len = MAGIC.len() as u64;
        file.write_all(MAGIC)?;
        let mut effects = Vec::new();
        let mut flush = |effects: &mut Vec<u8>, last: bool| -> io::Result<()> {
            let mut out = Vec::with_capacity(HEAD + FIXED + effects.len());
            frame(&mut out, last, version, &counts, effects);
            effects.clear();
            len += out.len() as u64;
            file.write_all(&out)
        };
        for entry in txn.open_table(CONTEXTS)?.iter()? {
            let (id, sum) = entry?;
            if seal(id.value()) != sum.value() {
                return Err(Broken(format!("the context {} is not what was written", id.value())));
            }
            Effect::Context(ContextId(id.value())).write(&mut effects);
            if effects.len() >= FRAME {
                flush(&mut effects, false)?;
            }
        }
        for entry in txn.open_table(BINDINGS)?.iter()? {
            let (place, record) = entry?;
            let (context, text) = place.value();
            let broken = || Broken(format!("a binding of context {context} is not what was written"));
            let key = Key::from_text(text).ok_or_else(broken)?;
            let target = open_record(context, text, record.value()).ok_or_else(broken)?;
            Effect::Bind(ContextId(context), key, target).write(&mut effects);
            if effects.len() >= FRAME {
                flush(&mut effects, false)?;
            }
        }
        flush(&mut effects, true)?;
        file.sync()?;
        files.adopt_journal()?;
        let limit = len.saturating_mul(2).saturating_add(SLACK);
        Ok(Self { file, len, version, before: None, limit, unsynced: None })
    }

    /// Appends a batch. After an error nothing is appended, or, with `Err((_, true))`, the journal is
    /// unusable.
    pub(super) fn append(&mut self, batch: &Batch) -> Result<(), (io::Error, bool)> {
        let written =
            self.file.seek(SeekFrom::Start(self.len)).and_then(|_| self.file.write_all(&batch.frames));
        if let Err(error) = written {
            return Err((error, self.file.set_len(self.len).is_err()));
        }
        self.before = Some((self.version, self.len));
        self.version = batch.version;
        self.len += batch.frames.len() as u64;
        self.unsynced.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Adapts it to a store of that version, by removing the last batch if the store does not have it.
    /// Returns whether it matches now.
    pub(super) fn agree_with(&mut self, version: Version) -> bool {
        if self.version == version {
            return true;
        }
        let Some((before, len)) = self.before.filter(|(before, _)| *before == version) else { return false };
        if self.file.set_len(len).is_err() {
            return false;
        }
        (self.version, self.len, self.before) = (before, len, None);
        true
    }

    /// Returns whether it is much longer than its initial part.
    pub(super) fn is_long(&self) -> bool {
        self.len > self.limit
    }

    /// Postpones the next rewrite after a failed one until the journal has grown further.
    pub(super) fn postpone(&mut self) {
        self.limit = self.len.saturating_add(SLACK);
    }

    /// Returns the time at which it must be synchronized. `None` if all of it is on disk.
    pub(super) fn sync_at(&self) -> Option<Instant> {
        self.unsynced.map(|since| since + SYNC)
    }

    /// Waits until all of it is on disk.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync()?;
        self.unsynced = None;
        Ok(())
    }
}

/// A summary of a journal, obtained without keeping its contents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// The version of the store after the last complete batch, or the default if there is none.
    pub(super) version: Version,
    /// The offset of the end of that batch.
    pub(super) end: u64,
    /// The offset of the end of the initial part.
    pub(super) base: u64,
    /// The offset of the end of the batch that made the requested version.
    pub(super) found: Option<u64>,
    /// The number of batches after that one.
    pub(super) behind_found: u64,
    /// True if nothing follows the last complete batch.
    pub(super) is_whole: bool,
}

impl Scan {
    /// Reads a journal and looks for a version.
    pub(super) fn of(file: &mut dyn JournalFile, looked_for: Version) -> io::Result<Self> {
        let (mut scan, mut pending) = (Self::default(), 0_u64);
        let to_end = read(file, |head, _, end| {
            pending += 1;
            if head.last {
                pending = 0;
                if scan.end == 0 {
                    scan.base = end;
                }
                (scan.version, scan.end) = (head.version, end);
                scan.behind_found += 1;
                if head.version == looked_for {
                    (scan.found, scan.behind_found) = (Some(end), 0);
                }
            }
            true
        })?;
        scan.is_whole = to_end && pending == 0 && scan.end > 0;
        Ok(scan)
    }
}

/// The contents of a journal.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) contexts: BTreeSet<u64>,
    pub(super) bindings: BTreeMap<(u64, String), Target>,
    pub(super) counts: Option<Counts>,
    pub(super) version: Version,
    /// True if it can be read to its end, and has as many entries as it states.
    pub(super) is_whole: bool,
}

impl Contents {
    /// Reads a journal up to the first damage.
    pub(super) fn of(file: &mut dyn JournalFile) -> io::Result<Self> {
        let mut contents = Self::default();
        // Effects of an incomplete batch.
        let mut pending = Vec::new();
        let mut begun = false;
        let to_end = read(file, |head, effects, _| {
            let Some(mut effects) = effects_of(effects) else { return false };
            pending.append(&mut effects);
            if head.last {
                pending.drain(..).for_each(|effect| contents.apply(effect));
                (contents.counts, contents.version) = (Some(head.counts), head.version);
                begun = true;
            }
            true
        })?;
        contents.is_whole = to_end
            && pending.is_empty()
            && contents.counts.is_some_and(|counts| {
                counts.contexts == contents.contexts.len() as u64
                    && counts.bindings == contents.bindings.len() as u64
            });
        if !begun {
            // Even the initial part is incomplete. It is of one version, so each part of it is usable.
            pending.into_iter().for_each(|effect| contents.apply(effect));
        }
        Ok(contents)
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Context(ContextId(id)) => {
                self.contexts.insert(id);
            }
            Effect::NoContext(ContextId(id)) => {
                self.contexts.remove(&id);
            }
            Effect::Bind(ContextId(id), key, target) => {
                self.bindings.insert((id, key.text().to_owned()), target);
            }
            Effect::Unbind(ContextId(id), key) => {
                self.bindings.remove(&(id, key.text().to_owned()));
            }
        }
    }
}

/// Returns the effects of the last batch, which starts at `begin`, with the counts and the version of the
/// store after it.
pub(super) fn last_batch(
    file: &mut dyn JournalFile,
    begin: u64,
) -> io::Result<Option<(Vec<Effect>, Counts, Version)>> {
    let (mut all, mut done) = (Vec::new(), None);
    read(file, |head, effects, at| {
        if at <= begin {
            return true;
        }
        let Some(mut effects) = effects_of(effects) else { return false };
        all.append(&mut effects);
        if head.last {
            done = Some((head.counts, head.version));
        }
        !head.last
    })?;
    Ok(done.map(|(counts, version)| (all, counts, version)))
}

fn effects_of(mut bytes: &[u8]) -> Option<Vec<Effect>> {
    let mut effects = Vec::new();
    while !bytes.is_empty() {
        effects.push(Effect::read(&mut bytes)?);
    }
    Some(effects)
}

/// The fields of a frame before its effects.
struct Head {
    last: bool,
    version: Version,
    counts: Counts,
}

/// Reads frames until one is damaged or `each` returns false. `each` receives the head, the effects and the
/// offset of the frame's end. Returns whether all of the file was read.
fn read(file: &mut dyn JournalFile, mut each: impl FnMut(Head, &[u8], u64) -> bool) -> io::Result<bool> {
    let len = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(0))?;
    let mut file = BufReader::with_capacity(256 * 1024, file);
    let mut magic = [0; MAGIC.len()];
    let mut at = MAGIC.len() as u64;
    if len < at {
        return Ok(false);
    }
    file.read_exact(&mut magic)?;
    if magic != *MAGIC {
        return Ok(false);
    }
    let mut rest = Vec::new();
    while len - at >= HEAD as u64 {
        let mut head = [0; HEAD];
        file.read_exact(&mut head)?;
        let mut fields = &head[..];
        let (size, sum) = (fields.get_u32(), fields.get_u32());
        if u64::from(size) > len - at - HEAD as u64 || (size as usize) < FIXED {
            return Ok(false);
        }
        rest.resize(size as usize, 0);
        file.read_exact(&mut rest)?;
        let mut found = crc32fast::Hasher::new();
        found.update(&size.to_be_bytes());
        found.update(&rest);
        if found.finalize() != sum {
            return Ok(false);
        }
        let mut fields = &rest[..];
        let last = fields.get_u8() == 1;
        let version = Version { number: fields.get_u64(), chain: fields.get_u64() };
        let (contexts, bindings, next) = (fields.get_u64(), fields.get_u64(), fields.get_u64());
        let counts = Counts { format: super::tables::FORMAT, contexts, bindings, next };
        let end = at + HEAD as u64 + u64::from(size);
        if !each(Head { last, version, counts }, fields, end) {
            return Ok(false);
        }
        at = end;
    }
    Ok(at == len)
}
