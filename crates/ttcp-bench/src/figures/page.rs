//! A report as one self-contained HTML page: inline charts, no scripts, a light and a dark colour scheme.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::chart::DrawingError;
use super::{Block, Document, Drawing, Section, Table};

const STYLE: &str = include_str!("page.css");

pub(crate) fn page(document: &Document) -> Result<String, DrawingError> {
    let sections = document.sections.iter().map(section_markup).collect::<Result<Vec<_>, _>>()?;
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Without this link, browsers request an icon.
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
                            h2 { "Notes on these figures" }
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

fn section_markup(section: &Section) -> Result<Markup, DrawingError> {
    let blocks = section
        .blocks
        .iter()
        .map(|block| {
            Ok(match block {
                Block::Text(text) => html! { p { (text) } },
                Block::Table(table) => table_markup(table),
                Block::Chart(chart) => drawing_markup(&Drawing::Chart(chart))?,
                Block::Bars(bars) => drawing_markup(&Drawing::Bars(bars))?,
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

fn drawing_markup(drawing: &Drawing<'_>) -> Result<Markup, DrawingError> {
    let svg = drawing.svg_element()?;
    Ok(html! {
        figure {
            div.wide { (PreEscaped(svg)) }
            figcaption { (drawing.caption()) }
        }
    })
}

fn table_markup(table: &Table) -> Markup {
    let class = |index: usize| match table.columns.get(index) {
        Some(column) if column.is_published => "figure published",
        Some(column) if column.has_figures => "figure",
        _ => "",
    };
    // A `caption` element would be as wide as the table, and cut off if a wide table is scrolled.
    html! {
        figure {
            figcaption { (table.caption) }
            div.wide tabindex="0" role="region" aria-label=(table.caption) {
                table {
                    thead {
                        tr {
                            @for (index, column) in table.columns.iter().enumerate() {
                                th scope="col" class=(class(index)) {
                                    (column.title)
                                    @if column.is_published { br; small { "published" } }
                                }
                            }
                        }
                    }
                    tbody {
                        @for row in &table.rows {
                            tr { @for (index, cell) in row.iter().enumerate() { td class=(class(index)) { (cell) } } }
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
    fn a_page_is_self_contained_and_escapes_its_texts() {
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
        for external in ["<link rel=\"stylesheet\"", "src=", "@import", "url("] {
            assert!(!page.contains(external), "{external}");
        }
    }
}
