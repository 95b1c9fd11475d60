//! [`Limits`] from environment variables, and from a section of a configuration file (feature `serde`).

use std::time::Duration;

use giop_codec::exception::SystemException;

use super::Limits;

/// The prefix of the names of environment variables that set limits.
const PREFIX: &str = "ZORB_LIMITS_";

/// The error of an invalid setting of a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// The value does not have the expected form.
    #[error("{name}: `{value}` is not {expected}")]
    Value {
        /// The variable or field.
        name: String,
        /// The value found.
        value: String,
        /// The expected form, with an example.
        expected: &'static str,
    },
    /// No limit has this name.
    #[error("{name}: there is no limit with this name; the limits are {}", FIELDS.join(", "))]
    Unknown {
        /// The variable or field.
        name: String,
    },
    /// The variable is not valid UTF-8.
    #[error("{name}: the value is not valid UTF-8")]
    NotUtf8 {
        /// The variable.
        name: String,
    },
}

/// Becomes `BAD_PARAM` with `COMPLETED_NO`.
impl From<LimitsError> for SystemException {
    fn from(error: LimitsError) -> Self {
        Self::bad_param().with_source(error)
    }
}

impl Limits {
    /// Returns the default limits, overridden by environment variables.
    ///
    /// The name of a variable is `ZORB_LIMITS_` followed by the name of the limit in upper case, such as in
    /// `ZORB_LIMITS_MAX_MESSAGE_SIZE=64MiB`. An empty variable counts as unset.
    ///
    /// Sizes and rates are numbers of bytes, optionally with a unit: `B`, `KiB`, `MiB`, `GiB`, `kB`, `MB` or
    /// `GB`. Times are `never`, or numbers with `ms`, `s`, `min` or `h`. Other values are whole numbers.
    ///
    /// # Errors
    /// [`LimitsError`] names the variable and the expected form. A variable with the prefix whose name is not
    /// that of a limit is an error, because it would have no effect.
    ///
    /// ```
    /// # use giop_proto::Limits;
    /// let limits = Limits::from_env()?;
    /// assert_eq!(limits, Limits::default());
    /// # Ok::<(), giop_proto::LimitsError>(())
    /// ```
    pub fn from_env() -> Result<Self, LimitsError> {
        Self::default().with_env()
    }

    /// Returns these limits, overridden by environment variables in the format of
    /// [`from_env`](Self::from_env). Variables can thus take precedence over a configuration file.
    ///
    /// # Errors
    /// See [`from_env`](Self::from_env).
    pub fn with_env(mut self) -> Result<Self, LimitsError> {
        let mut variables: Vec<_> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .filter(|(name, _)| name.starts_with(PREFIX))
            .collect();
        // The variables are sorted, so that the reported error does not depend on their order.
        variables.sort();
        for (name, value) in variables {
            let Ok(value) = value.into_string() else { return Err(LimitsError::NotUtf8 { name }) };
            self.set_variable(name, value)?;
        }
        Ok(self)
    }

    fn set_variable(&mut self, name: String, value: String) -> Result<(), LimitsError> {
        if value.is_empty() {
            return Ok(());
        }
        let field = name.strip_prefix(PREFIX).unwrap_or_default();
        let is_upper = field.chars().all(|c| !c.is_ascii_lowercase());
        match self.set(&field.to_ascii_lowercase(), &value) {
            _ if !is_upper => Err(LimitsError::Unknown { name }),
            None => Err(LimitsError::Unknown { name }),
            Some(Err(expected)) => Err(LimitsError::Value { name, value, expected }),
            Some(Ok(())) => Ok(()),
        }
    }
}

type ParseResult<T> = Result<T, &'static str>;

/// Defines the setter of limits by name. Each line has a limit and the function that parses it.
macro_rules! settings {
    ($($field:ident $read:ident,)+) => {
        const FIELDS: &[&str] = &[$(stringify!($field)),+];

        impl Limits {
            /// Sets the limit with this name. Returns `None` if there is none.
            fn set(&mut self, field: &str, value: &str) -> Option<ParseResult<()>> {
                Some(match field {
                    $(stringify!($field) => $read(value).map(|value| self.$field = value),)+
                    _ => return None,
                })
            }
        }
    };
}

settings! {
    max_message_size size,
    max_stream_size size,
    max_fragmented count,
    max_fragment_memory size,
    max_requests count,
    max_total_requests count,
    max_held_requests count,
    max_held_bytes size,
    max_backlog size,
    max_depth count,
    max_decoded size,
    max_control_rate count,
    max_unanswered count,
    first_header_timeout time,
    message_timeout time,
    min_message_rate size,
    write_timeout time,
    min_write_rate size,
    idle_timeout optional_time,
    linger_timeout time,
}

/// Parses a number of bytes, with or without a unit.
fn size<T: TryFrom<u64>>(text: &str) -> ParseResult<T> {
    const FORM: &str = "a size of at least one byte, such as `64MiB` or `65536`";
    let (number, unit) = split_number(text).ok_or(FORM)?;
    let scale: u64 = match unit {
        "" | "B" => 1,
        "kB" => 1000,
        "MB" => 1000 * 1000,
        "GB" => 1000 * 1000 * 1000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(FORM),
    };
    let bytes = number.checked_mul(scale).filter(|bytes| *bytes > 0).ok_or(FORM)?;
    T::try_from(bytes).map_err(|_| FORM)
}

fn count<T: TryFrom<u64>>(text: &str) -> ParseResult<T> {
    const FORM: &str = "a whole number of at least 1 that is in range, such as `256`";
    match split_number(text) {
        Some((number @ 1.., "")) => T::try_from(number).map_err(|_| FORM),
        _ => Err(FORM),
    }
}

fn time(text: &str) -> ParseResult<Duration> {
    const FORM: &str = "a time with its unit, such as `30s`, `500ms`, `2min` or `1h`, or `never`";
    if text.trim() == "never" {
        return Ok(Duration::MAX);
    }
    let (number, unit) = split_number(text).ok_or(FORM)?;
    let seconds = |each: u64| number.checked_mul(each).map(Duration::from_secs).ok_or(FORM);
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => seconds(1),
        "min" => seconds(60),
        "h" => seconds(3600),
        _ => Err(FORM),
    }
}

fn optional_time(text: &str) -> ParseResult<Option<Duration>> {
    time(text).map(Some)
}

/// Splits a text into the whole number at its start and the unit after it, without white space.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim_start()))
}

#[cfg(feature = "serde")]
mod read {
    use std::collections::BTreeMap;
    use std::fmt;

    use serde::de::{Deserialize, Deserializer, Error, Visitor};

    use super::{FIELDS, Limits, LimitsError};

    /// The fields are the names of the limits, with values in the format of [`from_env`](Limits::from_env) or
    /// plain numbers. A missing field has its default value, and an unknown field is an error.
    ///
    /// ```toml
    /// [limits]
    /// max_message_size = "64 MiB"
    /// max_requests = 1024
    /// write_timeout = "10 s"
    /// ```
    impl<'de> Deserialize<'de> for Limits {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            let mut limits = Self::default();
            for (name, Text(value)) in BTreeMap::<String, Text>::deserialize(from)? {
                match limits.set(&name, &value) {
                    Some(Ok(())) => {}
                    Some(Err(expected)) => {
                        return Err(D::Error::custom(LimitsError::Value { name, value, expected }));
                    }
                    None => return Err(D::Error::unknown_field(&name, FIELDS)),
                }
            }
            Ok(limits)
        }
    }

    /// A text, or a number converted to text.
    struct Text(String);

    impl<'de> Deserialize<'de> for Text {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            from.deserialize_any(Scalar)
        }
    }

    struct Scalar;

    impl Visitor<'_> for Scalar {
        type Value = Text;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text such as \"64 MiB\" or \"30 s\", or a whole number")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
            Ok(Text(text.to_owned()))
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<Text, E> {
            Ok(Text(number.to_string()))
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<Text, E> {
            Ok(Text(number.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Result<Limits, LimitsError> {
        let mut limits = Limits::default();
        for (name, value) in variables {
            limits.set_variable((*name).to_owned(), (*value).to_owned())?;
        }
        Ok(limits)
    }

    #[test]
    fn every_limit_has_a_name_and_no_other_field_has() {
        let shown = format!("{:#?}", Limits::default());
        let fields: Vec<_> =
            shown.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(": ")).collect();
        let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, FIELDS, "a field of `Limits` belongs into `settings!`, with its unit");
    }

    #[test]
    fn sizes_counts_and_times_are_read_with_their_units() {
        let limits = with(&[
            ("ZORB_LIMITS_MAX_MESSAGE_SIZE", "64MiB"),
            ("ZORB_LIMITS_MAX_STREAM_SIZE", "1 GiB"),
            ("ZORB_LIMITS_MAX_BACKLOG", "65536"),
            ("ZORB_LIMITS_MIN_WRITE_RATE", "2 kB"),
            ("ZORB_LIMITS_MAX_REQUESTS", "1024"),
            ("ZORB_LIMITS_MAX_DEPTH", "32"),
            ("ZORB_LIMITS_MESSAGE_TIMEOUT", "500ms"),
            ("ZORB_LIMITS_WRITE_TIMEOUT", "2 min"),
            ("ZORB_LIMITS_LINGER_TIMEOUT", "never"),
            ("ZORB_LIMITS_IDLE_TIMEOUT", "1h"),
            ("ZORB_LIMITS_MAX_DECODED", ""),
        ])
        .unwrap();
        let expected = Limits {
            max_message_size: 64 << 20,
            max_stream_size: 1 << 30,
            max_backlog: 65536,
            min_write_rate: 2000,
            max_requests: 1024,
            max_depth: 32,
            message_timeout: Duration::from_millis(500),
            write_timeout: Duration::from_secs(120),
            linger_timeout: Duration::MAX,
            idle_timeout: Some(Duration::from_secs(3600)),
            ..Limits::default()
        };
        assert_eq!(limits, expected);
    }

    #[test]
    fn wrong_value_is_named_with_the_right_form() {
        for (name, value, part) in [
            ("MAX_MESSAGE_SIZE", "lots", "`64MiB`"),
            ("MAX_MESSAGE_SIZE", "0", "at least one byte"),
            ("MAX_MESSAGE_SIZE", "-1", "a size"),
            ("MAX_MESSAGE_SIZE", "99999999999999999999", "a size"),
            ("MAX_MESSAGE_SIZE", "99999999999 GiB", "a size"),
            ("MAX_MESSAGE_SIZE", "1 mib", "a size"),
            ("MAX_DEPTH", "70000", "in range"),
            ("MAX_REQUESTS", "1 KiB", "a whole number"),
            ("WRITE_TIMEOUT", "30", "a time with its unit"),
            ("WRITE_TIMEOUT", "99999999999999999 h", "a time"),
        ] {
            let name = format!("ZORB_LIMITS_{name}");
            let error = with(&[(&name, value)]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name}: `{value}` is not ")), "{error}");
            assert!(error.contains(part), "{error}");
        }
        for name in ["ZORB_LIMITS_MAX_MESAGE_SIZE", "ZORB_LIMITS_max_depth", "ZORB_LIMITS_"] {
            let error = with(&[(name, "1")]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name}: there is no limit with this name")), "{error}");
            assert!(error.contains("max_message_size, max_stream_size"), "{error}");
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn section_of_toml_is_read_and_what_is_unknown_refused() {
        #[derive(serde::Deserialize)]
        struct Config {
            limits: Limits,
        }
        let read = |text: &str| toml::from_str::<Config>(text).map(|config| config.limits);
        let text = "[limits]\nmax_message_size = \"64 MiB\"\nmax_requests = 1024\nwrite_timeout = \"10 s\"\n";
        let expected = Limits {
            max_message_size: 64 << 20,
            max_requests: 1024,
            write_timeout: Duration::from_secs(10),
            ..Limits::default()
        };
        assert_eq!(read(text).unwrap(), expected);
        assert_eq!(read("[limits]\n").unwrap(), Limits::default());
        for (line, part) in [
            ("max_mesage_size = 1", "unknown field `max_mesage_size`"),
            ("max_message_size = \"lots\"", "max_message_size: `lots` is not a size"),
            ("max_requests = -1", "max_requests: `-1` is not a whole number"),
            ("write_timeout = 30", "write_timeout: `30` is not a time with its unit"),
            ("write_timeout = true", "expected a text such as"),
        ] {
            let error = read(&format!("[limits]\n{line}\n")).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
