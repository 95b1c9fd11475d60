//! A report as Markdown, with its charts in separate files.

use std::fmt::Write as _;

use comfy_table::CellAlignment;
use comfy_table::presets::ASCII_MARKDOWN;

use super::{Block, Column, Document, Table};

/// Returns the report. `chart_link` returns the link to a chart from its section's id and its index there.
pub(crate) fn markdown(document: &Document, chart_link: impl Fn(&str, usize) -> String) -> String {
    let mut out = format!("# {}\n", document.title);
    let mut paragraph = |text: &str| {
        let _ = write!(out, "\n{text}\n");
    };
    document.summary.iter().for_each(|text| paragraph(text));
    if !document.caveats.is_empty() {
        paragraph("## Notes on these figures");
        document.caveats.iter().for_each(|text| paragraph(&format!("- {text}")));
    }
    for section in &document.sections {
        paragraph(&format!("## {}", section.title));
        let mut chart_index = 0;
        for block in &section.blocks {
            match block {
                Block::Text(text) => paragraph(text),
                Block::Table(table) => paragraph(&format_table(table)),
                Block::Chart(_) | Block::Bars(_) => {
                    let caption = block.drawing().map(|drawing| drawing.caption().replace(['[', ']'], ""));
                    paragraph(&format!(
                        "![{}]({})",
                        caption.unwrap_or_default(),
                        chart_link(&section.id, chart_index)
                    ));
                    chart_index += 1;
                }
            }
        }
    }
    out
}

/// Formats a table. Cells are padded to the width of their column, so that it is readable on a terminal.
pub(crate) fn format_table(table: &Table) -> String {
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let title = |column: &Column| {
        cell(&if column.is_published {
            format!("{} (published)", column.title)
        } else {
            column.title.clone()
        })
    };
    let mut formatted = comfy_table::Table::new();
    formatted.load_style(ASCII_MARKDOWN);
    formatted.set_header(table.columns.iter().map(title));
    for row in &table.rows {
        formatted.add_row(row.iter().map(|text| cell(text)));
    }
    for (column, formatted) in table.columns.iter().zip(formatted.column_iter_mut()) {
        if column.has_figures {
            formatted.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut out = if table.caption.is_empty() { String::new() } else { format!("{}\n\n", table.caption) };
    for (number, line) in formatted.lines().enumerate() {
        out.push_str(if number == 0 { "" } else { "\n" });
        out.push_str(&if number == 1 { mark_right_aligned(&line, &table.columns) } else { line });
    }
    out
}

/// Marks columns of figures as right-aligned in `rule`, which is the line below the header.
fn mark_right_aligned(rule: &str, columns: &[Column]) -> String {
    let mut columns = columns.iter();
    let ends = rule.trim_matches('|').split('|').map(|part| match columns.next() {
        Some(column) if column.has_figures => format!("{}:", part.get(1..).unwrap_or_default()),
        _ => part.to_owned(),
    });
    format!("|{}|", ends.collect::<Vec<_>>().join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Axis, Chart, Scale, Section, Series};

    #[test]
    fn a_report_has_texts_tables_and_links_to_charts() {
        let mut section = Section::new("speed", "Speed");
        section.text("How fast.");
        section.table(Table {
            caption: "All.".into(),
            columns: vec![Column::words("peer"), Column::figures("Gbit/s"), Column::published("Mbit/s")],
            rows: vec![
                vec!["zorb".into(), "30.1".into(), "-".into()],
                vec!["a|b".into(), "1.5".into(), "80".into()],
            ],
        });
        let axis = || Axis::new("x", Scale::Linear);
        let series = vec![Series::measured("zorb", vec![(1.0, 1.0)])];
        section.chart(Chart { caption: "A [chart]".into(), x: axis(), y: axis(), series });
        let document = Document {
            title: "Report".into(),
            summary: vec!["Short.".into()],
            caveats: vec!["One machine.".into()],
            sections: vec![section],
        };
        let text = markdown(&document, |id, number| format!("charts/{id}-{number}.svg"));
        let wanted = "# Report

Short.

## Notes on these figures

- One machine.

## Speed

How fast.

All.

| peer | Gbit/s | Mbit/s (published) |
|------|-------:|-------------------:|
| zorb |   30.1 |                  - |
| a\\|b |    1.5 |                 80 |

![A chart](charts/speed-0.svg)
";
        assert_eq!(text, wanted);
    }
}
