//! The tables of a file and what their octets mean.

use std::ops::Bound as Edge;

use redb::{Database, ReadableTable, Table, TableDefinition};
use zorb::cos_naming::BindingType;

use super::super::record::checksum;
use super::super::{ContextId, Target};
use super::Broken;

/// What [`META`] says of the tables below; another number for anything that this code would read wrongly.
pub(super) const FORMAT: u64 = 2;

/// The format before: it has no [`Version`]. The first change writes the current one.
pub(super) const UNVERSIONED: u64 = 1;

/// Numbers by name: see [`Counts`].
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// Contexts by their numbers: the checksum of a number.
pub(super) const CONTEXTS: TableDefinition<'_, u64, u32> = TableDefinition::new("contexts");
/// Bindings by context and [`Key`](super::Key): a [`record`].
pub(super) const BINDINGS: TableDefinition<'_, (u64, &str), &[u8]> = TableDefinition::new("bindings");

/// How much there is: what can be read later is compared with it.
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

    /// `None`: some are missing.
    pub(super) fn read(
        table: &impl ReadableTable<&'static str, u64>,
    ) -> Result<Option<Self>, redb::StorageError> {
        let number = |name| Ok::<_, redb::StorageError>(table.get(name)?.map(|number| number.value()));
        let numbers = (number("format")?, number("contexts")?, number("bindings")?, number("next")?);
        let (Some(format), Some(contexts), Some(bindings), Some(next)) = numbers else { return Ok(None) };
        Ok(Some(Self { format, contexts, bindings, next }))
    }

    /// Writes them as those of the current format.
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

/// Which changes a store has had: the database and the journal are compared by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Version {
    /// How many batches.
    pub(super) number: u64,
    /// A checksum of all of them.
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

/// Makes the tables of a new file.
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

/// All bindings of a context behind a key.
pub(super) fn behind(context: ContextId, key: Option<&str>) -> (Place<'_>, Place<'_>) {
    let begin = match key {
        Some(key) => Edge::Excluded((context.0, key)),
        None => Edge::Included((context.0, "")),
    };
    (begin, Edge::Excluded((context.0.saturating_add(1), "")))
}

/// A target behind a checksum of itself and of where it is bound: the database does not look whether what it reads is what it wrote.
pub(super) fn record(context: u64, key: &str, target: &Target) -> Vec<u8> {
    let octets = target.write();
    let mut record = checksum(context, key, &octets).to_be_bytes().to_vec();
    record.extend_from_slice(&octets);
    record
}

/// `None`: it is not what was written.
pub(super) fn open_record(context: u64, key: &str, record: &[u8]) -> Option<Target> {
    let (sum, octets) = record.split_first_chunk()?;
    (u32::from_be_bytes(*sum) == checksum(context, key, octets)).then(|| Target::read(octets))?
}

/// What a record is of, without reading it whole.
pub(super) fn kind_of(record: &[u8]) -> BindingType {
    match record.get(4) {
        Some(1 | 2) => BindingType::Ncontext,
        _ => BindingType::Nobject,
    }
}

/// What stands beside the number of a context.
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
