//! Bar charts as SVG, with the same colours as line charts (see [`chart`](super::chart)).

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Bars;
use super::chart::{
    Area, DrawingError, DrawingResult, GRID_COLOUR, TEXT_COLOUR, WIDTH, colour, finish_svg,
    format_without_zeros,
};

// Sizes in SVG units.

const BAR_HEIGHT: u32 = 24;
/// Horizontal position of the left end of the bars. Their names are to the left of it.
const BARS_LEFT: u32 = 200;
const AXIS_HEIGHT: u32 = 48;
const LEGEND_LINE_HEIGHT: u32 = 24;
const LEGEND_COLUMN_WIDTH: u32 = 130;
const RIGHT_MARGIN: u32 = 24;
/// Minimum width of a part of a bar that has space for a label.
const MIN_LABELLED_WIDTH: f64 = 34.0;

/// Returns the chart as an SVG element for a page.
pub(crate) fn svg_element(bars: &Bars) -> Result<String, DrawingError> {
    let failed = |reason: String| DrawingError { caption: bars.caption.clone(), reason };
    let lengths = bars.bars.iter().flat_map(|(name, parts)| parts.iter().map(move |length| (name, length)));
    for (name, length) in lengths {
        if !length.is_finite() || *length < 0.0 {
            return Err(failed(format!("a part of the bar {name} has the length {length}")));
        }
    }
    let columns = (WIDTH / LEGEND_COLUMN_WIDTH) as usize;
    let legend_height = bars.parts.len().div_ceil(columns) as u32 * LEGEND_LINE_HEIGHT;
    let height = legend_height + bars.bars.len() as u32 * BAR_HEIGHT + AXIS_HEIGHT;
    let mut svg = String::new();
    let drawn = {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        let (legend, plot) = root.split_vertically(legend_height);
        draw_legend(bars, columns, &legend)
            .and_then(|()| draw(bars, &plot))
            .and_then(|()| Ok(root.present()?))
    };
    drawn.map_err(|e| failed(e.to_string()))?;
    Ok(finish_svg(&svg, height, &bars.caption))
}

fn draw_legend(bars: &Bars, columns: usize, area: &Area<'_>) -> DrawingResult {
    let text = ("sans-serif", 14, &TEXT_COLOUR).into_text_style(area).pos(Pos::new(HPos::Left, VPos::Center));
    for (i, part) in bars.parts.iter().enumerate() {
        let left = (i % columns) as i32 * LEGEND_COLUMN_WIDTH as i32 + 24;
        let middle = (i / columns) as i32 * LEGEND_LINE_HEIGHT as i32 + LEGEND_LINE_HEIGHT as i32 / 2;
        area.draw(&Rectangle::new([(left, middle - 6), (left + 14, middle + 6)], colour(i).filled()))?;
        area.draw(&Text::new(part.as_str(), (left + 20, middle), text.clone()))?;
    }
    Ok(())
}

fn draw(bars: &Bars, area: &Area<'_>) -> DrawingResult {
    let name_style =
        ("sans-serif", 14, &TEXT_COLOUR).into_text_style(area).pos(Pos::new(HPos::Right, VPos::Center));
    let axis_style =
        ("sans-serif", 14, &TEXT_COLOUR).into_text_style(area).pos(Pos::new(HPos::Center, VPos::Top));
    let part_style = ("sans-serif", 12, &WHITE).into_text_style(area);
    let part_style = part_style.pos(Pos::new(HPos::Center, VPos::Center));
    let longest = bars.bars.iter().map(|(_, parts)| parts.iter().sum::<f64>()).fold(0.0, f64::max);
    let width = f64::from(WIDTH - BARS_LEFT - RIGHT_MARGIN);
    let scale = if longest > 0.0 { width / longest } else { 0.0 };
    let x_of = |length: f64| BARS_LEFT as i32 + (length * scale).round() as i32;
    let bottom = (bars.bars.len() as u32 * BAR_HEIGHT) as i32;
    let distance = tick_distance(longest);
    let ticks = (0..=20).map(|tick| f64::from(tick) * distance).take_while(|tick| *tick <= longest * 1.001);
    for tick in ticks {
        area.draw(&PathElement::new([(x_of(tick), 0), (x_of(tick), bottom)], GRID_COLOUR))?;
        area.draw(&Text::new(format_without_zeros(tick), (x_of(tick), bottom + 4), axis_style.clone()))?;
    }
    for (row, (title, parts)) in bars.bars.iter().enumerate() {
        let top = (row as u32 * BAR_HEIGHT) as i32;
        area.draw(&Text::new(
            title.as_str(),
            (BARS_LEFT as i32 - 8, top + BAR_HEIGHT as i32 / 2),
            name_style.clone(),
        ))?;
        let mut start = 0.0;
        for (i, length) in parts.iter().enumerate() {
            let (left, right) = (x_of(start), x_of(start + length));
            start += length;
            if right <= left {
                continue;
            }
            area.draw(&Rectangle::new(
                [(left, top + 3), (right, top + BAR_HEIGHT as i32 - 3)],
                colour(i).filled(),
            ))?;
            if length * scale >= MIN_LABELLED_WIDTH {
                let middle = ((left + right) / 2, top + BAR_HEIGHT as i32 / 2);
                area.draw(&Text::new(format!("{length:.0}"), middle, part_style.clone()))?;
            }
        }
    }
    area.draw(&Text::new(bars.label.as_str(), (x_of(longest / 2.0), bottom + 24), axis_style))?;
    Ok(())
}

/// Returns the distance between the labels of the axis. It is 1, 2 or 5 times a power of ten, so that there
/// are at most ten labels after zero.
fn tick_distance(longest: f64) -> f64 {
    if longest <= 0.0 {
        return 1.0;
    }
    let tenth = 10f64.powf((longest / 10.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * tenth)
        .find(|step| longest / step <= 10.0)
        .unwrap_or(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(lengths: &[f64]) -> Bars {
        Bars {
            caption: "Shares".into(),
            label: "percent".into(),
            parts: vec!["write".into(), "read".into()],
            bars: lengths
                .iter()
                .map(|length| ("c <sender>".to_owned(), vec![*length, 100.0 - length]))
                .collect(),
        }
    }

    #[test]
    fn a_bar_has_a_name_and_parts_in_the_colours_of_the_page() {
        let svg = svg_element(&bars(&[60.0, 100.0])).unwrap();
        for part in [
            "c &lt;sender&gt;",
            "percent",
            "write",
            "read",
            "var(--s0)",
            "var(--s1)",
            "\n60\n",
            "\n40\n",
            "\n100\n",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert!(svg.starts_with("<svg role=\"img\" aria-label=\"Shares\" viewBox="), "{svg}");
        // Two rectangles of the legend, two of the first bar, and one of the second bar.
        assert_eq!(svg.matches("<rect ").count(), 5, "{svg}");
    }

    #[test]
    fn invalid_lengths_are_errors_and_empty_bars_are_drawn() {
        for length in [f64::NAN, -1.0] {
            let error = svg_element(&bars(&[length])).unwrap_err().to_string();
            assert!(error.contains("a part of the bar c <sender> has the length"), "{error}");
        }
        let nothing = Bars { bars: vec![("none".into(), vec![0.0, 0.0])], ..bars(&[]) };
        assert!(svg_element(&nothing).unwrap().contains("none"));
    }

    #[test]
    fn an_axis_has_five_to_ten_round_figures() {
        assert_eq!([100.0, 37.0, 1.0, 0.0].map(tick_distance), [10.0, 5.0, 0.1, 1.0]);
    }
}
