//! The tables of a file and the encoding of their entries.

use std::ops::Bound as Edge;

use redb::{Database, ReadableTable, Table, TableDefinition};
use zorb::cos_naming::BindingType;

use super::super::record::checksum;
use super::super::{ContextId, Target};
use super::Broken;

/// The format number in [`META`]. It changes with anything that this code would read incorrectly.
pub(super) const FORMAT: u64 = 2;

/// The previous format, without [`Version`]. The first change converts it to the current one.
pub(super) const UNVERSIONED: u64 = 1;

/// Numbers by name: see [`Counts`].
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// The checksums of the numbers of contexts, by number.
pub(super) const CONTEXTS: TableDefinition<'_, u64, u32> = TableDefinition::new("contexts");
/// Bindings by context and [`Key`](super::Key), each as a [`record`].
pub(super) const BINDINGS: TableDefinition<'_, (u64, &str), &[u8]> = TableDefinition::new("bindings");

/// The numbers of entries, which are compared with what is read later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) format: u64,
    pub(super) contexts: u64,
    pub(super) bindings: u64,
    /// The number of the next new context.
    pub(super) next: u64,
}

impl Counts {
    pub(super) const EMPTY: Self = Self { format: FORMAT, contexts: 1, bindings: 0, next: 1 };

    /// Reads the numbers. Returns `None` if some are missing.
    pub(super) fn read(
        table: &impl ReadableTable<&'static str, u64>,
    ) -> Result<Option<Self>, redb::StorageError> {
        let number = |name| Ok::<_, redb::StorageError>(table.get(name)?.map(|number| number.value()));
        let numbers = (number("format")?, number("contexts")?, number("bindings")?, number("next")?);
        let (Some(format), Some(contexts), Some(bindings), Some(next)) = numbers else { return Ok(None) };
        Ok(Some(Self { format, contexts, bindings, next }))
    }

    /// Writes the numbers in the current format.
    pub(super) fn write(&self, table: &mut Table<'_, &'static str, u64>) -> Result<(), redb::StorageError> {
        let Self { contexts, bindings, next, .. } = *self;
        for (name, number) in
            [("format", FORMAT), ("contexts", contexts), ("bindings", bindings), ("next", next)]
        {
            table.insert(name, number)?;
        }
        Ok(())
    }
}

/// The history of changes of a store, by which the database and the journal are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Version {
    /// The number of batches.
    pub(super) number: u64,
    /// A checksum of all batches.
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
pub(super) fn create(db: &Database) -> Result<(), Broken> {
    let txn = db.begin_write()?;
    {
        let mut meta = txn.open_table(META)?;
        Counts::EMPTY.write(&mut meta)?;
        Version::default().write(&mut meta)?;
    }
    txn.open_table(CONTEXTS)?.insert(ContextId::ROOT.0, seal(ContextId::ROOT.0))?;
    txn.open_table(BINDINGS)?;
    txn.commit()?;
    Ok(())
}

/// An end of a range of bindings.
type Place<'a> = Edge<(u64, &'a str)>;

/// Returns the range of all bindings of a context after a key.
pub(super) fn behind(context: ContextId, key: Option<&str>) -> (Place<'_>, Place<'_>) {
    let begin = match key {
        Some(key) => Edge::Excluded((context.0, key)),
        None => Edge::Included((context.0, "")),
    };
    (begin, Edge::Excluded((context.0.saturating_add(1), "")))
}

/// Returns a target after a checksum of the target and its name. The checksum is needed because the database
/// does not verify that it reads what it wrote.
pub(super) fn record(context: u64, key: &str, target: &Target) -> Vec<u8> {
    let octets = target.write();
    let mut record = checksum(context, key, &octets).to_be_bytes().to_vec();
    record.extend_from_slice(&octets);
    record
}

/// Decodes a record. Returns `None` if it is not what was written.
pub(super) fn open_record(context: u64, key: &str, record: &[u8]) -> Option<Target> {
    let (sum, octets) = record.split_first_chunk()?;
    (u32::from_be_bytes(*sum) == checksum(context, key, octets)).then(|| Target::read(octets))?
}

/// Returns the type of a record's target, without reading all of it.
pub(super) fn kind_of(record: &[u8]) -> BindingType {
    match record.get(4) {
        Some(1 | 2) => BindingType::Ncontext,
        _ => BindingType::Nobject,
    }
}

/// Returns the value stored for the number of a context.
pub(super) fn seal(context: u64) -> u32 {
    checksum(context, "", &[])
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_record_with_any_octet_changed_or_missing_is_not_read() {
        let target = Target::Object(Bytes::from_static(b"reference"));
        let whole = record(3, "a\0", &target);
        assert_eq!(open_record(3, "a\0", &whole), Some(target));
        assert_eq!((open_record(4, "a\0", &whole), open_record(3, "b\0", &whole)), (None, None));
        for i in 0..whole.len() {
            let mut changed = whole.clone();
            changed[i] ^= 0x10;
            assert_eq!(open_record(3, "a\0", &changed), None, "octet {i}");
            assert_eq!(open_record(3, "a\0", &whole[..i]), None, "{i} octets");
        }
    }
}
