//! Statistics of samples: means, medians, confidence intervals, regression lines.

use fastrand::Rng;
use serde::Serialize;

/// A summary of samples. All figures except the number of samples are in the unit of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Summary {
    pub(crate) n: usize,
    pub(crate) mean: f64,
    /// The sample standard deviation (with the divisor n - 1); 0 for a single sample.
    pub(crate) deviation: f64,
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Summary {
    /// Returns the summary; `None` if there are no samples.
    pub(crate) fn of(samples: &[f64]) -> Option<Summary> {
        let sorted = sorted(samples);
        let n = sorted.len();
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let mean = sorted.iter().sum::<f64>() / n as f64;
        let squares: f64 = sorted.iter().map(|x| (x - mean).powi(2)).sum();
        let deviation = if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 };
        Some(Summary { n, mean, deviation, median: median_of_sorted(&sorted)?, min, max })
    }
}

/// Returns the median: the middle sample, or the mean of the two middle samples.
pub(crate) fn median(samples: &[f64]) -> Option<f64> {
    median_of_sorted(&sorted(samples))
}

/// Returns the `q`-quantile by linear interpolation between samples; `q` is from 0 to 1.
pub(crate) fn quantile(samples: &[f64], q: f64) -> Option<f64> {
    let sorted = sorted(samples);
    let position = q.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted.get(position.floor() as usize)?, sorted.get(position.ceil() as usize)?);
    Some(low + (high - low) * position.fract())
}

/// Returns the indices of outliers. These are samples below the first or above the third quartile by more
/// than three times the interquartile range.
pub(crate) fn outliers(samples: &[f64]) -> Vec<usize> {
    let Some((low, high)) = quantile(samples, 0.25).zip(quantile(samples, 0.75)) else { return Vec::new() };
    let distance = 3.0 * (high - low);
    let is_outlier = |x: f64| x < low - distance || x > high + distance;
    samples.iter().enumerate().filter(|(_, x)| is_outlier(**x)).map(|(index, _)| index).collect()
}

/// The straight line that fits points best, by least squares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Line {
    pub(crate) slope: f64,
    pub(crate) intercept: f64,
    /// Coefficient of determination: the fraction of the variance of y that the line explains.
    pub(crate) r_squared: f64,
    /// The largest vertical distance of a point from the line.
    pub(crate) max_residual: f64,
}

impl Line {
    /// Returns the line that fits the points best; `None` unless at least two points differ in x.
    pub(crate) fn through(points: &[(f64, f64)]) -> Option<Line> {
        let n = points.len() as f64;
        let mean = |coordinate: fn(&(f64, f64)) -> f64| points.iter().map(coordinate).sum::<f64>() / n;
        let (x, y) = (mean(|p| p.0), mean(|p| p.1));
        let sum = |term: &dyn Fn(f64, f64) -> f64| points.iter().map(|p| term(p.0 - x, p.1 - y)).sum::<f64>();
        let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
        if points.len() < 2 || xx == 0.0 {
            return None;
        }
        let slope = xy / xx;
        let line = Line { slope, intercept: y - slope * x, r_squared: 1.0, max_residual: 0.0 };
        let r_squared = if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 };
        let max_residual = points.iter().map(|p| (p.1 - line.at(p.0)).abs()).fold(0.0, f64::max);
        Some(Line { r_squared, max_residual, ..line })
    }

    pub(crate) fn at(&self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }
}

const RESAMPLE_COUNT: usize = 2_000;
/// Seed of the pseudo-random numbers. It is constant so that the same samples always give the same interval.
const SEED: u64 = 1;

/// A 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Interval {
    /// Returns the confidence interval of the ratio of two medians, by the bootstrap method. The samples of
    /// numerator and denominator are resampled independently. Returns `None` if it cannot be computed.
    pub(crate) fn of_ratio(numerator: &[f64], denominator: &[f64]) -> Option<Interval> {
        let mut random = Rng::with_seed(SEED);
        Interval::of_resamples(|| {
            let numerator = median(&resample(&mut random, numerator))?;
            let denominator = median(&resample(&mut random, denominator))?;
            (denominator != 0.0).then(|| numerator / denominator)
        })
    }

    pub(crate) fn excludes(&self, value: f64) -> bool {
        value < self.low || self.high < value
    }

    fn of_resamples(mut resampled_figure: impl FnMut() -> Option<f64>) -> Option<Interval> {
        let figures = (0..RESAMPLE_COUNT).map(|_| resampled_figure()).collect::<Option<Vec<f64>>>()?;
        Some(Interval { low: quantile(&figures, 0.025)?, high: quantile(&figures, 0.975)? })
    }
}

/// Draws random elements of `samples` with replacement, and returns as many as there are samples.
fn resample(random: &mut Rng, samples: &[f64]) -> Vec<f64> {
    samples.iter().filter_map(|_| random.choice(samples).copied()).collect()
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    sorted.get(middle.wrapping_sub(1)).map(|lower| (lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::literature::PublishedTable;

    #[test]
    fn summaries_medians_and_quantiles_are_exact() {
        let summary = Summary::of(&[4.0, 2.0, 9.0, 5.0]).unwrap();
        assert_eq!((summary.n, summary.mean, summary.median), (4, 5.0, 4.5));
        assert_eq!((summary.min, summary.max), (2.0, 9.0));
        assert!((summary.deviation - (26.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(Summary::of(&[7.0]).unwrap().deviation, 0.0);
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(median(&[1.0, 9.0, 2.0]), Some(2.0));
        assert_eq!(quantile(&[0.0, 10.0, 20.0], 0.75), Some(15.0));
    }

    #[test]
    fn only_samples_far_from_the_quartiles_are_outliers() {
        assert_eq!(outliers(&[10.0, 11.0, 10.5, 60.0, 10.2, 10.8, 0.1]), [3, 6]);
        assert!(outliers(&[10.0, 11.0, 12.0, 13.5]).is_empty());
        assert!(outliers(&[]).is_empty());
    }

    #[test]
    fn intervals_contain_the_ratio_and_exclude_1_only_for_different_samples() {
        let near: Vec<f64> = (0..20).map(|i| 10.0 + f64::from(i % 5) / 10.0).collect();
        let far: Vec<f64> = near.iter().map(|x| x * 1.5).collect();
        let interval = Interval::of_ratio(&far, &near).unwrap();
        assert!(interval.low <= 1.5 && 1.5 <= interval.high && interval.low >= 1.4, "{interval:?}");
        assert!(interval.excludes(1.0));
        assert!(!Interval::of_ratio(&near, &near).unwrap().excludes(1.0));
        assert_eq!(Interval::of_ratio(&far, &near), Some(interval), "the same each time");
        assert_eq!(Interval::of_ratio(&far, &[]), None);
    }

    #[test]
    fn a_line_needs_points_that_differ_in_x() {
        assert_eq!(Line::through(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(Line::through(&[(1.0, 2.0)]), None);
        let line = Line::through(&[(0.0, 1.0), (2.0, 5.0)]).unwrap();
        assert_eq!((line.slope, line.intercept, line.r_squared, line.max_residual), (2.0, 1.0, 1.0, 0.0));
        assert_eq!(line.at(3.0), 7.0);
    }

    /// The lines through the published call-and-return series have the published slope and intercept, in
    /// every printed digit.
    #[test]
    fn published_lines_are_reproduced_from_the_published_series() {
        let series = PublishedTable::of("rtorb00.f1").unwrap();
        let mut lines = 0;
        for (id, kind) in [("rtorb00.t1", "float"), ("rtorb00.t2", "record"), ("rtorb00.t3", "na_record")] {
            let table = PublishedTable::of(id).unwrap();
            for row in &table.rows {
                let middleware = table.text(row, "middleware").unwrap();
                let column = match middleware {
                    "Socket" => "socket_ms".to_owned(),
                    orb => format!("{}_{kind}_ms", orb.to_lowercase()),
                };
                let mut points = series.points("message_size_bytes", &column);
                if column == "tao_na_record_ms" {
                    // Each of the last two means is distorted by a single sample. The source omits them.
                    points.truncate(9);
                }
                let line = Line::through(&points).unwrap();
                for (name, figure) in [("slope_ms_per_byte", line.slope), ("intercept_ms", line.intercept)] {
                    let printed = table.text(row, name).unwrap();
                    let digits = printed.split_once('.').unwrap().1.len();
                    assert_eq!(format!("{figure:.digits$}"), printed, "{id} {middleware} {name}");
                }
                lines += 1;
            }
        }
        assert_eq!(lines, 9);
    }

    /// All lines in the table of refitted lines are lines through the published series.
    #[test]
    fn refitted_lines_are_reproduced_from_the_published_series() {
        let refit = PublishedTable::of("rtorb00.refit").unwrap();
        let figures = [("figure 1", "rtorb00.f1"), ("figure 6", "rtorb00.f6")];
        let mut lines = 0;
        for row in &refit.rows {
            let Some(from) = refit.text(row, "series_from") else { continue };
            let (_, id) = figures.iter().find(|(name, _)| *name == from).unwrap_or_else(|| panic!("{from}"));
            let series = PublishedTable::of(id).unwrap();
            let column = match (refit.text(row, "middleware").unwrap(), refit.text(row, "data_type")) {
                ("Socket", _) => "socket_ms".to_owned(),
                (orb, kind) => {
                    format!(
                        "{}_{}_ms",
                        orb.to_lowercase(),
                        kind.unwrap().to_lowercase().replace([' ', '-'], "_")
                    )
                }
            };
            let mut points = series.points("message_size_bytes", &column);
            // The source omits the last two points of some series.
            points.truncate(refit.number(row, "points").unwrap() as usize);
            let line = Line::through(&points).unwrap_or_else(|| panic!("{from} {column}"));
            let shown = [
                ("refit_slope_ms_per_byte", format!("{:.8}", line.slope)),
                ("refit_intercept_ms", format!("{:.6}", line.intercept)),
                ("r_squared", format!("{:.6}", line.r_squared)),
                ("largest_residual_ms", format!("{:.4}", line.max_residual)),
            ];
            for (name, figure) in shown {
                assert_eq!(Some(figure.as_str()), refit.text(row, name), "{from} {column} {name}");
            }
            lines += 1;
        }
        assert_eq!(lines, 16);
    }
}
