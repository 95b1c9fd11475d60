//! Line charts as SVG. The surrounding page defines the colours: `var(--s0)` to `var(--s7)` for the lines,
//! `var(--grid)`, and the text colour.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Axis, Chart, Scale, Series};

pub(super) const WIDTH: u32 = 760;
const HEIGHT: u32 = 400;
const LEGEND_LINE_HEIGHT: u32 = 20;
const LEGEND_COLUMN_WIDTH: u32 = 240;
/// Number of line colours. Further lines use the same colours again.
const COLOUR_COUNT: usize = 8;

/// A placeholder colour, like the others below. [`finish_svg`] replaces it with a colour of the page.
pub(super) const TEXT_COLOUR: RGBColor = RGBColor(1, 1, 1);
pub(super) const GRID_COLOUR: RGBColor = RGBColor(1, 1, 2);

pub(super) fn colour(series: usize) -> RGBColor {
    RGBColor(1, 2, (series % COLOUR_COUNT) as u8)
}

/// Returns the placeholder colour of a dashed line. The line is drawn solid, and [`finish_svg`] adds an
/// attribute for dashes. If the dashes were drawn, each would be an element, and pages would be much larger.
fn dashed_colour(series: usize) -> RGBColor {
    RGBColor(1, 3, (series % COLOUR_COUNT) as u8)
}

#[derive(Debug, thiserror::Error)]
#[error("the chart \"{caption}\" cannot be drawn: {reason}")]
pub(crate) struct DrawingError {
    pub(super) caption: String,
    pub(super) reason: String,
}

/// The light and dark colours of a standalone chart.
const STANDALONE_COLOURS: &str = "<style>:root{color:#222;--grid:#ddd;--s0:#0072b2;--s1:#d55e00;--s2:#009e73;--s3:#cc79a7;--s4:#b58900;\
--s5:#56b4e9;--s6:#7a5195;--s7:#666}@media (prefers-color-scheme:dark){:root{color:#ddd;--grid:#444;--s0:#4aa8e0;--s1:#f08040;\
--s2:#35c79a;--s3:#e29cc4;--s4:#e6c229;--s5:#8fd0f5;--s6:#b48ad0;--s7:#aaa}}</style>";

/// Returns the chart as an SVG element for a page.
pub(crate) fn svg_element(chart: &Chart) -> Result<String, DrawingError> {
    let legend_lines = (chart.series.len() as u32).div_ceil(WIDTH / LEGEND_COLUMN_WIDTH);
    let legend_height = legend_lines * LEGEND_LINE_HEIGHT + LEGEND_LINE_HEIGHT / 2;
    let mut svg = String::new();
    let drawn = {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT + legend_height)).into_drawing_area();
        let (plot, below) = root.split_vertically(HEIGHT);
        draw(chart, &plot).and_then(|()| draw_legend(chart, &below)).and_then(|()| Ok(root.present()?))
    };
    drawn.map_err(|e| DrawingError { caption: chart.caption.clone(), reason: e.to_string() })?;
    Ok(finish_svg(&svg, HEIGHT + legend_height, &chart.caption))
}

/// Replaces the placeholder colours, and replaces the fixed size with an accessible name.
pub(super) fn finish_svg(svg: &str, height: u32, caption: &str) -> String {
    let mut svg = svg.replace("#010101", "currentColor").replace("#010102", "var(--grid)");
    for i in 0..COLOUR_COUNT {
        svg = svg.replace(&format!("#0102{i:02X}"), &format!("var(--s{i})"));
        let dashes = format!("\"var(--s{i})\" stroke-dasharray=\"6 4\"");
        svg = svg.replace(&format!("\"#0103{i:02X}\""), &dashes);
    }
    let size = format!("width=\"{WIDTH}\" height=\"{height}\" ");
    let name = format!("role=\"img\" aria-label=\"{}\" ", escaped(caption));
    svg.replacen(&size, &name, 1)
}

/// Returns a standalone SVG file with the element `svg`, which defines its own colours.
pub(super) fn with_own_colours(svg: &str) -> String {
    let end = svg.find('>').map_or(0, |end| end + 1);
    let (start, rest) = svg.split_at(end);
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{start}{STANDALONE_COLOURS}{rest}\n")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type DrawingResult = Result<(), Box<dyn std::error::Error>>;

fn draw(chart: &Chart, area: &Area<'_>) -> DrawingResult {
    let values =
        |coordinate: fn(&(f64, f64)) -> f64| chart.series.iter().flat_map(|s| &s.points).map(coordinate);
    let (x, y) = (AxisRange::of(&chart.x, values(|p| p.0))?, AxisRange::of(&chart.y, values(|p| p.1))?);
    let mut builder = ChartBuilder::on(area);
    builder.margin(8).margin_right(24).x_label_area_size(44).y_label_area_size(72);
    let mut plot = builder.build_cartesian_2d(x.low..x.high, y.low..y.high)?;
    let text = ("sans-serif", 14, &TEXT_COLOUR).into_text_style(area);
    plot.configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID_COLOUR)
        .axis_style(TEXT_COLOUR)
        .label_style(text.clone())
        .axis_desc_style(text)
        .x_labels(x.max_labels)
        .y_labels(y.max_labels)
        .x_label_formatter(&|v| x.format_tick(*v))
        .y_label_formatter(&|v| y.format_tick(*v))
        .x_desc(&chart.x.label)
        .y_desc(&chart.y.label)
        .draw()?;
    for (i, series) in chart.series.iter().enumerate() {
        let points: Vec<(f64, f64)> =
            series.points.iter().map(|p| (x.position(p.0), y.position(p.1))).collect();
        let style = colour(i).stroke_width(2);
        let line = if series.is_published { dashed_colour(i).stroke_width(2) } else { style };
        plot.draw_series(LineSeries::new(points.clone(), line))?;
        // Hollow dots distinguish lines with the same colour.
        let dot = if i < COLOUR_COUNT { colour(i).filled() } else { style };
        plot.draw_series(points.into_iter().map(|point| Circle::new(point, 3, dot)))?;
    }
    Ok(())
}

fn draw_legend(chart: &Chart, area: &Area<'_>) -> DrawingResult {
    let text = ("sans-serif", 14, &TEXT_COLOUR).into_text_style(area).pos(Pos::new(HPos::Left, VPos::Center));
    let columns = (WIDTH / LEGEND_COLUMN_WIDTH) as usize;
    for (i, series) in chart.series.iter().enumerate() {
        let (left, top) = (
            (i % columns) as i32 * LEGEND_COLUMN_WIDTH as i32 + 24,
            ((i / columns) as u32 * LEGEND_LINE_HEIGHT + LEGEND_LINE_HEIGHT / 2) as i32,
        );
        let style = colour(i).stroke_width(2);
        let line = if series.is_published { dashed_colour(i).stroke_width(2) } else { style };
        area.draw(&PathElement::new([(left, top), (left + 26, top)], line))?;
        let dot = if i < COLOUR_COUNT { colour(i).filled() } else { style };
        area.draw(&Circle::new((left + 13, top), 3, dot))?;
        area.draw(&Text::new(legend_name(series), (left + 34, top), text.clone()))?;
    }
    Ok(())
}

fn legend_name(series: &Series) -> String {
    if series.is_published { format!("{} (published)", series.name) } else { series.name.clone() }
}

/// The range of positions on an axis. The position of a value is the value itself, or its logarithm.
struct AxisRange {
    scale: Scale,
    low: f64,
    high: f64,
    max_labels: usize,
}

impl AxisRange {
    fn of(axis: &Axis, values: impl Iterator<Item = f64>) -> Result<AxisRange, OffAxis> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut range = AxisRange { scale: axis.scale, low: 0.0, high: 1.0, max_labels: 8 };
        for value in values {
            let position = range.position(value);
            if !position.is_finite() {
                return Err(OffAxis { value, axis: axis.label.clone() });
            }
            (low, high) = (low.min(position), high.max(position));
        }
        (range.low, range.high) = match axis.scale {
            Scale::Linear => (low.min(0.0), high + (high - low.min(0.0)).abs() / 20.0),
            Scale::PowersOfTwo => (low, high),
            Scale::PowersOfTen => (low.floor(), high.ceil()),
        };
        if range.high - range.low < 1e-9 {
            (range.low, range.high) = (range.low - 0.5, range.high + 0.5);
        }
        if axis.scale != Scale::Linear {
            // There is one label for each power, but at most as many as have space.
            range.max_labels = ((range.high - range.low).ceil() as usize + 1).clamp(2, 24);
        }
        Ok(range)
    }

    fn position(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::PowersOfTwo => value.log2(),
            Scale::PowersOfTen => value.log10(),
        }
    }

    fn format_tick(&self, position: f64) -> String {
        let is_whole = (position - position.round()).abs() < 1e-9;
        match self.scale {
            Scale::Linear => format_without_zeros(position),
            Scale::PowersOfTwo if is_whole => {
                super::format_bytes(position.exp2().round() as u64).replace("iB", "").replace(" B", "")
            }
            Scale::PowersOfTen if is_whole => format_without_zeros(10f64.powf(position)),
            _ => String::new(),
        }
    }
}

pub(super) fn format_without_zeros(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// An error: a value has no finite position on an axis.
#[derive(Debug, thiserror::Error)]
#[error("{value} cannot be placed on the axis of {axis}")]
struct OffAxis {
    value: f64,
    axis: String,
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
    fn a_chart_has_labels_a_legend_and_the_colours_of_the_page() {
        let points = [(1024.0, 1.5), (65_536.0, 12.0), (1_048_576.0, 30.0)];
        let svg = svg_element(&chart(Scale::PowersOfTwo, &points)).unwrap();
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
        assert_eq!(svg.matches("stroke-dasharray").count(), 2, "the line and its entry in the legend");
        let file = with_own_colours(&svg);
        assert!(file.starts_with("<?xml") && file.contains("prefers-color-scheme:dark"));
    }

    #[test]
    fn values_that_cannot_be_placed_are_errors() {
        let error = svg_element(&chart(Scale::PowersOfTen, &[(0.0, 1.0)])).unwrap_err().to_string();
        assert!(error.contains("0 cannot be placed on the axis of buffer, bytes"), "{error}");
        let error = svg_element(&chart(Scale::Linear, &[(f64::NAN, 1.0)])).unwrap_err().to_string();
        assert!(error.contains("NaN cannot be placed"), "{error}");
    }

    #[test]
    fn one_point_and_equal_points_are_drawn() {
        for points in [&[(5.0, 7.0)][..], &[(5.0, 0.0), (5.0, 0.0)]] {
            for scale in [Scale::Linear, Scale::PowersOfTwo, Scale::PowersOfTen] {
                assert!(svg_element(&chart(scale, points)).unwrap().contains("<circle"));
            }
        }
    }
}
