//! The elements of a report: sections of texts, tables and charts, independent of the output format.
//!
//! [`page`] renders them as one HTML page, [`markdown`] as a Markdown file with separate charts, and
//! [`chart`] and [`bars`] draw as SVG. [`published_table`] contains the tables of the literature unchanged.

pub mod bars;
pub mod chart;
pub mod markdown;
pub mod page;
mod published;

pub use published::{published_rows, published_table};

/// A whole report.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// Its title.
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
    /// The target of links: a word.
    pub id: String,
    /// The heading.
    pub title: String,
    /// Its contents.
    pub blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Debug, Clone)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// A table.
    Table(Table),
    /// A chart.
    Chart(Chart),
    /// A chart of bars.
    Bars(Bars),
}

/// A table. An absent figure is shown as `-`.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Its caption.
    pub caption: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows of cells.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its heading, with the unit.
    pub title: String,
    /// Whether it contains figures, which are right-aligned.
    pub figures: bool,
    /// Whether these are published figures, not measured ones.
    pub published: bool,
}

/// A chart of lines.
#[derive(Debug, Clone)]
pub struct Chart {
    /// Its caption.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

/// A chart of bars, one below the other, each made of the same parts.
#[derive(Debug, Clone)]
pub struct Bars {
    /// Its caption.
    pub caption: String,
    /// What the lengths measure, with the unit.
    pub label: String,
    /// The names of the parts, from left to right.
    pub parts: Vec<String>,
    /// The bars, with their names and the lengths of their parts.
    pub bars: Vec<(String, Vec<f64>)>,
}

/// A drawing of a section.
#[derive(Debug, Clone, Copy)]
pub enum Drawing<'s> {
    /// A chart of lines.
    Chart(&'s Chart),
    /// A chart of bars.
    Bars(&'s Bars),
}

/// An axis of a chart.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What it measures, with the unit.
    pub label: String,
    /// The spacing of its values.
    pub scale: Scale,
}

/// The spacing of values along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Linear, from zero.
    Linear,
    /// Logarithmic, a power of two per step, for bytes.
    Bytes,
    /// Logarithmic, a power of ten per step.
    Decades,
}

/// A line of a chart.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points from left to right.
    pub points: Vec<(f64, f64)>,
    /// Whether these are published figures, not measured ones: its line is dashed.
    pub published: bool,
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
    /// Returns its caption.
    pub fn caption(&self) -> &str {
        match self {
            Drawing::Chart(chart) => &chart.caption,
            Drawing::Bars(bars) => &bars.caption,
        }
    }

    /// Returns an SVG element for a page.
    ///
    /// # Errors
    /// One of its values cannot be placed.
    pub fn inline(&self) -> Result<String, chart::DrawingError> {
        match self {
            Drawing::Chart(chart) => chart::inline(chart),
            Drawing::Bars(bars) => bars::inline(bars),
        }
    }

    /// Returns a standalone SVG file that follows the reader's choice of light or dark.
    ///
    /// # Errors
    /// The errors of [`inline`](Self::inline).
    pub fn file(&self) -> Result<String, chart::DrawingError> {
        self.inline().map(|svg| chart::alone(&svg))
    }
}

impl Column {
    /// Returns a column of words.
    pub fn words(title: impl Into<String>) -> Column {
        Column { title: title.into(), figures: false, published: false }
    }

    /// Returns a column of measured figures.
    pub fn figures(title: impl Into<String>) -> Column {
        Column { title: title.into(), figures: true, published: false }
    }

    /// Returns a column of published figures.
    pub fn published(title: impl Into<String>) -> Column {
        Column { title: title.into(), figures: true, published: true }
    }
}

impl Axis {
    /// Returns an axis.
    pub fn new(label: impl Into<String>, scale: Scale) -> Axis {
        Axis { label: label.into(), scale }
    }
}

impl Series {
    /// Returns a line of measured points.
    pub fn measured(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, published: false }
    }

    /// Returns a line of published points.
    pub fn published(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, published: true }
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

    /// Adds a table, unless it has no row.
    pub fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
    }

    /// Adds a chart, unless it has no point.
    pub fn chart(&mut self, chart: Chart) {
        if chart.series.iter().any(|series| !series.points.is_empty()) {
            self.blocks.push(Block::Chart(chart));
        }
    }

    /// Adds a chart of bars, unless it has no bars.
    pub fn bars(&mut self, bars: Bars) {
        if !bars.bars.is_empty() {
            self.blocks.push(Block::Bars(bars));
        }
    }

    /// Returns all drawings in it.
    pub fn drawings(&self) -> impl Iterator<Item = Drawing<'_>> {
        self.blocks.iter().filter_map(Block::drawing)
    }

    /// Returns the charts of lines in it.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Chart(chart) => Some(chart),
            _ => None,
        })
    }
}

/// Formats a figure with three significant digits, without exponent; `-` for none.
pub fn shown(figure: Option<f64>) -> String {
    match figure {
        None => "-".to_owned(),
        Some(f) if f.abs() >= 99.95 => format!("{f:.0}"),
        Some(f) if f.abs() >= 9.995 => format!("{f:.1}"),
        Some(f) if f == 0.0 || f.abs() >= 0.01 => format!("{f:.2}"),
        Some(f) => format!("{f:.4}"),
    }
}

/// Formats bytes in binary units: `64 KiB`.
pub fn bytes(count: u64) -> String {
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
    fn figures_have_three_digits() {
        let all = [0.0, 0.0012, 0.5, 9.996, 20.94, 99.96, 48_211.4].map(|f| shown(Some(f)));
        assert_eq!(all, ["0.00", "0.0012", "0.50", "10.0", "20.9", "100", "48211"]);
        assert_eq!(shown(None), "-");
    }

    #[test]
    fn bytes_have_the_largest_whole_unit() {
        assert_eq!(
            [1, 1024, 1536, 65_536, 1 << 20].map(bytes),
            ["1 B", "1 KiB", "1536 B", "64 KiB", "1 MiB"]
        );
    }

    #[test]
    fn a_section_takes_nothing_empty() {
        let mut section = Section::new("a", "A");
        section.table(Table::default());
        let axis = || Axis::new("x", Scale::Linear);
        let series = vec![Series::measured("none", Vec::new())];
        section.chart(Chart { caption: "c".into(), x: axis(), y: axis(), series });
        assert!(section.blocks.is_empty());
    }
}
