//! The elements of a report, independent of the output format: sections of texts, tables and charts.
//!
//! [`page`] renders a report as one HTML page, and [`markdown`] as a Markdown file with separate charts.
//! [`chart`] and [`bars`] draw charts as SVG. [`published_table`] returns tables of published figures.

pub(crate) mod bars;
pub(crate) mod chart;
pub(crate) mod markdown;
pub(crate) mod page;
mod published;

pub(crate) use published::{published_rows, published_table};

#[derive(Debug, Clone, Default)]
pub(crate) struct Document {
    pub(crate) title: String,
    /// The paragraphs above all sections.
    pub(crate) summary: Vec<String>,
    /// Notes on the validity of the figures.
    pub(crate) caveats: Vec<String>,
    pub(crate) sections: Vec<Section>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Section {
    /// The target of links to the section, which is one word.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) blocks: Vec<Block>,
}

#[derive(Debug, Clone)]
pub(crate) enum Block {
    Text(String),
    Table(Table),
    Chart(Chart),
    Bars(Bars),
}

/// A table. The text of an absent figure is `-`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    /// The caption, which may be empty.
    pub(crate) caption: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    /// The heading, with the unit.
    pub(crate) title: String,
    /// Whether the column contains figures, which are right-aligned.
    pub(crate) has_figures: bool,
    /// Whether the figures are published ones, not measured ones.
    pub(crate) is_published: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Chart {
    pub(crate) caption: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

/// A chart of horizontal bars, which all consist of the same parts.
#[derive(Debug, Clone)]
pub(crate) struct Bars {
    pub(crate) caption: String,
    /// The quantity that the lengths represent, with the unit.
    pub(crate) label: String,
    /// The names of the parts, from left to right.
    pub(crate) parts: Vec<String>,
    /// The bars, with their names and the lengths of their parts.
    pub(crate) bars: Vec<(String, Vec<f64>)>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Drawing<'s> {
    Chart(&'s Chart),
    Bars(&'s Bars),
}

#[derive(Debug, Clone)]
pub(crate) struct Axis {
    /// The quantity, with the unit.
    pub(crate) label: String,
    pub(crate) scale: Scale,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Linear, from zero, or from the smallest value if it is negative.
    Linear,
    /// Logarithmic, with labels at powers of two.
    PowersOfTwo,
    /// Logarithmic, with labels at powers of ten.
    PowersOfTen,
}

#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// The name in the legend.
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// Whether the points are published figures, not measured ones. The line is then dashed.
    pub(crate) is_published: bool,
}

impl Block {
    pub(crate) fn drawing(&self) -> Option<Drawing<'_>> {
        match self {
            Block::Chart(chart) => Some(Drawing::Chart(chart)),
            Block::Bars(bars) => Some(Drawing::Bars(bars)),
            Block::Text(_) | Block::Table(_) => None,
        }
    }
}

impl Drawing<'_> {
    pub(crate) fn caption(&self) -> &str {
        match self {
            Drawing::Chart(chart) => &chart.caption,
            Drawing::Bars(bars) => &bars.caption,
        }
    }

    /// Returns the chart as an SVG element for a page.
    pub(crate) fn svg_element(&self) -> Result<String, chart::DrawingError> {
        match self {
            Drawing::Chart(chart) => chart::svg_element(chart),
            Drawing::Bars(bars) => bars::svg_element(bars),
        }
    }

    /// Returns the chart as a standalone SVG file, which uses the light or dark colour scheme of its reader.
    pub(crate) fn svg_file(&self) -> Result<String, chart::DrawingError> {
        self.svg_element().map(|svg| chart::with_own_colours(&svg))
    }
}

impl Table {
    /// Returns a table whose columns contain figures, except the first one. `titles` are separated by `|`.
    pub(crate) fn of_figures(titles: &str, rows: Vec<Vec<String>>) -> Table {
        let mut columns: Vec<Column> = titles.split('|').map(Column::figures).collect();
        if let Some(first) = columns.first_mut() {
            first.has_figures = false;
        }
        Table { caption: String::new(), columns, rows }
    }
}

impl Column {
    pub(crate) fn words(title: impl Into<String>) -> Column {
        Column { title: title.into(), has_figures: false, is_published: false }
    }

    pub(crate) fn figures(title: impl Into<String>) -> Column {
        Column { title: title.into(), has_figures: true, is_published: false }
    }

    pub(crate) fn published(title: impl Into<String>) -> Column {
        Column { title: title.into(), has_figures: true, is_published: true }
    }
}

impl Axis {
    pub(crate) fn new(label: impl Into<String>, scale: Scale) -> Axis {
        Axis { label: label.into(), scale }
    }
}

impl Series {
    pub(crate) fn measured(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, is_published: false }
    }

    pub(crate) fn published(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, is_published: true }
    }
}

impl Section {
    pub(crate) fn new(id: impl Into<String>, title: impl Into<String>) -> Section {
        Section { id: id.into(), title: title.into(), blocks: Vec::new() }
    }

    pub(crate) fn text(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Text(text.into()));
    }

    /// Adds a table, unless it has no rows.
    pub(crate) fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
    }

    /// Adds a line chart, unless it has no points.
    pub(crate) fn chart(&mut self, chart: Chart) {
        if chart.series.iter().any(|series| !series.points.is_empty()) {
            self.blocks.push(Block::Chart(chart));
        }
    }

    /// Adds a bar chart, unless it has no bars.
    pub(crate) fn bars(&mut self, bars: Bars) {
        if !bars.bars.is_empty() {
            self.blocks.push(Block::Bars(bars));
        }
    }

    pub(crate) fn drawings(&self) -> impl Iterator<Item = Drawing<'_>> {
        self.blocks.iter().filter_map(Block::drawing)
    }

    #[cfg(test)]
    pub(crate) fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Chart(chart) => Some(chart),
            _ => None,
        })
    }
}

/// Formats a figure without exponent; `None` as `-`. A figure from 1 on has at least three significant
/// digits. A smaller one has two decimal places, or four if it is below 0.01.
pub(crate) fn format_figure(figure: Option<f64>) -> String {
    match figure {
        None => "-".to_owned(),
        Some(f) if f.abs() >= 99.95 => format!("{f:.0}"),
        Some(f) if f.abs() >= 9.995 => format!("{f:.1}"),
        Some(f) if f == 0.0 || f.abs() >= 0.01 => format!("{f:.2}"),
        Some(f) => format!("{f:.4}"),
    }
}

/// Formats a percentage with one decimal place; `None` as `-`.
pub(crate) fn format_percent(figure: Option<f64>) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.1}"))
}

/// Formats a number of bytes in the largest binary unit without fraction, such as `64 KiB`.
pub(crate) fn format_bytes(count: u64) -> String {
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
    fn the_number_of_decimal_places_depends_on_the_figure() {
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
