//! The journal: a second copy of the contents of a store, in a file next to the database.
//!
//! It starts with all contexts and bindings that exist when the file is created. The changes of each later
//! *batch*, the changes that are made in one transaction of the database, follow. Each batch is written to
//! the journal before the database commits it, so every acknowledged change is in both files. When the
//! journal has become much longer than its initial part, it is rewritten.
//!
//! ```text
//! journal = "zorb names\n\x01", frame*
//! frame   = length: u32, checksum: u32, last: u8, number: u64, chain_checksum: u64, contexts: u64,
//!           bindings: u64, next_context: u64, effect*
//! effect  = 0, context: u64                               the context exists
//!         | 1, context: u64                               the context was destroyed
//!         | 2, context: u64, key: text, target: bytes     the name is bound
//!         | 3, context: u64, key: text                    the name is not bound
//! ```
//!
//! The initial part and each batch consist of one or more frames. `last` is 1 in the last of these frames and
//! 0 in the others. `number` and `chain_checksum` are the version of the store after the batch. `contexts`
//! and `bindings` are the numbers of these after it. `next_context` is the id of the next new context.
//!
//! `length` is the number of bytes after the checksum. The checksum covers the length and these bytes.
//! Integers are big-endian. Texts and bytes start with their length (u32).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut};
use redb::{Database, ReadableTable};

use super::super::index::Index;
use super::super::record::{put_bytes, take_bytes};
use super::super::{ContextId, Key, StoredBinding, Target};
use super::Failure;
use super::files::{Files, JournalFile};
use super::tables::{BINDINGS, CONTEXTS, Counts, Version, context_checksum, decode_record};

/// The start of a journal. The last byte is the version of the format.
const MAGIC: &[u8; 12] = b"zorb names\n\x01";

/// The size in bytes of the length and the checksum of a frame.
const PREFIX_BYTES: usize = 8;

/// The size in bytes of the fields between the checksum and the effects of a frame.
const FRAME_HEAD_BYTES: usize = 1 + 5 * 8;

/// When the effects of a frame have at least this number of bytes, the frame ends.
const FRAME_EFFECT_BYTES: usize = 1024 * 1024;

/// The number of bytes by which a journal may exceed twice its initial length before it is rewritten.
const MAX_EXCESS_BYTES: u64 = 1024 * 1024;

/// The maximum time until appended data is synchronized to disk. If it is lost before, the database still has
/// it.
const SYNC_DELAY: Duration = Duration::from_secs(1);

/// A change of one context or binding. A [`Change`](super::super::Change) has one or more effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    AddContext(ContextId),
    RemoveContext(ContextId),
    Bind(ContextId, Key, Target),
    Unbind(ContextId, Key),
}

impl Effect {
    /// Applies the effect to the index.
    pub(super) fn apply_to(self, index: &Index) {
        match self {
            Self::AddContext(id) => index.add_context(id),
            Self::RemoveContext(id) => index.remove_context(id),
            Self::Bind(context, key, target) => index.bind(context, key, StoredBinding::new(target)),
            Self::Unbind(context, key) => index.unbind(context, &key),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let (kind, ContextId(id)) = match self {
            Self::AddContext(id) => (0, id),
            Self::RemoveContext(id) => (1, id),
            Self::Bind(id, ..) => (2, id),
            Self::Unbind(id, _) => (3, id),
        };
        out.put_u8(kind);
        out.put_u64(*id);
        if let Self::Bind(_, key, _) | Self::Unbind(_, key) = self {
            put_bytes(out, key.text().as_bytes());
        }
        if let Self::Bind(.., target) = self {
            put_bytes(out, &target.encode());
        }
    }

    /// Decodes an effect, and removes it from `rest`. Returns `None` if it is invalid.
    fn read(rest: &mut &[u8]) -> Option<Self> {
        let kind = rest.try_get_u8().ok()?;
        let context = ContextId(rest.try_get_u64().ok()?);
        let key = |rest: &mut &[u8]| Key::from_text(std::str::from_utf8(take_bytes(rest)?).ok()?);
        Some(match kind {
            0 => Self::AddContext(context),
            1 => Self::RemoveContext(context),
            2 => Self::Bind(context, key(rest)?, Target::decode(take_bytes(rest)?)?),
            3 => Self::Unbind(context, key(rest)?),
            _ => return None,
        })
    }
}

/// Returns the length above which a journal is rewritten, if its initial part has the length `initial_len`.
fn max_len(initial_len: u64) -> u64 {
    initial_len.saturating_mul(2).saturating_add(MAX_EXCESS_BYTES)
}

/// Returns the chain checksum after a frame with these effects: a checksum of the frame and of all changes
/// before it. Two stores with the same chain checksum have had the same changes.
fn next_chain_checksum(previous: u64, effects: &[u8]) -> u64 {
    let sum = u64::from(crc32fast::hash(effects));
    (previous.rotate_left(23) ^ sum ^ effects.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Appends a frame to `out`.
fn write_frame(out: &mut Vec<u8>, is_last: bool, version: Version, counts: &Counts, effects: &[u8]) {
    let start = out.len();
    // The length fits in a `u32`: the effects before the last one have less than `FRAME_EFFECT_BYTES`, and
    // one effect is at most as long as a message or a full group.
    let len = u32::try_from(FRAME_HEAD_BYTES + effects.len()).unwrap_or(u32::MAX);
    out.put_u32(len);
    out.put_u32(0);
    out.put_u8(u8::from(is_last));
    for number in
        [version.number, version.chain_checksum, counts.contexts, counts.bindings, counts.next_context]
    {
        out.put_u64(number);
    }
    out.put_slice(effects);
    let mut sum = crc32fast::Hasher::new();
    sum.update(&len.to_be_bytes());
    sum.update(out.get(start + PREFIX_BYTES..).unwrap_or_default());
    if let Some(checksum) = out.get_mut(start + 4..start + PREFIX_BYTES) {
        checksum.copy_from_slice(&sum.finalize().to_be_bytes());
    }
}

/// The frames of a batch, and the version of the store after it.
pub(super) struct Batch {
    frames: Vec<u8>,
    pub(super) version: Version,
}

impl Batch {
    /// Creates the batch that follows the version `previous`. `counts` are the counts after its changes.
    pub(super) fn new(previous: Version, counts: &Counts, effects: &[Effect]) -> Self {
        // If a name is changed several times, only its last change is written. Otherwise, a batch in which
        // many members join a group would contain the whole group many times.
        let mut changed_names = HashSet::new();
        let mut last_effects: Vec<&Effect> = effects
            .iter()
            .rev()
            .filter(|effect| match effect {
                Effect::Bind(context, key, _) | Effect::Unbind(context, key) => {
                    changed_names.insert((*context, key))
                }
                Effect::AddContext(_) | Effect::RemoveContext(_) => true,
            })
            .collect();
        last_effects.reverse();
        let mut parts = vec![Vec::new()];
        for effect in last_effects {
            if parts.last().is_some_and(|part| part.len() >= FRAME_EFFECT_BYTES) {
                parts.push(Vec::new());
            }
            if let Some(part) = parts.last_mut() {
                effect.write(part);
            }
        }
        let chain_checksum =
            parts.iter().fold(previous.chain_checksum, |checksum, part| next_chain_checksum(checksum, part));
        let version = Version { number: previous.number.saturating_add(1), chain_checksum };
        let mut frames = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            write_frame(&mut frames, index + 1 == parts.len(), version, counts, part);
        }
        Self { frames, version }
    }
}

/// The reason why a batch could not be appended to a journal.
pub(super) struct AppendError {
    pub(super) error: io::Error,
    /// True if a part of the batch may be in the journal. If false, the journal is unchanged.
    pub(super) is_unusable: bool,
}

/// A journal that is open for writing.
pub(super) struct Journal {
    file: Box<dyn JournalFile>,
    /// The length of the complete batches in bytes.
    len: u64,
    /// The version of the store after the last batch of the journal.
    version: Version,
    /// The version and the length before the last batch, if that was appended after the journal was opened.
    previous: Option<(Version, u64)>,
    /// The length above which the journal is rewritten.
    max_len: u64,
    /// The time of the first append that is possibly not on disk yet.
    unsynced_since: Option<Instant>,
}

impl Journal {
    /// Opens an existing journal for writing. Cuts off everything after its last complete batch.
    pub(super) fn resume(file: Box<dyn JournalFile>, scan: &Scan) -> io::Result<Self> {
        if !scan.is_complete {
            file.set_len(scan.complete_end)?;
        }
        let (len, version) = (scan.complete_end, scan.version);
        Ok(Self {
            file,
            len,
            version,
            previous: None,
            max_len: max_len(scan.initial_end),
            unsynced_since: None,
        })
    }

    /// Replaces the journal with a new one that has the contents of the database. A failure changes nothing.
    pub(super) fn rewrite(files: &dyn Files, db: &Database) -> Result<Self, Failure> {
        let txn = db.begin_read()?;
        let meta = txn.open_table(super::tables::META)?;
        let counts = Counts::read(&meta)?;
        let counts =
            counts.ok_or_else(|| Failure("the numbers of contexts and bindings are missing".to_owned()))?;
        let version = Version::read(&meta)?;
        let mut file = files.new_journal()?;
        let mut len = MAGIC.len() as u64;
        file.write_all(MAGIC)?;
        let mut effects = Vec::new();
        let mut flush = |effects: &mut Vec<u8>, is_last: bool| -> io::Result<()> {
            let mut out = Vec::with_capacity(PREFIX_BYTES + FRAME_HEAD_BYTES + effects.len());
            write_frame(&mut out, is_last, version, &counts, effects);
            effects.clear();
            len += out.len() as u64;
            file.write_all(&out)
        };
        for entry in txn.open_table(CONTEXTS)?.iter()? {
            let (id, sum) = entry?;
            if context_checksum(id.value()) != sum.value() {
                return Err(Failure(format!("the context {} is damaged", id.value())));
            }
            Effect::AddContext(ContextId(id.value())).write(&mut effects);
            if effects.len() >= FRAME_EFFECT_BYTES {
                flush(&mut effects, false)?;
            }
        }
        for entry in txn.open_table(BINDINGS)?.iter()? {
            let (id, record) = entry?;
            let (context, text) = id.value();
            let damaged = || Failure(format!("a binding of context {context} is damaged"));
            let key = Key::from_text(text).ok_or_else(damaged)?;
            let target = decode_record(context, text, record.value()).ok_or_else(damaged)?;
            Effect::Bind(ContextId(context), key, target).write(&mut effects);
            if effects.len() >= FRAME_EFFECT_BYTES {
                flush(&mut effects, false)?;
            }
        }
        flush(&mut effects, true)?;
        file.sync()?;
        files.replace_journal()?;
        Ok(Self { file, len, version, previous: None, max_len: max_len(len), unsynced_since: None })
    }

    pub(super) fn append(&mut self, batch: &Batch) -> Result<(), AppendError> {
        let written =
            self.file.seek(SeekFrom::Start(self.len)).and_then(|_| self.file.write_all(&batch.frames));
        if let Err(error) = written {
            return Err(AppendError { error, is_unusable: self.file.set_len(self.len).is_err() });
        }
        self.previous = Some((self.version, self.len));
        self.version = batch.version;
        self.len += batch.frames.len() as u64;
        self.unsynced_since.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Removes the last batch from the journal, if the database has the version before it. Returns whether
    /// the journal now has the version of the database.
    pub(super) fn roll_back_to(&mut self, version: Version) -> bool {
        if self.version == version {
            return true;
        }
        let Some((previous, len)) = self.previous.filter(|(previous, _)| *previous == version) else {
            return false;
        };
        if self.file.set_len(len).is_err() {
            return false;
        }
        (self.version, self.len, self.previous) = (previous, len, None);
        true
    }

    pub(super) fn is_too_long(&self) -> bool {
        self.len > self.max_len
    }

    /// After a failed rewrite, postpones the next one until the journal has grown further.
    pub(super) fn postpone_rewrite(&mut self) {
        self.max_len = self.len.saturating_add(MAX_EXCESS_BYTES);
    }

    /// Returns the time at which the journal must be synchronized, or `None` if it is synchronized.
    pub(super) fn sync_time(&self) -> Option<Instant> {
        self.unsynced_since.map(|since| since + SYNC_DELAY)
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync()?;
        self.unsynced_since = None;
        Ok(())
    }
}

/// A summary of a journal, obtained without storing its contents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// The version of the store after the last complete batch, or the default if there is no complete batch.
    pub(super) version: Version,
    /// The offset of the end of the last complete batch.
    pub(super) complete_end: u64,
    /// The offset of the end of the initial part.
    pub(super) initial_end: u64,
    /// The offset of the end of the batch after which the store has the version that is searched for.
    pub(super) searched_version_end: Option<u64>,
    /// The number of complete batches after `searched_version_end`.
    pub(super) batches_after_searched_version: u64,
    /// True if the file is not empty and ends with a complete batch.
    pub(super) is_complete: bool,
}

impl Scan {
    /// Reads a journal and looks for the batch that leads to version `searched`.
    pub(super) fn read(file: &mut dyn JournalFile, searched: Version) -> io::Result<Self> {
        let (mut scan, mut ends_with_batch) = (Self::default(), false);
        let reached_end = read_frames(file, |head, _, end| {
            ends_with_batch = head.is_last;
            if head.is_last {
                if scan.complete_end == 0 {
                    scan.initial_end = end;
                }
                (scan.version, scan.complete_end) = (head.version, end);
                scan.batches_after_searched_version += 1;
                if head.version == searched {
                    (scan.searched_version_end, scan.batches_after_searched_version) = (Some(end), 0);
                }
            }
            true
        })?;
        scan.is_complete = reached_end && ends_with_batch;
        Ok(scan)
    }
}

/// The readable contents of a journal or of a database.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) contexts: BTreeSet<u64>,
    pub(super) bindings: BTreeMap<(u64, String), Target>,
    pub(super) counts: Option<Counts>,
    pub(super) version: Version,
    /// True if nothing is damaged, and the numbers of entries are those in `counts`.
    pub(super) is_complete: bool,
}

impl Contents {
    /// Reads a journal up to the first damaged byte.
    pub(super) fn read(file: &mut dyn JournalFile) -> io::Result<Self> {
        let mut contents = Self::default();
        // The effects of a batch whose last frame has not been read yet.
        let mut pending = Vec::new();
        let mut has_complete_batch = false;
        let reached_end = read_frames(file, |head, effects, _| {
            let Some(mut effects) = decode_effects(effects) else { return false };
            pending.append(&mut effects);
            if head.is_last {
                pending.drain(..).for_each(|effect| contents.apply(effect));
                (contents.counts, contents.version) = (Some(head.counts), head.version);
                has_complete_batch = true;
            }
            true
        })?;
        contents.is_complete = reached_end
            && pending.is_empty()
            && contents.counts.is_some_and(|counts| {
                counts.contexts == contents.contexts.len() as u64
                    && counts.bindings == contents.bindings.len() as u64
            });
        if !has_complete_batch {
            // The initial part is incomplete. Its entries belong to one version, so they can be used.
            pending.into_iter().for_each(|effect| contents.apply(effect));
        }
        Ok(contents)
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::AddContext(ContextId(id)) => {
                self.contexts.insert(id);
            }
            Effect::RemoveContext(ContextId(id)) => {
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

/// Returns the effects of the batch that starts at the offset `start`, with the counts and the version after
/// it. Returns `None` if the batch is incomplete or damaged.
pub(super) fn read_batch_at(
    file: &mut dyn JournalFile,
    start: u64,
) -> io::Result<Option<(Vec<Effect>, Counts, Version)>> {
    let (mut all, mut complete) = (Vec::new(), None);
    read_frames(file, |head, effects, end| {
        if end <= start {
            return true;
        }
        let Some(mut effects) = decode_effects(effects) else { return false };
        all.append(&mut effects);
        if head.is_last {
            complete = Some((head.counts, head.version));
        }
        !head.is_last
    })?;
    Ok(complete.map(|(counts, version)| (all, counts, version)))
}

fn decode_effects(mut bytes: &[u8]) -> Option<Vec<Effect>> {
    let mut effects = Vec::new();
    while !bytes.is_empty() {
        effects.push(Effect::read(&mut bytes)?);
    }
    Some(effects)
}

/// The fields of a frame before its effects.
struct FrameHead {
    /// True in the last frame of a batch.
    is_last: bool,
    version: Version,
    counts: Counts,
}

/// Calls `on_frame` with the head, the effects and the end offset of each frame. Stops at a damaged frame, or
/// when `on_frame` returns false. Returns whether all frames of the file were read.
fn read_frames(
    file: &mut dyn JournalFile,
    mut on_frame: impl FnMut(FrameHead, &[u8], u64) -> bool,
) -> io::Result<bool> {
    let len = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(0))?;
    let mut file = BufReader::with_capacity(256 * 1024, file);
    let mut magic = [0; MAGIC.len()];
    let mut position = MAGIC.len() as u64;
    if len < position {
        return Ok(false);
    }
    file.read_exact(&mut magic)?;
    if magic != *MAGIC {
        return Ok(false);
    }
    let mut content = Vec::new();
    while len - position >= PREFIX_BYTES as u64 {
        let mut head = [0; PREFIX_BYTES];
        file.read_exact(&mut head)?;
        let mut fields = &head[..];
        let (content_len, sum) = (fields.get_u32(), fields.get_u32());
        if u64::from(content_len) > len - position - PREFIX_BYTES as u64
            || (content_len as usize) < FRAME_HEAD_BYTES
        {
            return Ok(false);
        }
        content.resize(content_len as usize, 0);
        file.read_exact(&mut content)?;
        let mut actual_sum = crc32fast::Hasher::new();
        actual_sum.update(&content_len.to_be_bytes());
        actual_sum.update(&content);
        if actual_sum.finalize() != sum {
            return Ok(false);
        }
        let mut fields = &content[..];
        let is_last = fields.get_u8() == 1;
        let version = Version { number: fields.get_u64(), chain_checksum: fields.get_u64() };
        let (contexts, bindings, next_context) = (fields.get_u64(), fields.get_u64(), fields.get_u64());
        let counts = Counts { format: super::tables::FORMAT, contexts, bindings, next_context };
        let end = position + PREFIX_BYTES as u64 + u64::from(content_len);
        if !on_frame(FrameHead { is_last, version, counts }, fields, end) {
            return Ok(false);
        }
        position = end;
    }
    Ok(position == len)
}
