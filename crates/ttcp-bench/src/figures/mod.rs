//! The elements of a report, independent of the output format: sections of texts, tables and charts.
//!
//! [`page`] renders a report as one HTML page, [`markdown`] as a Markdown file with separate charts, and
//! [`chart`] and [`bars`] draw charts as SVG. [`published_table`] returns the tables of the literature.

pub mod bars;
pub mod chart;
pub mod markdown;
pub mod page;
mod published;

pub use published::{published_rows, published_table};

/// A whole report.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// The title.
    pub title: String,
    /// The paragraphs above all sections.
    pub summary: Vec<String>,
    /// Notes on the validity of the figures.
    pub caveats: Vec<String>,
    /// The sections in their order.
    pub sections: Vec<Section>,
}

/// A section of a report.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// The target of links, one word.
    pub id: String,
    /// The heading.
    pub title: String,
    /// The contents in their order.
    pub blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Debug, Clone)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// A table.
    Table(Table),
    /// A line chart.
    Chart(Chart),
    /// A bar chart.
    Bars(Bars),
}

/// A table. The text of an absent figure is `-`.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// The caption; may be empty.
    pub caption: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows of cells.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The heading, with the unit.
    pub title: String,
    /// Whether the column contains figures, which are right-aligned.
    pub has_figures: bool,
    /// Whether the figures are published ones, not measured ones.
    pub is_published: bool,
}

/// A line chart.
#[derive(Debug, Clone)]
pub struct Chart {
    /// The caption.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

/// A chart of horizontal bars. Each bar consists of the same parts.
#[derive(Debug, Clone)]
pub struct Bars {
    /// The caption.
    pub caption: String,
    /// The quantity that the lengths represent, with the unit.
    pub label: String,
    /// The names of the parts, from left to right.
    pub parts: Vec<String>,
    /// The bars, with their names and the lengths of their parts.
    pub bars: Vec<(String, Vec<f64>)>,
}

/// A drawing of a section.
#[derive(Debug, Clone, Copy)]
pub enum Drawing<'s> {
    /// A line chart.
    Chart(&'s Chart),
    /// A bar chart.
    Bars(&'s Bars),
}

/// An axis of a chart.
#[derive(Debug, Clone)]
pub struct Axis {
    /// The quantity, with the unit.
    pub label: String,
    /// The spacing of its values.
    pub scale: Scale,
}

/// The spacing of values along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Linear, starting at zero.
    Linear,
    /// Logarithmic with powers of two, for bytes.
    Bytes,
    /// Logarithmic with powers of ten.
    Decades,
}

/// A line of a chart.
#[derive(Debug, Clone)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The points from left to right.
    pub points: Vec<(f64, f64)>,
    /// Whether the points are published figures, not measured ones. The line is then dashed.
    pub is_published: bool,
}

impl Block {
    /// Returns the block's drawing, if it has one.
    pub fn drawing(&self) -> Option<Drawing<'_>> {
        match self {
            Block::Chart(chart) => Some(Drawing::Chart(chart)),
            Block::Bars(bars) => Some(Drawing::Bars(bars)),
            Block::Text(_) | Block::Table(_) => None,
        }
    }
}

impl Drawing<'_> {
    /// Returns the caption.
    pub fn caption(&self) -> &str {
        match self {
            Drawing::Chart(chart) => &chart.caption,
            Drawing::Bars(bars) => &bars.caption,
        }
    }

    /// Returns an SVG element for a page.
    ///
    /// # Errors
    /// A value cannot be drawn.
    pub fn inline(&self) -> Result<String, chart::DrawingError> {
        match self {
            Drawing::Chart(chart) => chart::inline(chart),
            Drawing::Bars(bars) => bars::inline(bars),
        }
    }

    /// Returns a standalone SVG file, which uses the reader's light or dark colour scheme.
    ///
    /// # Errors
    /// The errors of [`inline`](Self::inline).
    pub fn file(&self) -> Result<String, chart::DrawingError> {
        self.inline().map(|svg| chart::standalone(&svg))
    }
}

impl Table {
    /// Returns a table without caption. `titles` are separated by `|`. All columns except the first are
    /// figures.
    pub fn of_figures(titles: &str, rows: Vec<Vec<String>>) -> Table {
        let mut columns: Vec<Column> = titles.split('|').map(Column::figures).collect();
        if let Some(first) = columns.first_mut() {
            first.has_figures = false;
        }
        Table { caption: String::new(), columns, rows }
    }
}

impl Column {
    /// Returns a column of words.
    pub fn words(title: impl Into<String>) -> Column {
        Column { title: title.into(), has_figures: false, is_published: false }
    }

    /// Returns a column of measured figures.
    pub fn figures(title: impl Into<String>) -> Column {
        Column { title: title.into(), has_figures: true, is_published: false }
    }

    /// Returns a column of published figures.
    pub fn published(title: impl Into<String>) -> Column {
        Column { title: title.into(), has_figures: true, is_published: true }
    }
}

impl Axis {
    /// Returns an axis with this label and scale.
    pub fn new(label: impl Into<String>, scale: Scale) -> Axis {
        Axis { label: label.into(), scale }
    }
}

impl Series {
    /// Returns a line of measured points.
    pub fn measured(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, is_published: false }
    }

    /// Returns a line of published points.
    pub fn published(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, is_published: true }
    }
}

impl Section {
    /// Returns an empty section.
    pub fn new(id: impl Into<String>, title: impl Into<String>) -> Section {
        Section { id: id.into(), title: title.into(), blocks: Vec::new() }
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Text(text.into()));
    }

    /// Adds a table, unless it has no rows.
    pub fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
    }

    /// Adds a line chart, unless it has no points.
    pub fn chart(&mut self, chart: Chart) {
        if chart.series.iter().any(|series| !series.points.is_empty()) {
            self.blocks.push(Block::Chart(chart));
        }
    }

    /// Adds a bar chart, unless it has no bars.
    pub fn bars(&mut self, bars: Bars) {
        if !bars.bars.is_empty() {
            self.blocks.push(Block::Bars(bars));
        }
    }

    /// Returns all charts of the section.
    pub fn drawings(&self) -> impl Iterator<Item = Drawing<'_>> {
        self.blocks.iter().filter_map(Block::drawing)
    }

    /// Returns the line charts of the section.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Chart(chart) => Some(chart),
            _ => None,
        })
    }
}

/// Formats a figure with about three significant digits and without exponent; `None` as `-`.
pub fn format_figure(figure: Option<f64>) -> String {
    match figure {
        None => "-".to_owned(),
        Some(f) if f.abs() >= 99.95 => format!("{f:.0}"),
        Some(f) if f.abs() >= 9.995 => format!("{f:.1}"),
        Some(f) if f == 0.0 || f.abs() >= 0.01 => format!("{f:.2}"),
        Some(f) => format!("{f:.4}"),
    }
}

/// Formats a number of bytes in the largest binary unit without fraction, such as `64 KiB`.
pub fn format_bytes(count: u64) -> String {
    for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if count >> shift > 0 && count & ((1 << shift) - 1) == 0 {
            return format!("{} {unit}", count >> shift);
        }
    }
    format!("{count} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_formatted_with_three_digits() {
        let all = [0.0, 0.0012, 0.5, 9.996, 20.94, 99.96, 48_211.4].map(|f| format_figure(Some(f)));
        assert_eq!(all, ["0.00", "0.0012", "0.50", "10.0", "20.9", "100", "48211"]);
        assert_eq!(format_figure(None), "-");
    }

    #[test]
    fn bytes_are_formatted_in_the_largest_unit_without_fraction() {
        assert_eq!(
            [1, 1024, 1536, 65_536, 1 << 20].map(format_bytes),
            ["1 B", "1 KiB", "1536 B", "64 KiB", "1 MiB"]
        );
    }

    #[test]
    fn a_section_ignores_empty_tables_and_charts() {
        let mut section = Section::new("a", "A");
        section.table(Table::default());
        let axis = || Axis::new("x", Scale::Linear);
        let series = vec![Series::measured("none", Vec::new())];
        section.chart(Chart { caption: "c".into(), x: axis(), y: axis(), series });
        assert!(section.blocks.is_empty());
    }
}
