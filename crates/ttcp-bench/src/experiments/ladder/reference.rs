//! The published tables and those of the protocol, next to zorb's values, which are computed.

use giop_codec::giop::MessageType;
use zorb::__private::v1::{CdrEncode, Encoder};
use zorb::wire::{ByteOrder, Version};
use zorb::{Char, TcKind};

use crate::figures::{Column, Section, Table, published_table};
use crate::literature::Published;

#[allow(missing_docs, dead_code, reason = "generated")]
mod idl {
    zorb::idl! {
        enum Colour { red, green };
    }
}

/// Adds all published tables of the ladder.
pub(super) fn published(section: &mut Section) {
    super::section::as_published(section);
    section.table(beside("iiop98.t5", "Kinds of types", "value", "number here", |table, row| {
        let kind = TcKind::ALL.iter().find(|kind| Some(kind.omg_name()) == table.text(row, "tckind"));
        kind.map(|kind| (*kind as u32).to_string())
    }));
    section.table(beside(
        "iiop98.align",
        "Alignment of basic types",
        "alignment_bytes",
        "here, bytes",
        |table, row| table.text(row, "type").and_then(alignment).map(|octets| octets.to_string()),
    ));
    section.table(beside("iiop98.giop", "Messages of GIOP 1.0", "value", "number here", |table, row| {
        let named = |number: &u8| {
            MessageType::from_wire(*number)
                .is_some_and(|kind| Some(&*format!("{kind:?}")) == table.text(row, "message"))
        };
        (0..=u8::MAX).find(named).map(|number| number.to_string())
    }));
}

/// Adds a published table, with zorb's values after the column to which they belong.
fn beside(
    id: &str,
    caption: &str,
    column: &str,
    title: &str,
    here: impl Fn(&Published, &[&'static str]) -> Option<String>,
) -> Table {
    let (Some(published), mut table) = (Published::of(id), published_table(id, caption)) else {
        return Table::default();
    };
    let Some(place) = published.column(column).map(|place| place + 1) else { return table };
    let place = place.min(table.columns.len());
    table.columns.insert(place, Column::figures(title));
    for (cells, row) in table.rows.iter_mut().zip(&published.rows) {
        cells.insert(place.min(cells.len()), here(&published, row).unwrap_or_else(|| "-".to_owned()));
    }
    table
}

/// Returns the alignment of values of a type.
fn alignment(idl: &str) -> Option<usize> {
    match idl {
        "char" => aligned(&Char(b'x')),
        "octet" => aligned(&7u8),
        "short" => aligned(&7i16),
        "unsigned short" => aligned(&7u16),
        "long" => aligned(&7i32),
        "unsigned long" => aligned(&7u32),
        "float" => aligned(&7f32),
        "double" => aligned(&7f64),
        "boolean" => aligned(&true),
        "enum" => aligned(&idl::Colour::Green),
        _ => None,
    }
}

fn aligned(value: &impl CdrEncode) -> Option<usize> {
    let written = |octets: usize| {
        let mut encoder = Encoder::new(ByteOrder::NATIVE, Version::V1_0);
        (0..octets).for_each(|_| encoder.put_u8(0));
        value.encode(&mut encoder).ok()?;
        Some(encoder.into_bytes().len())
    };
    // After one byte, the value begins at the first multiple of its alignment.
    written(1)?.checked_sub(written(0)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// zorb's values equal the published ones, except in rows that are marked as different.
    #[test]
    fn the_protocol_is_the_published_one() {
        let mut section = Section::new("s", "S");
        published(&mut section);
        let table = |caption: &str| {
            let mut tables = section.blocks.iter().filter_map(|block| match block {
                crate::figures::Block::Table(table) if table.caption.starts_with(caption) => Some(table),
                _ => None,
            });
            tables.next().unwrap_or_else(|| panic!("{caption}"))
        };
        for (caption, here, rows) in
            [("Kinds", "number here", 24), ("Alignment", "here, bytes", 10), ("Messages", "number here", 7)]
        {
            let table = table(caption);
            assert_eq!(table.rows.len(), rows, "{caption}");
            let place = table.columns.iter().position(|column| column.title == here).unwrap();
            for row in table.rows.iter().filter(|row| row[0] != "none") {
                assert_eq!(row[place], row[place - 1], "{caption}: {row:?}");
            }
        }
        let indirection = table("Kinds").rows.last().unwrap();
        assert_eq!((&*indirection[0], &*indirection[2]), ("none", "-"), "the number of no kind");
    }
}
