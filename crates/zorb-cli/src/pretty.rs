//! Formatting of JSON in multiple lines, without a tree in memory.
//!
//! `serde_json` could transcode it, but it would round long numbers, and it limits the nesting depth.

use std::fmt::Write as _;

use anstyle::Style;
use giop_codec::is_printable;

/// Maximum bytes per write.
const PIECE: usize = 64 << 10;

/// Writes valid JSON indented by two, each line in this style, with control and format characters escaped as
/// `\u202e`. `write` returns false to stop the output.
///
/// # Errors
/// Those of `write`.
pub(crate) fn pretty(
    json: &str,
    style: Style,
    mut write: impl FnMut(&str) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let mut out = style.to_string();
    let line = |out: &mut String, depth: usize| {
        let _ = write!(out, "{style:#}\n{style}{:1$}", "", depth * 2);
    };
    let (mut depth, mut in_text, mut is_escaped, mut is_opened) = (0_usize, false, false, false);
    for c in json.chars() {
        if in_text {
            push_escaped(&mut out, c);
        } else if !c.is_ascii_whitespace() {
            let closes = matches!(c, '}' | ']');
            depth -= usize::from(closes).min(depth);
            // An empty pair of brackets stays on one line.
            if is_opened != closes {
                line(&mut out, depth);
            }
            is_opened = matches!(c, '{' | '[');
            depth += usize::from(is_opened);
            out.push(c);
            match c {
                ',' => line(&mut out, depth),
                ':' => out.push(' '),
                _ => {}
            }
        }
        (in_text, is_escaped) = after(c, in_text, is_escaped);
        if out.len() >= PIECE {
            if !write(&out)? {
                return Ok(());
            }
            out.clear();
        }
    }
    let _ = writeln!(out, "{style:#}");
    write(&out).map(drop)
}

/// Returns whether the position after a character is inside a string, and whether the next character is
/// escaped.
fn after(c: char, in_text: bool, is_escaped: bool) -> (bool, bool) {
    match c {
        '"' if !is_escaped => (!in_text, false),
        '\\' if in_text => (true, !is_escaped),
        _ => (in_text, false),
    }
}

/// Returns the JSON with control and format characters escaped as `\u202e`.
pub(crate) fn escaped_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    json.chars().for_each(|c| push_escaped(&mut out, c));
    out
}

fn push_escaped(out: &mut String, c: char) {
    // ASCII control characters are white space between values. Inside strings they are escaped already,
    // except DEL.
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

    fn all(json: &str, style: Style) -> (String, usize) {
        let (mut text, mut pieces) = (String::new(), 0);
        let write = |piece: &str| {
            text.push_str(piece);
            pieces += 1;
            Ok(true)
        };
        pretty(json, style, write).unwrap();
        (text, pieces)
    }

    #[test]
    fn json_has_the_lines_of_serde_json() {
        for value in [
            serde_json::json!({}),
            serde_json::json!([]),
            serde_json::json!("a\\\"{[,: ]}\\"),
            serde_json::json!({ "a": { "b": [], "c": {} }, "d": [[1, 2.5], [null, true, "x: y,"]] }),
            serde_json::json!([[["\\"]], "\\\\", {}]),
        ] {
            let lines = serde_json::to_string_pretty(&value).unwrap() + "\n";
            assert_eq!(all(&value.to_string(), Style::new()).0, lines);
            assert_eq!(all(&lines, Style::new()).0, lines, "lines are made anew");
        }
    }

    #[test]
    fn numbers_and_members_stay_as_they_are_written() {
        let json = r#"{"b":18446744073709551617,"a":1.0e400,"a":0.10}"#;
        assert_eq!(
            all(json, Style::new()).0,
            "{\n  \"b\": 18446744073709551617,\n  \"a\": 1.0e400,\n  \"a\": 0.10\n}\n"
        );
    }

    #[test]
    fn each_line_has_the_style() {
        let red = AnsiColor::Red.on_default();
        assert_eq!(all("[1]", red).0, format!("{red}[{red:#}\n{red}  1{red:#}\n{red}]{red:#}\n"));
    }

    #[test]
    fn long_json_is_written_in_pieces() {
        let value = serde_json::json!([["\u{202e}".repeat(1 << 16)], vec![vec![0; 0]; 1 << 16]]);
        let (text, pieces) = all(&value.to_string(), Style::new());
        assert_eq!(text, escaped_json(&serde_json::to_string_pretty(&value).unwrap()) + "\n");
        assert!(pieces > text.len() / PIECE / 2, "{pieces}");
        let mut pieces = 0;
        let once = |_: &str| {
            pieces += 1;
            Ok(false)
        };
        pretty(&value.to_string(), Style::new(), once).unwrap();
        assert_eq!(pieces, 1, "nothing more is wanted");
    }
}
