//! Parts of the command line that several commands share.

use std::time::Duration;

use clap::{ArgMatches, FromArgMatches};

/// The options of a command, defined only if needed, so that other commands start faster.
#[derive(Debug)]
pub(crate) struct LazyArgs<T>(pub(crate) T);

impl<T: clap::Args> clap::Args for LazyArgs<T> {
    fn augment_args(command: clap::Command) -> clap::Command {
        // `augment_args` replaces the description of the command. Therefore, it is set again.
        command.defer(|command| {
            let about = command.get_about().cloned().unwrap_or_default();
            T::augment_args(command).about(about).long_about(None)
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for LazyArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Parses a time such as `500ms`, `2s` or `1.5`. A number without a unit is in seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (digits, scale) = match text.strip_suffix("ms") {
        Some(digits) => (digits, 1e-3),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let seconds = digits.trim().parse::<f64>().ok().map(|number| number * scale);
    seconds
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected a time above zero, such as 500ms, 2s or 1.5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_milliseconds() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        for wrong in ["", "0", "-1", "1h", "NaN", "inf", "1e300"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
