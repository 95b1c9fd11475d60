//! Formatting of JSON with line breaks. The JSON is not parsed into a tree in memory.
//!
//! `serde_json` is not used for this, because it rounds long numbers and limits the nesting depth.

use std::fmt::Write as _;

use anstyle::Style;
use giop_codec::is_printable;

/// The number of formatted bytes that are passed to `write` at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Formats valid JSON in pieces, with an indentation of two spaces, each line in `style`. Control and format
/// characters are escaped like `\u202e`. If `write` returns false, the rest is omitted.
pub(crate) fn write_pretty(
    json: &str,
    style: Style,
    mut write: impl FnMut(&str) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let mut out = style.to_string();
    let break_line = |out: &mut String, depth: usize| {
        let _ = write!(out, "{style:#}\n{style}{:1$}", "", depth * 2);
    };
    let (mut depth, mut in_string, mut is_escaped, mut follows_open_bracket) = (0_usize, false, false, false);
    for c in json.chars() {
        if in_string {
            push_escaped(&mut out, c);
        } else if !c.is_ascii_whitespace() {
            let closes = matches!(c, '}' | ']');
            depth -= usize::from(closes).min(depth);
            // Empty brackets stay on one line.
            if follows_open_bracket != closes {
                break_line(&mut out, depth);
            }
            follows_open_bracket = matches!(c, '{' | '[');
            depth += usize::from(follows_open_bracket);
            out.push(c);
            match c {
                ',' => break_line(&mut out, depth),
                ':' => out.push(' '),
                _ => {}
            }
        }
        (in_string, is_escaped) = next_state(c, in_string, is_escaped);
        if out.len() >= PIECE_BYTES {
            if !write(&out)? {
                return Ok(());
            }
            out.clear();
        }
    }
    let _ = writeln!(out, "{style:#}");
    write(&out).map(drop)
}

/// Returns whether the position after `c` is inside a string, and whether the next character is escaped.
fn next_state(c: char, in_string: bool, is_escaped: bool) -> (bool, bool) {
    match c {
        '"' if !is_escaped => (!in_string, false),
        '\\' if in_string => (true, !is_escaped),
        _ => (in_string, false),
    }
}

/// Returns JSON with control and format characters escaped like `\u202e`.
pub(crate) fn escaped_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    json.chars().for_each(|c| push_escaped(&mut out, c));
    out
}

fn push_escaped(out: &mut String, c: char) {
    // ASCII control characters are not escaped here, because they can only be white space between values.
    // Inside a JSON string, they are already escaped.
    if c < ' ' || is_printable(c) {
        return out.push(c);
    }
    for unit in c.encode_utf16(&mut [0; 2]) {
        let _ = write!(out, "\\u{unit:04x}");
    }
}

#[cfg(test)]
mod tests {
    use anstyle::AnsiColor;

    use super::*;

    fn format(json: &str, style: Style) -> (String, usize) {
        let (mut text, mut pieces) = (String::new(), 0);
        let write = |piece: &str| {
            text.push_str(piece);
            pieces += 1;
            Ok(true)
        };
        write_pretty(json, style, write).unwrap();
        (text, pieces)
    }

    #[test]
    fn json_is_formatted_as_by_serde_json() {
        for value in [
            serde_json::json!({}),
            serde_json::json!([]),
            serde_json::json!("a\\\"{[,: ]}\\"),
            serde_json::json!({ "a": { "b": [], "c": {} }, "d": [[1, 2.5], [null, true, "x: y,"]] }),
            serde_json::json!([[["\\"]], "\\\\", {}]),
        ] {
            let lines = serde_json::to_string_pretty(&value).unwrap() + "\n";
            assert_eq!(format(&value.to_string(), Style::new()).0, lines);
            assert_eq!(format(&lines, Style::new()).0, lines, "formatted JSON is formatted again");
        }
    }

    #[test]
    fn numbers_and_repeated_members_are_not_changed() {
        let json = r#"{"b":18446744073709551617,"a":1.0e400,"a":0.10}"#;
        assert_eq!(
            format(json, Style::new()).0,
            "{\n  \"b\": 18446744073709551617,\n  \"a\": 1.0e400,\n  \"a\": 0.10\n}\n"
        );
    }

    #[test]
    fn each_line_has_the_style() {
        let red = AnsiColor::Red.on_default();
        assert_eq!(format("[1]", red).0, format!("{red}[{red:#}\n{red}  1{red:#}\n{red}]{red:#}\n"));
    }

    #[test]
    fn long_json_is_written_in_pieces() {
        let value = serde_json::json!([["\u{202e}".repeat(1 << 16)], vec![vec![0; 0]; 1 << 16]]);
        let (text, pieces) = format(&value.to_string(), Style::new());
        assert_eq!(text, escaped_json(&serde_json::to_string_pretty(&value).unwrap()) + "\n");
        assert!(pieces > text.len() / PIECE_BYTES / 2, "{pieces}");
        let mut pieces = 0;
        let once = |_: &str| {
            pieces += 1;
            Ok(false)
        };
        write_pretty(&value.to_string(), Style::new(), once).unwrap();
        assert_eq!(pieces, 1, "the output must stop after `write` returned false");
    }
}
