//! Stacked bars as SVG, in the colours of charts: see [`chart`](super::chart).

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Bars;
use super::chart::{Area, DrawingError, DrawingResult, GRID, TEXT, WIDTH, colour, painted, plain};

/// Height of a bar with the space around it, pixels.
const BAR: u32 = 24;
/// Left end of the bars, after their names.
const LEFT: u32 = 200;
/// Height of the axis with its figures, below the bars.
const AXIS: u32 = 48;
/// Height of a legend line, above the bars.
const LEGEND: u32 = 24;
/// Width of a legend column.
const COLUMN: u32 = 130;
/// Margin to the right of the bars.
const MARGIN: u32 = 24;
/// Minimum width of a part in which its figure fits.
const FIGURE: f64 = 34.0;

/// Returns an SVG element for a page.
///
/// # Errors
/// A part of a bar is negative, or not a number.
pub fn inline(bars: &Bars) -> Result<String, DrawingError> {
    let failed = |reason: String| DrawingError { caption: bars.caption.clone(), reason };
    let lengths = bars.bars.iter().flat_map(|(name, parts)| parts.iter().map(move |length| (name, length)));
    for (name, length) in lengths {
        if !length.is_finite() || *length < 0.0 {
            return Err(failed(format!("{length} has no place in the bar of {name}")));
        }
    }
    let columns = (WIDTH / COLUMN) as usize;
    let above = bars.parts.len().div_ceil(columns) as u32 * LEGEND;
    let height = above + bars.bars.len() as u32 * BAR + AXIS;
    let mut svg = String::new();
    let drawn = {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        let (legend, plot) = root.split_vertically(above);
        draw_legend(bars, columns, &legend)
            .and_then(|()| draw(bars, &plot))
            .and_then(|()| Ok(root.present()?))
    };
    drawn.map_err(|e| failed(e.to_string()))?;
    Ok(painted(&svg, height, &bars.caption))
}

fn draw_legend(bars: &Bars, columns: usize, area: &Area<'_>) -> DrawingResult {
    let text = ("sans-serif", 14, &TEXT).into_text_style(area).pos(Pos::new(HPos::Left, VPos::Center));
    for (i, part) in bars.parts.iter().enumerate() {
        let left = (i % columns) as i32 * COLUMN as i32 + 24;
        let middle = (i / columns) as i32 * LEGEND as i32 + LEGEND as i32 / 2;
        area.draw(&Rectangle::new([(left, middle - 6), (left + 14, middle + 6)], colour(i).filled()))?;
        area.draw(&Text::new(part.as_str(), (left + 20, middle), text.clone()))?;
    }
    Ok(())
}

fn draw(bars: &Bars, area: &Area<'_>) -> DrawingResult {
    let name = ("sans-serif", 14, &TEXT).into_text_style(area).pos(Pos::new(HPos::Right, VPos::Center));
    let below = ("sans-serif", 14, &TEXT).into_text_style(area).pos(Pos::new(HPos::Center, VPos::Top));
    let within = ("sans-serif", 12, &WHITE).into_text_style(area).pos(Pos::new(HPos::Center, VPos::Center));
    let longest = bars.bars.iter().map(|(_, parts)| parts.iter().sum::<f64>()).fold(0.0, f64::max);
    let width = f64::from(WIDTH - LEFT - MARGIN);
    let scale = if longest > 0.0 { width / longest } else { 0.0 };
    let at = |length: f64| LEFT as i32 + (length * scale).round() as i32;
    let bottom = (bars.bars.len() as u32 * BAR) as i32;
    let step = step(longest);
    let marks = (0..=20).map(|mark| f64::from(mark) * step).take_while(|mark| *mark <= longest * 1.001);
    for mark in marks {
        area.draw(&PathElement::new([(at(mark), 0), (at(mark), bottom)], GRID))?;
        area.draw(&Text::new(plain(mark), (at(mark), bottom + 4), below.clone()))?;
    }
    for (row, (title, parts)) in bars.bars.iter().enumerate() {
        let top = (row as u32 * BAR) as i32;
        area.draw(&Text::new(title.as_str(), (LEFT as i32 - 8, top + BAR as i32 / 2), name.clone()))?;
        let mut from = 0.0;
        for (i, length) in parts.iter().enumerate() {
            let (left, right) = (at(from), at(from + length));
            from += length;
            if right <= left {
                continue;
            }
            area.draw(&Rectangle::new([(left, top + 3), (right, top + BAR as i32 - 3)], colour(i).filled()))?;
            if length * scale >= FIGURE {
                let middle = ((left + right) / 2, top + BAR as i32 / 2);
                area.draw(&Text::new(format!("{length:.0}"), middle, within.clone()))?;
            }
        }
    }
    area.draw(&Text::new(bars.label.as_str(), (at(longest / 2.0), bottom + 24), below))?;
    Ok(())
}

/// Returns the distance of the axis figures: 1, 2 or 5 times a power of ten, such that there are five to ten
/// of them.
fn step(longest: f64) -> f64 {
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
    fn a_bar_has_its_name_and_its_parts_in_the_colours_of_the_page() {
        let svg = inline(&bars(&[60.0, 100.0])).unwrap();
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
        // Background, grid and text have no rectangle: two of the legend, two of the first bar, one of the
        // second.
        assert_eq!(svg.matches("<rect ").count(), 5, "{svg}");
    }

    #[test]
    fn what_has_no_length_is_told_and_nothing_is_drawn_as_such() {
        for length in [f64::NAN, -1.0] {
            let error = inline(&bars(&[length])).unwrap_err().to_string();
            assert!(error.contains("has no place in the bar of c <sender>"), "{error}");
        }
        let nothing = Bars { bars: vec![("none".into(), vec![0.0, 0.0])], ..bars(&[]) };
        assert!(inline(&nothing).unwrap().contains("none"));
    }

    #[test]
    fn an_axis_has_five_to_ten_round_figures() {
        assert_eq!([100.0, 37.0, 1.0, 0.0].map(step), [10.0, 5.0, 0.1, 1.0]);
    }
}
