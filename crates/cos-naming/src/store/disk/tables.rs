//! The tables of the database, and the encoding of their entries.

use std::ops::Bound;

use redb::{Database, ReadableTable, Table, TableDefinition};
use zorb::cos_naming::BindingType;

use super::super::record::checksum;
use super::super::{ContextId, Target};
use super::Failure;

/// The format, as stored in [`META`]. Increase it if the previous code cannot read the new tables.
pub(super) const FORMAT: u64 = 2;

/// The previous format, which has no [`Version`]. The first change converts a file to [`FORMAT`].
pub(super) const UNVERSIONED_FORMAT: u64 = 1;

/// Numbers, by their names: the fields of [`Counts`] and [`Version`].
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// The checksum of each context's number, by that number.
pub(super) const CONTEXTS: TableDefinition<'_, u64, u32> = TableDefinition::new("contexts");
/// Bindings by context and [`Key`](super::Key), each encoded by [`encode_record`].
pub(super) const BINDINGS: TableDefinition<'_, (u64, &str), &[u8]> = TableDefinition::new("bindings");

/// The format of the tables, and their numbers of entries, which are compared with the actual numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) format: u64,
    pub(super) contexts: u64,
    pub(super) bindings: u64,
    pub(super) next_context: u64,
}

impl Counts {
    pub(super) const EMPTY: Self = Self { format: FORMAT, contexts: 1, bindings: 0, next_context: 1 };

    /// Reads the numbers. Returns `None` if some are missing.
    pub(super) fn read(
        table: &impl ReadableTable<&'static str, u64>,
    ) -> Result<Option<Self>, redb::StorageError> {
        let number = |name| Ok::<_, redb::StorageError>(table.get(name)?.map(|number| number.value()));
        let numbers = (number("format")?, number("contexts")?, number("bindings")?, number("next")?);
        let (Some(format), Some(contexts), Some(bindings), Some(next)) = numbers else { return Ok(None) };
        Ok(Some(Self { format, contexts, bindings, next_context: next }))
    }

    pub(super) fn write(&self, table: &mut Table<'_, &'static str, u64>) -> Result<(), redb::StorageError> {
        let Self { contexts, bindings, next_context, .. } = *self;
        for (name, number) in
            [("format", FORMAT), ("contexts", contexts), ("bindings", bindings), ("next", next_context)]
        {
            table.insert(name, number)?;
        }
        Ok(())
    }
}

/// The version of a store. A database and a journal of the same version have the same contents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Version {
    /// The number of batches of changes so far.
    pub(super) number: u64,
    /// A checksum of all batches of changes so far.
    pub(super) chain_checksum: u64,
}

impl Version {
    pub(super) fn read(table: &impl ReadableTable<&'static str, u64>) -> Result<Self, redb::StorageError> {
        let number = |name| Ok::<_, redb::StorageError>(table.get(name)?.map_or(0, |number| number.value()));
        Ok(Self { number: number("number")?, chain_checksum: number("chain")? })
    }

    pub(super) fn write(self, table: &mut Table<'_, &'static str, u64>) -> Result<(), redb::StorageError> {
        table.insert("number", self.number)?;
        table.insert("chain", self.chain_checksum)?;
        Ok(())
    }
}

/// Creates the tables of a new file.
pub(super) fn create(db: &Database) -> Result<(), Failure> {
    let txn = db.begin_write()?;
    {
        let mut meta = txn.open_table(META)?;
        Counts::EMPTY.write(&mut meta)?;
        Version::default().write(&mut meta)?;
    }
    txn.open_table(CONTEXTS)?.insert(ContextId::ROOT.0, context_checksum(ContextId::ROOT.0))?;
    txn.open_table(BINDINGS)?;
    txn.commit()?;
    Ok(())
}

type BindingBound<'a> = Bound<(u64, &'a str)>;

/// Returns the range of a context's bindings in [`BINDINGS`]: all of them, or those after a key.
pub(super) fn bindings_after(context: ContextId, key: Option<&str>) -> (BindingBound<'_>, BindingBound<'_>) {
    let start = match key {
        Some(key) => Bound::Excluded((context.0, key)),
        None => Bound::Included((context.0, "")),
    };
    (start, Bound::Excluded((context.0.saturating_add(1), "")))
}

/// Encodes a binding: a checksum of the context, the name and the target, then the target. The checksum is
/// needed because the database does not verify the data that it reads.
pub(super) fn encode_record(context: u64, key: &str, target: &Target) -> Vec<u8> {
    let target = target.encode();
    let mut record = checksum(context, key, &target).to_be_bytes().to_vec();
    record.extend_from_slice(&target);
    record
}

/// Decodes the target from the result of [`encode_record`]. Returns `None` if the record is damaged.
pub(super) fn decode_record(context: u64, key: &str, record: &[u8]) -> Option<Target> {
    let (sum, target) = record.split_first_chunk()?;
    (u32::from_be_bytes(*sum) == checksum(context, key, target)).then(|| Target::decode(target))?
}

/// Returns the binding type of a record without decoding the target.
pub(super) fn binding_type_of(record: &[u8]) -> BindingType {
    // The kind of the target, after the checksum: see `Target::encode`.
    match record.get(4) {
        Some(1 | 2) => BindingType::Ncontext,
        _ => BindingType::Nobject,
    }
}

pub(super) fn context_checksum(context: u64) -> u32 {
    checksum(context, "", &[])
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_record_with_a_changed_or_missing_byte_is_rejected() {
        let target = Target::Object(Bytes::from_static(b"reference"));
        let whole = encode_record(3, "a\0", &target);
        assert_eq!(decode_record(3, "a\0", &whole), Some(target));
        assert_eq!((decode_record(4, "a\0", &whole), decode_record(3, "b\0", &whole)), (None, None));
        for i in 0..whole.len() {
            let mut changed = whole.clone();
            changed[i] ^= 0x10;
            assert_eq!(decode_record(3, "a\0", &changed), None, "byte {i}");
            assert_eq!(decode_record(3, "a\0", &whole[..i]), None, "{i} bytes");
        }
    }
}
