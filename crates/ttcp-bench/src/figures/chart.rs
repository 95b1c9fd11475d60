//! Charts as SVG. The surrounding page defines the colours: `var(--s0)` to `var(--s7)` for the lines,
//! `var(--grid)`, and the text colour.

use std::fmt;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Axis, Chart, Scale, Series};

/// Width of a chart in its own pixels; pages scale it.
pub(super) const WIDTH: u32 = 760;
const HEIGHT: u32 = 400;
/// Height of a legend line.
const LINE: u32 = 20;
/// Width of a legend column.
const COLUMN: u32 = 240;
/// Number of line colours, which are used in turn.
const COLOURS: usize = 8;

/// Placeholder colours, which are replaced in the finished SVG.
pub(super) const TEXT: RGBColor = RGBColor(1, 1, 1);
pub(super) const GRID: RGBColor = RGBColor(1, 1, 2);

pub(super) fn colour(series: usize) -> RGBColor {
    RGBColor(1, 2, (series % COLOURS) as u8)
}

/// Returns the placeholder colour of a dashed line. It is drawn as one solid line whose element then gets a
/// dash attribute. Drawn dash by dash, each dash would be an element, and a page of published series would
/// take a megabyte.
fn dashed(series: usize) -> RGBColor {
    RGBColor(1, 3, (series % COLOURS) as u8)
}

/// A chart that could not be drawn, and the reason.
#[derive(Debug, thiserror::Error)]
#[error("the chart \"{caption}\" cannot be drawn: {reason}")]
pub struct DrawingError {
    pub(super) caption: String,
    pub(super) reason: String,
}

/// The colours of a standalone chart, in light and dark.
const OWN_COLOURS: &str = "<style>:root{color:#222;--grid:#ddd;--s0:#0072b2;--s1:#d55e00;--s2:#009e73;--s3:#cc79a7;--s4:#b58900;\
--s5:#56b4e9;--s6:#7a5195;--s7:#666}@media (prefers-color-scheme:dark){:root{color:#ddd;--grid:#444;--s0:#4aa8e0;--s1:#f08040;\
--s2:#35c79a;--s3:#e29cc4;--s4:#e6c229;--s5:#8fd0f5;--s6:#b48ad0;--s7:#aaa}}</style>";

/// Returns an SVG element for a page.
///
/// # Errors
/// One of its values cannot be placed on its axis.
pub fn inline(chart: &Chart) -> Result<String, DrawingError> {
    let legend = (chart.series.len() as u32).div_ceil(WIDTH / COLUMN) * LINE + LINE / 2;
    let mut svg = String::new();
    let drawn = {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT + legend)).into_drawing_area();
        let (plot, below) = root.split_vertically(HEIGHT);
        draw(chart, &plot).and_then(|()| draw_legend(chart, &below)).and_then(|()| Ok(root.present()?))
    };
    drawn.map_err(|e| DrawingError { caption: chart.caption.clone(), reason: e.to_string() })?;
    Ok(painted(&svg, HEIGHT + legend, &chart.caption))
}

/// Applies the page's colours, the accessible name, and the page's width.
pub(super) fn painted(svg: &str, height: u32, caption: &str) -> String {
    let mut svg = svg.replace("#010101", "currentColor").replace("#010102", "var(--grid)");
    for i in 0..COLOURS {
        svg = svg.replace(&format!("#0102{i:02X}"), &format!("var(--s{i})"));
        let dashes = format!("\"var(--s{i})\" stroke-dasharray=\"6 4\"");
        svg = svg.replace(&format!("\"#0103{i:02X}\""), &dashes);
    }
    let size = format!("width=\"{WIDTH}\" height=\"{height}\" ");
    let name = format!("role=\"img\" aria-label=\"{}\" ", escaped(caption));
    svg.replacen(&size, &name, 1)
}

/// Returns a standalone SVG file that follows the reader's choice of light or dark.
///
/// # Errors
/// The errors of [`inline`].
pub fn file(chart: &Chart) -> Result<String, DrawingError> {
    inline(chart).map(|svg| alone(&svg))
}

/// Returns an element as a standalone file.
pub(super) fn alone(svg: &str) -> String {
    let end = svg.find('>').map_or(0, |end| end + 1);
    let (start, rest) = svg.split_at(end);
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{start}{OWN_COLOURS}{rest}\n")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type DrawingResult = Result<(), Box<dyn std::error::Error>>;

fn draw(chart: &Chart, area: &Area<'_>) -> DrawingResult {
    let values = |of: fn(&(f64, f64)) -> f64| chart.series.iter().flat_map(|s| &s.points).map(of);
    let (x, y) = (Range::of(&chart.x, values(|p| p.0))?, Range::of(&chart.y, values(|p| p.1))?);
    let mut built = ChartBuilder::on(area);
    built.margin(8).margin_right(24).x_label_area_size(44).y_label_area_size(72);
    let mut plot = built.build_cartesian_2d(x.low..x.high, y.low..y.high)?;
    let text = ("sans-serif", 14, &TEXT).into_text_style(area);
    plot.configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(TEXT)
        .label_style(text.clone())
        .axis_desc_style(text)
        .x_labels(x.labels)
        .y_labels(y.labels)
        .x_label_formatter(&|v| x.format_tick(*v))
        .y_label_formatter(&|v| y.format_tick(*v))
        .x_desc(&chart.x.label)
        .y_desc(&chart.y.label)
        .draw()?;
    for (i, series) in chart.series.iter().enumerate() {
        let points: Vec<(f64, f64)> = series.points.iter().map(|p| (x.place(p.0), y.place(p.1))).collect();
        let style = colour(i).stroke_width(2);
        let line = if series.published { dashed(i).stroke_width(2) } else { style };
        plot.draw_series(LineSeries::new(points.clone(), line))?;
        // When colours repeat, the dots are hollow.
        let dot = if i < COLOURS { colour(i).filled() } else { style };
        plot.draw_series(points.into_iter().map(|point| Circle::new(point, 3, dot)))?;
    }
    Ok(())
}

fn draw_legend(chart: &Chart, area: &Area<'_>) -> DrawingResult {
    let text = ("sans-serif", 14, &TEXT).into_text_style(area).pos(Pos::new(HPos::Left, VPos::Center));
    let columns = (WIDTH / COLUMN) as usize;
    for (i, series) in chart.series.iter().enumerate() {
        let (left, top) =
            ((i % columns) as i32 * COLUMN as i32 + 24, ((i / columns) as u32 * LINE + LINE / 2) as i32);
        let style = colour(i).stroke_width(2);
        let line = if series.published { dashed(i).stroke_width(2) } else { style };
        area.draw(&PathElement::new([(left, top), (left + 26, top)], line))?;
        let dot = if i < COLOURS { colour(i).filled() } else { style };
        area.draw(&Circle::new((left + 13, top), 3, dot))?;
        area.draw(&Text::new(named(series), (left + 34, top), text.clone()))?;
    }
    Ok(())
}

fn named(series: &Series) -> String {
    if series.published { format!("{} (published)", series.name) } else { series.name.clone() }
}

/// The positions of values on an axis: the values themselves, or their logarithms.
struct Range {
    scale: Scale,
    low: f64,
    high: f64,
    labels: usize,
}

impl Range {
    fn of(axis: &Axis, values: impl Iterator<Item = f64>) -> Result<Range, OffAxis> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut range = Range { scale: axis.scale, low: 0.0, high: 1.0, labels: 8 };
        for value in values {
            let place = range.place(value);
            if !place.is_finite() {
                return Err(OffAxis { value, axis: axis.label.clone() });
            }
            (low, high) = (low.min(place), high.max(place));
        }
        (range.low, range.high) = match axis.scale {
            Scale::Linear => (low.min(0.0), high + (high - low.min(0.0)).abs() / 20.0),
            Scale::Bytes => (low, high),
            Scale::Decades => (low.floor(), high.ceil()),
        };
        if range.high - range.low < 1e-9 {
            (range.low, range.high) = (range.low - 0.5, range.high + 0.5);
        }
        if axis.scale != Scale::Linear {
            // One label per step, as far as they fit.
            range.labels = ((range.high - range.low).ceil() as usize + 1).clamp(2, 24);
        }
        Ok(range)
    }

    fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Bytes => value.log2(),
            Scale::Decades => value.log10(),
        }
    }

    fn format_tick(&self, place: f64) -> String {
        let whole = (place - place.round()).abs() < 1e-9;
        match self.scale {
            Scale::Linear => plain(place),
            Scale::Bytes if whole => {
                super::bytes(place.exp2().round() as u64).replace("iB", "").replace(" B", "")
            }
            Scale::Decades if whole => plain(10f64.powf(place)),
            _ => String::new(),
        }
    }
}

/// Formats without trailing zeros.
pub(super) fn plain(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[derive(Debug)]
struct OffAxis {
    value: f64,
    axis: String,
}

impl std::error::Error for OffAxis {}

impl fmt::Display for OffAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no place on the axis of {}", self.value, self.axis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(x: Scale, points: &[(f64, f64)]) -> Chart {
        Chart {
            caption: "Speed <of \"all\">".into(),
            x: Axis::new("buffer, bytes", x),
            y: Axis::new("Gbit/s", Scale::Linear),
            series: vec![
                Series::measured("zorb", points.to_vec()),
                Series::published("Orbix", points.to_vec()),
            ],
        }
    }

    #[test]
    fn a_chart_has_labels_legend_and_colours_of_the_page() {
        let points = [(1024.0, 1.5), (65_536.0, 12.0), (1_048_576.0, 30.0)];
        let svg = inline(&chart(Scale::Bytes, &points)).unwrap();
        for part in [
            "buffer, bytes",
            "Gbit/s",
            "64 K",
            "1 M",
            "Orbix (published)",
            "var(--s0)",
            "var(--s1)",
            "var(--grid)",
            "stroke=\"var(--s1)\" stroke-dasharray=\"6 4\"",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert!(
            svg.starts_with("<svg role=\"img\" aria-label=\"Speed &lt;of &quot;all&quot;&gt;\" viewBox="),
            "{svg}"
        );
        assert!(!svg.contains("#010"), "{svg}");
        assert_eq!(svg.matches("stroke-dasharray").count(), 2, "the line and its place in the legend");
        let file = file(&chart(Scale::Bytes, &points)).unwrap();
        assert!(file.starts_with("<?xml") && file.contains("prefers-color-scheme:dark"));
    }

    #[test]
    fn what_has_no_place_is_told() {
        let error = inline(&chart(Scale::Decades, &[(0.0, 1.0)])).unwrap_err().to_string();
        assert!(error.contains("0 has no place on the axis of buffer, bytes"), "{error}");
        let error = inline(&chart(Scale::Linear, &[(f64::NAN, 1.0)])).unwrap_err().to_string();
        assert!(error.contains("NaN has no place"), "{error}");
    }

    #[test]
    fn one_point_and_equal_points_are_drawn() {
        for points in [&[(5.0, 7.0)][..], &[(5.0, 0.0), (5.0, 0.0)]] {
            for scale in [Scale::Linear, Scale::Bytes, Scale::Decades] {
                assert!(inline(&chart(scale, points)).unwrap().contains("<circle"));
            }
        }
    }
}
