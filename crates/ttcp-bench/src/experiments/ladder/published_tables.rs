//! Published tables. Some have an additional column with the values of zorb.

use giop_codec::giop::MessageType;
use zorb::__private::v1::{CdrEncode, Encoder};
use zorb::wire::{ByteOrder, Version};
use zorb::{Char, TcKind};

use crate::figures::{Column, Section, Table, published_table};
use crate::literature::PublishedTable;

#[allow(missing_docs, dead_code, reason = "generated")]
mod idl {
    zorb::idl! {
        enum Colour { red, green };
    }
}

pub(super) fn add_published(section: &mut Section) {
    super::section::add_literature(section);
    section.table(with_own_values("iiop98.t5", "Kinds of types", "value", "number in zorb", |table, row| {
        let kind = TcKind::ALL.iter().find(|kind| Some(kind.omg_name()) == table.text(row, "tckind"));
        kind.map(|kind| (*kind as u32).to_string())
    }));
    section.table(with_own_values(
        "iiop98.align",
        "Alignment of basic types",
        "alignment_bytes",
        "in zorb, bytes",
        |table, row| table.text(row, "type").and_then(alignment).map(|bytes| bytes.to_string()),
    ));
    section.table(with_own_values(
        "iiop98.giop",
        "Messages of GIOP 1.0",
        "value",
        "number in zorb",
        |table, row| {
            let is_named = |number: &u8| {
                MessageType::from_wire(*number)
                    .is_some_and(|kind| Some(&*format!("{kind:?}")) == table.text(row, "message"))
            };
            (0..=u8::MAX).find(is_named).map(|number| number.to_string())
        },
    ));
}

/// Returns a published table with zorb's values in an additional column after `column`.
fn with_own_values(
    id: &str,
    caption: &str,
    column: &str,
    title: &str,
    own_value: impl Fn(&PublishedTable, &[&'static str]) -> Option<String>,
) -> Table {
    let (Some(published), mut table) = (PublishedTable::of(id), published_table(id, caption)) else {
        return Table::default();
    };
    let Some(index) = published.column(column).map(|index| index + 1) else { return table };
    let index = index.min(table.columns.len());
    table.columns.insert(index, Column::figures(title));
    for (cells, row) in table.rows.iter_mut().zip(&published.rows) {
        cells.insert(index.min(cells.len()), own_value(&published, row).unwrap_or_else(|| "-".to_owned()));
    }
    table
}

/// Returns the alignment, in bytes, with which zorb encodes an IDL type.
fn alignment(idl: &str) -> Option<usize> {
    match idl {
        "char" => alignment_of(&Char(b'x')),
        "octet" => alignment_of(&7u8),
        "short" => alignment_of(&7i16),
        "unsigned short" => alignment_of(&7u16),
        "long" => alignment_of(&7i32),
        "unsigned long" => alignment_of(&7u32),
        "float" => alignment_of(&7f32),
        "double" => alignment_of(&7f64),
        "boolean" => alignment_of(&true),
        "enum" => alignment_of(&idl::Colour::Green),
        _ => None,
    }
}

fn alignment_of(value: &impl CdrEncode) -> Option<usize> {
    let encoded_bytes = |bytes_before: usize| {
        let mut encoder = Encoder::new(ByteOrder::NATIVE, Version::V1_0);
        (0..bytes_before).for_each(|_| encoder.put_u8(0));
        value.encode(&mut encoder).ok()?;
        Some(encoder.into_bytes().len())
    };
    // After one byte, the value begins at the first multiple of its alignment.
    encoded_bytes(1)?.checked_sub(encoded_bytes(0)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_zorb_equal_the_published_ones() {
        let mut section = Section::new("s", "S");
        add_published(&mut section);
        let table = |caption: &str| {
            let mut tables = section.blocks.iter().filter_map(|block| match block {
                crate::figures::Block::Table(table) if table.caption.starts_with(caption) => Some(table),
                _ => None,
            });
            tables.next().unwrap_or_else(|| panic!("{caption}"))
        };
        for (caption, title, rows) in [
            ("Kinds", "number in zorb", 24),
            ("Alignment", "in zorb, bytes", 10),
            ("Messages", "number in zorb", 7),
        ] {
            let table = table(caption);
            assert_eq!(table.rows.len(), rows, "{caption}");
            let index = table.columns.iter().position(|column| column.title == title).unwrap();
            for row in table.rows.iter().filter(|row| row[0] != "none") {
                assert_eq!(row[index], row[index - 1], "{caption}: {row:?}");
            }
        }
        let indirection = table("Kinds").rows.last().unwrap();
        assert_eq!((&*indirection[0], &*indirection[2]), ("none", "-"), "no kind has this number");
    }
}
