//! The tables of a file and the encoding of their entries.

use std::ops::Bound;

use redb::{Database, ReadableTable, Table, TableDefinition};
use zorb::cos_naming::BindingType;

use super::super::record::checksum;
use super::super::{ContextId, Target};
use super::Failure;

/// The format in [`META`]. It must be changed whenever the tables change in a way that this code cannot read.
pub(super) const FORMAT: u64 = 2;

/// The previous format, without [`Version`]. The first change converts it to the current one.
pub(super) const UNVERSIONED: u64 = 1;

/// Numbers by name: the fields of [`Counts`] and [`Version`].
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// For each context, by its number, the checksum of the number.
pub(super) const CONTEXTS: TableDefinition<'_, u64, u32> = TableDefinition::new("contexts");
/// Bindings by context and [`Key`](super::Key), each encoded by [`encode_record`].
pub(super) const BINDINGS: TableDefinition<'_, (u64, &str), &[u8]> = TableDefinition::new("bindings");

/// The numbers of entries. When a file is read, they are compared with the actual numbers.
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

/// The version of a store, by which the database and the journal are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) number: u64,
    /// A checksum of all batches so far.
    pub(super) chain: u64,
}

impl Version {
    pub(super) fn read(table: &impl ReadableTable<&'static str, u64>) -> Result<Self, redb::StorageError> {
        let number = |name| Ok::<_, redb::StorageError>(table.get(name)?.map_or(0, |number| number.value()));
        Ok(Self { number: number("number")?, chain: number("chain")? })
    }

    pub(super) fn write(self, table: &mut Table<'_, &'static str, u64>) -> Result<(), redb::StorageError> {
        table.insert("number", self.number)?;
        table.insert("chain", self.chain)?;
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

/// Returns the range of the bindings of a context, all or those after a key.
pub(super) fn bindings_after(context: ContextId, key: Option<&str>) -> (BindingBound<'_>, BindingBound<'_>) {
    let start = match key {
        Some(key) => Bound::Excluded((context.0, key)),
        None => Bound::Included((context.0, "")),
    };
    (start, Bound::Excluded((context.0.saturating_add(1), "")))
}

/// Encodes a target after a checksum of it and its name, because the database does not verify data.
pub(super) fn encode_record(context: u64, key: &str, target: &Target) -> Vec<u8> {
    let target = target.encode();
    let mut record = checksum(context, key, &target).to_be_bytes().to_vec();
    record.extend_from_slice(&target);
    record
}

/// Decodes the result of [`encode_record`]. Returns `None` if it is damaged.
pub(super) fn decode_record(context: u64, key: &str, record: &[u8]) -> Option<Target> {
    let (sum, target) = record.split_first_chunk()?;
    (u32::from_be_bytes(*sum) == checksum(context, key, target)).then(|| Target::decode(target))?
}

/// Returns the binding type of a record without decoding all of it.
pub(super) fn binding_type_of(record: &[u8]) -> BindingType {
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
