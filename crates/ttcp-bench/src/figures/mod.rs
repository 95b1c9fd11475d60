//! What a report is made of: sections of texts, tables and charts, apart from how they are shown.
//!
//! [`page`] makes one HTML page of them, [`markdown`] a Markdown file with its charts beside it, [`chart`] and [`bars`] draw
//! as SVG; [`published_table`] has the tables of the literature as they are.

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
    /// What stands above all sections: a paragraph each.
    pub summary: Vec<String>,
    /// What a reader must know of the figures.
    pub caveats: Vec<String>,
    /// The sections in their order.
    pub sections: Vec<Section>,
}

/// A section of a report.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// What links lead to: a word.
    pub id: String,
    /// The heading.
    pub title: String,
    /// What is in it.
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

/// A table. Where a figure is absent it has `-`.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The cells, a line each.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its heading, with the unit.
    pub title: String,
    /// Whether it holds figures, which stand at the right.
    pub figures: bool,
    /// Whether these are published figures, not measured ones.
    pub published: bool,
}

/// A chart of lines.
#[derive(Debug, Clone)]
pub struct Chart {
    /// What it shows.
    pub caption: String,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

/// A chart of bars that lie below each other, each made of the same parts.
#[derive(Debug, Clone)]
pub struct Bars {
    /// What it shows.
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
    /// How its values lie.
    pub scale: Scale,
}

/// How values lie along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// A power of two a step, which are bytes.
    Bytes,
    /// A power of ten a step.
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
    /// What has to be drawn.
    pub fn drawing(&self) -> Option<Drawing<'_>> {
        match self {
            Block::Chart(chart) => Some(Drawing::Chart(chart)),
            Block::Bars(bars) => Some(Drawing::Bars(bars)),
            Block::Text(_) | Block::Table(_) => None,
        }
    }
}

impl Drawing<'_> {
    /// What it shows.
    pub fn caption(&self) -> &str {
        match self {
            Drawing::Chart(chart) => &chart.caption,
            Drawing::Bars(bars) => &bars.caption,
        }
    }

    /// An SVG element to stand in a page.
    ///
    /// # Errors
    /// A value of it has no place.
    pub fn inline(&self) -> Result<String, chart::NotDrawn> {
        match self {
            Drawing::Chart(chart) => chart::inline(chart),
            Drawing::Bars(bars) => bars::inline(bars),
        }
    }

    /// An SVG file by itself, which follows the reader's choice of light or dark.
    ///
    /// # Errors
    /// As for [`inline`](Self::inline).
    pub fn file(&self) -> Result<String, chart::NotDrawn> {
        self.inline().map(|svg| chart::alone(&svg))
    }
}

impl Column {
    /// A column of words.
    pub fn words(title: impl Into<String>) -> Column {
        Column { title: title.into(), figures: false, published: false }
    }

    /// A column of figures measured.
    pub fn figures(title: impl Into<String>) -> Column {
        Column { title: title.into(), figures: true, published: false }
    }

    /// A column of figures published.
    pub fn published(title: impl Into<String>) -> Column {
        Column { title: title.into(), figures: true, published: true }
    }
}

impl Axis {
    /// An axis.
    pub fn new(label: impl Into<String>, scale: Scale) -> Axis {
        Axis { label: label.into(), scale }
    }
}

impl Series {
    /// A line of measured points.
    pub fn measured(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, published: false }
    }

    /// A line of published points.
    pub fn published(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, published: true }
    }
}

impl Section {
    /// A section with nothing in it.
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

    /// Adds a chart of bars, unless it has none.
    pub fn bars(&mut self, bars: Bars) {
        if !bars.bars.is_empty() {
            self.blocks.push(Block::Bars(bars));
        }
    }

    /// All drawings in it.
    pub fn drawings(&self) -> impl Iterator<Item = Drawing<'_>> {
        self.blocks.iter().filter_map(Block::drawing)
    }

    /// The charts of lines in it.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Chart(chart) => Some(chart),
            _ => None,
        })
    }
}

/// A figure with three significant digits, without exponent; `-` for none.
pub fn shown(figure: Option<f64>) -> String {
    match figure {
        None => "-".to_owned(),
        Some(f) if f.abs() >= 99.95 => format!("{f:.0}"),
        Some(f) if f.abs() >= 9.995 => format!("{f:.1}"),
        Some(f) if f == 0.0 || f.abs() >= 0.01 => format!("{f:.2}"),
        Some(f) => format!("{f:.4}"),
    }
}

/// Bytes in binary units: `64 KiB`.
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
