//! Messages on standard error: with excerpts of the source, as single lines, or as one JSON object per line.

use std::io::{self, Write};

use idl_compiler::{Diagnostic, Diagnostics, Label, Position, Severity, Sources, printable};
use serde_json::{Value, json};

use crate::options::{Colour, MessageFormat};

/// The maximum number of nested macro expansions in a message.
const MAX_SHOWN_EXPANSIONS: usize = 64;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Messages {
    format: MessageFormat,
    is_coloured: bool,
}

impl Messages {
    pub(crate) fn new(format: MessageFormat, colour: Colour) -> Self {
        Messages { format, is_coloured: colour.is_enabled() }
    }

    pub(crate) fn show(&self, diagnostics: &Diagnostics) {
        match self.format {
            MessageFormat::Human => write_error(&diagnostics.render(self.is_coloured)),
            MessageFormat::Short => {
                let sources = diagnostics.sources();
                let lines = diagnostics.iter().map(|diagnostic| short_line(sources, diagnostic));
                write_error(&lines.collect::<String>());
            }
            MessageFormat::Json => {
                let json = |diagnostic| escaped_json(&diagnostic_json(diagnostics, diagnostic).to_string());
                let lines = diagnostics.iter().map(|diagnostic| json(diagnostic) + "\n");
                write_error(&lines.collect::<String>());
            }
        }
    }

    pub(crate) fn error(&self, code: &str, message: &str) {
        match self.format {
            MessageFormat::Human | MessageFormat::Short => {
                let (start, end) = if self.is_coloured { ("\x1b[1;91m", "\x1b[0m") } else { ("", "") };
                write_error(&format!("{start}error{end}: {}\n", printable(message)));
            }
            MessageFormat::Json => {
                write_error(&format!("{}\n", escaped_json(&error_json(code, message).to_string())));
            }
        }
    }
}

/// Writes to standard error. Nothing happens if standard error is closed.
fn write_error(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Returns JSON in which control and format characters are escaped like `\u202e`.
pub(crate) fn escaped_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        // ASCII control characters are escaped already in strings; elsewhere they are white space.
        if c < '\u{7f}' || printable(c.encode_utf8(&mut [0; 4])).chars().eq([c]) {
            out.push(c);
        } else {
            out.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    out
}

/// Formats a diagnostic as one line in the form of `grep -n`, which editors can parse.
fn short_line(sources: &Sources, diagnostic: &Diagnostic) -> String {
    let location = diagnostic.span().map_or(String::new(), |span| format!("{}: ", sources.position(span)));
    let message = printable(&diagnostic.message).replace('\n', " ");
    let (severity, code) = (severity_name(diagnostic.severity), diagnostic.code);
    format!("{}{severity}[{code}]: {message}\n", printable(&location))
}

/// Returns a diagnostic as JSON. docs/IDL-MAPPING.md describes the keys. New keys may be added, but existing
/// ones must not be changed or removed, because other programs read them.
fn diagnostic_json(diagnostics: &Diagnostics, diagnostic: &Diagnostic) -> Value {
    let sources = diagnostics.sources();
    let labels = diagnostic.labels.iter().enumerate();
    let spans: Vec<Value> = labels.map(|(index, label)| span_json(sources, label, index == 0)).collect();
    json!({
        "severity": severity_name(diagnostic.severity),
        "code": diagnostic.code,
        "message": diagnostic.message,
        "spans": spans,
        "notes": diagnostic.notes,
        "helps": diagnostic.helps,
        "rendered": diagnostics.render_one(diagnostic, false),
    })
}

fn error_json(code: &str, message: &str) -> Value {
    let none: [Value; 0] = [];
    json!({
        "severity": severity_name(Severity::Error),
        "code": code,
        "message": message,
        "spans": none,
        "notes": none,
        "helps": none,
        "rendered": format!("error: {message}"),
    })
}

fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn span_json(sources: &Sources, label: &Label, is_primary: bool) -> Value {
    let (start, end) = (sources.position(label.span), sources.end_position(label.span));
    let included = sources.included_from(label.span).into_iter();
    let included: Vec<Value> = included.map(|from| position_json(&sources.position(from))).collect();
    // The number is limited, because macro expansions may be nested thousands of levels deep.
    let expanded = sources.expanded_from(label.span).into_iter().take(MAX_SHOWN_EXPANSIONS);
    let expanded: Vec<Value> = expanded
        .map(|(name, body)| json!({ "macro": name, "place": position_json(&sources.position(body)) }))
        .collect();
    json!({
        "file": start.file,
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
        "primary": is_primary,
        "label": Some(&label.text).filter(|text| !text.is_empty()),
        "included_from": included,
        "expanded_from": expanded,
    })
}

fn position_json(position: &Position) -> Value {
    json!({ "file": position.file, "line": position.line, "column": position.column })
}
