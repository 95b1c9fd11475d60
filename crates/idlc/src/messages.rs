//! Messages on standard error: excerpts of the source or single lines for people, or one JSON object per line
//! for programs.

use std::io::{self, Write};

use idl_compiler::{Diagnostic, Diagnostics, Label, Position, Severity, Sources, printable};
use serde_json::{Value, json};

use crate::options::{Colour, MessageFormat};

/// Maximum number of macros that are named as the origin of a token.
const MAX_MACROS: usize = 64;

/// The format of messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Messages {
    form: MessageFormat,
    colour: bool,
}

impl Messages {
    /// Creates the format that the command line requests.
    pub(crate) fn new(form: MessageFormat, colour: Colour) -> Self {
        Messages { form, colour: colour.wanted() }
    }

    /// Prints the compiler's diagnostics.
    pub(crate) fn show(&self, found: &Diagnostics) {
        match self.form {
            MessageFormat::Human => complain(&found.render(self.colour)),
            MessageFormat::Short => {
                complain(&found.iter().map(|one| short(found.sources(), one)).collect::<String>());
            }
            MessageFormat::Json => {
                let lines = found
                    .iter()
                    .map(|one| format!("{}\n", escaped_json(&diagnostic(found, one).to_string())));
                complain(&lines.collect::<String>());
            }
        }
    }

    /// Prints an error that is not in the IDL.
    pub(crate) fn error(&self, code: &str, message: &str) {
        match self.form {
            MessageFormat::Human | MessageFormat::Short => {
                let (start, end) = if self.colour { ("\x1b[1;91m", "\x1b[0m") } else { ("", "") };
                complain(&format!("{start}error{end}: {}\n", printable(message)));
            }
            MessageFormat::Json => complain(&format!("{}\n", escaped_json(&bare(code, message).to_string()))),
        }
    }
}

/// Writes to standard error. It is not an error if the reader closes it early.
fn complain(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Returns the JSON with characters that a terminal interprets or hides escaped, e.g. as `\u202e`.
pub(crate) fn escaped_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        // ASCII control characters are white space outside of strings. Inside strings they are escaped
        // already, except DEL.
        if c < '\u{7f}' || printable(c.encode_utf8(&mut [0; 4])).chars().eq([c]) {
            out.push(c);
        } else {
            out.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    out
}

/// Formats a diagnostic as one line, in the form of `grep -n`, which editors parse.
fn short(sources: &Sources, one: &Diagnostic) -> String {
    let place = one.span().map_or(String::new(), |span| format!("{}: ", sources.position(span)));
    let message = printable(&one.message).replace('\n', " ");
    format!("{}{}[{}]: {message}\n", printable(&place), severity(one.severity), one.code)
}

/// Converts a diagnostic to JSON. The keys are described in docs/IDL-MAPPING.md. New ones may be added, none
/// is changed or removed.
fn diagnostic(found: &Diagnostics, one: &Diagnostic) -> Value {
    let sources = found.sources();
    let spans: Vec<Value> =
        one.labels.iter().enumerate().map(|(index, label)| span(sources, label, index == 0)).collect();
    json!({
        "severity": severity(one.severity),
        "code": one.code,
        "message": one.message,
        "spans": spans,
        "notes": one.notes,
        "helps": one.helps,
        "rendered": found.rendered(one, false),
    })
}

fn bare(code: &str, message: &str) -> Value {
    let none: [Value; 0] = [];
    json!({
        "severity": severity(Severity::Error),
        "code": code,
        "message": message,
        "spans": none,
        "notes": none,
        "helps": none,
        "rendered": format!("error: {message}"),
    })
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn span(sources: &Sources, label: &Label, primary: bool) -> Value {
    let (start, end) = (sources.position(label.span), sources.end(label.span));
    let included: Vec<Value> =
        sources.included_from(label.span).into_iter().map(|from| place(&sources.position(from))).collect();
    // Macro expansions may nest thousands of levels deep, and each message would list all of them.
    let expanded: Vec<Value> = sources
        .expanded_from(label.span)
        .into_iter()
        .take(MAX_MACROS)
        .map(|(name, body)| json!({ "macro": name, "place": place(&sources.position(body)) }))
        .collect();
    json!({
        "file": start.file,
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
        "primary": primary,
        "label": Some(&label.text).filter(|text| !text.is_empty()),
        "included_from": included,
        "expanded_from": expanded,
    })
}

fn place(position: &Position) -> Value {
    json!({ "file": position.file, "line": position.line, "column": position.column })
}
