//! Values in scripts and in lines of the log.

use std::io::{self, Write};

use zorb::Any;
use zorb::dynamic::Dynamic;

/// Maximum bytes of a value that is decoded unconditionally. For larger ones, lines of the log show only the
/// size.
pub(super) const LOOKED_AT: usize = 64 << 10;

/// Maximum bytes of text for one value in a line of the log.
const TOLD: usize = 4 << 10;

/// Returns whether this text is the JSON of a value. Stops at the first difference.
pub(super) fn is_told(value: &Dynamic, text: &str) -> bool {
    let mut rest = Same(text.as_bytes());
    value.write_json(&mut rest).is_ok() && rest.0.is_empty()
}

/// Returns values by their names as a JSON object for a line of the log. Each value is truncated after 4 KiB,
/// and is null if it has no JSON form.
pub(super) fn told<'a>(values: impl Iterator<Item = (&'a str, &'a Any)>) -> String {
    let one = |(name, value): (&str, &Any)| format!("{}:{}", serde_json::Value::from(name), told_one(value));
    let all: Vec<String> = values.map(one).collect();
    format!("{{{}}}", all.join(","))
}

fn told_one(value: &Any) -> String {
    if value.byte_len() > LOOKED_AT {
        return format!("({} bytes)", value.byte_len());
    }
    let mut text = Cut { text: Vec::new(), is_cut: false };
    let written = value.to_dynamic().and_then(|value| value.write_json(&mut text));
    let shown = String::from_utf8_lossy(&text.text);
    match written {
        Ok(()) => shown.into_owned(),
        Err(_) if text.is_cut => format!("{}...", shown.trim_end_matches(char::REPLACEMENT_CHARACTER)),
        Err(_) => "null".to_owned(),
    }
}

/// The remainder of an expected text.
struct Same<'t>(&'t [u8]);

impl Write for Same<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.strip_prefix(bytes).ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The truncated start of a text.
struct Cut {
    text: Vec<u8>,
    is_cut: bool,
}

impl Write for Cut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = TOLD - self.text.len();
        self.text.extend_from_slice(bytes.get(..left).unwrap_or(bytes));
        self.is_cut = bytes.len() > left;
        if self.is_cut { Err(io::ErrorKind::WriteZero.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use zorb::TypeCode;

    use super::*;

    #[test]
    fn a_text_is_compared_as_far_as_it_is_the_same() {
        let list = Dynamic::from_json(&TypeCode::sequence(&TypeCode::LONG, 0), "[1, 2]").unwrap();
        for (text, same) in
            [("[1,2]", true), ("[1,2", false), ("[1,2]]", false), ("[1,3]", false), ("", false)]
        {
            assert_eq!(is_told(&list, text), same, "{text}");
        }
    }

    #[test]
    fn long_values_are_cut_and_large_ones_are_told_by_their_size() {
        let of = |len: usize| Any::new("\u{e4}".repeat(len)).unwrap();
        assert_eq!(
            told([("a", &of(1)), ("b", &of(2))].into_iter()),
            "{\"a\":\"\u{e4}\",\"b\":\"\u{e4}\u{e4}\"}"
        );
        let cut = told([("a", &of(5000))].into_iter());
        assert!(cut.ends_with("\u{e4}...}") && cut.len() <= TOLD + 16, "{}", cut.len());
        assert_eq!(told([("a", &of(LOOKED_AT))].into_iter()), "{\"a\":(131077 bytes)}");
    }
}
