//! A report as one self-contained HTML page: charts inline, no script, light and dark.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::chart::DrawingError;
use super::{Block, Document, Drawing, Section, Table};

const STYLE: &str = include_str!("page.css");

/// Returns the page.
///
/// # Errors
/// A chart has a value that cannot be placed.
pub fn page(document: &Document) -> Result<String, DrawingError> {
    let sections = document.sections.iter().map(of_section).collect::<Result<Vec<_>, _>>()?;
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Without this, browsers request an icon.
                link rel="icon" href="data:,";
                title { (document.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (document.title) }
                    @for text in &document.summary { p { (text) } }
                }
                nav aria-label="Sections" {
                    ul {
                        @for section in &document.sections {
                            li { a href={ "#" (section.id) } { (section.title) } }
                        }
                    }
                }
                main {
                    @if !document.caveats.is_empty() {
                        section #caveats {
                            h2 { "What to know of these figures" }
                            ul { @for text in &document.caveats { li { (text) } } }
                        }
                    }
                    @for section in &sections { (section) }
                }
            }
        }
    };
    Ok(markup.into_string())
}

fn of_section(section: &Section) -> Result<Markup, DrawingError> {
    let blocks = section
        .blocks
        .iter()
        .map(|block| {
            Ok(match block {
                Block::Text(text) => html! { p { (text) } },
                Block::Table(table) => of_table(table),
                Block::Chart(chart) => drawn(&Drawing::Chart(chart))?,
                Block::Bars(bars) => drawn(&Drawing::Bars(bars))?,
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(html! {
        section id=(section.id) {
            h2 { (section.title) }
            @for block in &blocks { (block) }
        }
    })
}

fn drawn(drawing: &Drawing<'_>) -> Result<Markup, DrawingError> {
    let svg = drawing.inline()?;
    Ok(html! {
        figure {
            div.wide { (PreEscaped(svg)) }
            figcaption { (drawing.caption()) }
        }
    })
}

fn of_table(table: &Table) -> Markup {
    let class = |place: usize| match table.columns.get(place) {
        Some(column) if column.published => "figure published",
        Some(column) if column.figures => "figure",
        _ => "",
    };
    // No caption element: it would be as wide as the table, and be cut off where the table is scrolled.
    html! {
        figure {
            figcaption { (table.caption) }
            div.wide tabindex="0" role="region" aria-label=(table.caption) {
                table {
                    thead {
                        tr {
                            @for (place, column) in table.columns.iter().enumerate() {
                                th scope="col" class=(class(place)) {
                                    (column.title)
                                    @if column.published { br; small { "published" } }
                                }
                            }
                        }
                    }
                    tbody {
                        @for row in &table.rows {
                            tr { @for (place, cell) in row.iter().enumerate() { td class=(class(place)) { (cell) } } }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Axis, Chart, Column, Scale, Series};

    #[test]
    fn a_page_stands_alone_and_escapes_what_it_shows() {
        let mut section = Section::new("speed", "Speed & <more>");
        section.table(Table {
            caption: "All".into(),
            columns: vec![Column::words("peer"), Column::published("Mbit/s")],
            rows: vec![vec!["<script>".into(), "80".into()]],
        });
        let axis = || Axis::new("x", Scale::Linear);
        let series = vec![Series::measured("zorb", vec![(1.0, 1.0)])];
        section.chart(Chart { caption: "C".into(), x: axis(), y: axis(), series });
        let page =
            page(&Document { title: "T".into(), sections: vec![section], ..Document::default() }).unwrap();
        assert!(page.contains("Speed &amp; &lt;more&gt;") && page.contains("&lt;script&gt;"), "{page}");
        assert!(page.contains("<svg") && page.contains("prefers-color-scheme: dark"), "{page}");
        assert!(
            !page.contains("<script") && !page.contains("http://") || page.contains("www.w3.org"),
            "{page}"
        );
        for outside in ["<link rel=\"stylesheet\"", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
