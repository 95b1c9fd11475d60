//! The JSON form of IDL values, for comparison with a script and for the log.

use std::io::{self, Write};

use zorb::Any;
use zorb::dynamic::Dynamic;

/// The maximum size of values that are decoded on a request's thread. For a comparison, it limits the total
/// size of the compared arguments. Larger ones are decoded on a blocking thread. In the log, a larger value
/// is replaced with its size.
pub(super) const MAX_INLINE_BYTES: usize = 64 << 10;

/// The number of bytes after which a logged value is truncated.
const MAX_LOGGED_BYTES: usize = 4 << 10;

/// Returns whether `json` is the JSON form of a value. The comparison stops at the first difference.
pub(super) fn has_json(value: &Dynamic, json: &str) -> bool {
    let mut writer = CompareWriter(json.as_bytes());
    value.write_json(&mut writer).is_ok() && writer.0.is_empty()
}

/// Returns values as JSON for the log. Long values are truncated. Values without a JSON form become null.
pub(super) fn log_text<'a>(values: impl Iterator<Item = (&'a str, &'a Any)>) -> String {
    let one =
        |(name, value): (&str, &Any)| format!("{}:{}", serde_json::Value::from(name), value_log_text(value));
    let all: Vec<String> = values.map(one).collect();
    format!("{{{}}}", all.join(","))
}

fn value_log_text(value: &Any) -> String {
    if value.byte_len() > MAX_INLINE_BYTES {
        return format!("({} bytes)", value.byte_len());
    }
    let mut writer = TruncatingWriter { text: Vec::new(), is_truncated: false };
    let result = value.to_dynamic().and_then(|value| value.write_json(&mut writer));
    let text = String::from_utf8_lossy(&writer.text);
    match result {
        Ok(()) => text.into_owned(),
        Err(_) if writer.is_truncated => format!("{}...", text.trim_end_matches(char::REPLACEMENT_CHARACTER)),
        Err(_) => "null".to_owned(),
    }
}

/// A writer that compares text with the expected text, and fails at a difference. It contains the expected
/// text that has not been written yet.
struct CompareWriter<'t>(&'t [u8]);

impl Write for CompareWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.strip_prefix(bytes).ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A writer that keeps the start of a text. It fails when the text is too long.
struct TruncatingWriter {
    text: Vec<u8>,
    is_truncated: bool,
}

impl Write for TruncatingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let remaining = MAX_LOGGED_BYTES - self.text.len();
        self.text.extend_from_slice(bytes.get(..remaining).unwrap_or(bytes));
        self.is_truncated = bytes.len() > remaining;
        if self.is_truncated { Err(io::ErrorKind::WriteZero.into()) } else { Ok(bytes.len()) }
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
    fn a_value_is_compared_with_json() {
        let list = Dynamic::from_json(&TypeCode::sequence(&TypeCode::LONG, 0), "[1, 2]").unwrap();
        for (text, same) in
            [("[1,2]", true), ("[1,2", false), ("[1,2]]", false), ("[1,3]", false), ("", false)]
        {
            assert_eq!(has_json(&list, text), same, "{text}");
        }
    }

    #[test]
    fn long_values_are_truncated_and_of_large_values_only_the_size_is_logged() {
        let of = |len: usize| Any::new("\u{e4}".repeat(len)).unwrap();
        assert_eq!(
            log_text([("a", &of(1)), ("b", &of(2))].into_iter()),
            "{\"a\":\"\u{e4}\",\"b\":\"\u{e4}\u{e4}\"}"
        );
        let truncated = log_text([("a", &of(5000))].into_iter());
        assert!(
            truncated.ends_with("\u{e4}...}") && truncated.len() <= MAX_LOGGED_BYTES + 16,
            "{}",
            truncated.len()
        );
        assert_eq!(log_text([("a", &of(MAX_INLINE_BYTES))].into_iter()), "{\"a\":(131077 bytes)}");
    }
}
