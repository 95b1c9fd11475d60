//! Output of messages: one line of text or one JSON object for each message.

use std::fmt::{self, Write};

use anstyle::{AnsiColor, Style};
use giop_codec::ior::Ior;
use giop_codec::{OneLine, Printable};
use serde::Serialize;

use super::record::MessageRecord;
use crate::ior::address_text;
use crate::output::{Output, escaped_json, printable};

const FAINT: Style = Style::new().dimmed();
const CALL: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const DOUBTFUL: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();

/// The maximum number of characters of a body in text output without `--verbose`.
const MAX_BODY_CHARS: usize = 2000;

/// Prints messages. Strings of peers are escaped when they are inserted into a line.
pub(super) struct MessagePrinter {
    output: Output,
    pub(super) is_json: bool,
    /// True if versions, sizes, keys and service contexts are printed too, and bodies of any length.
    pub(super) is_verbose: bool,
    /// The time of the first message. The other times are relative to it.
    first_time: Option<f64>,
    /// True after the reader of standard output has closed it.
    pub(super) is_closed: bool,
}

impl MessagePrinter {
    pub(super) fn new(output: Output, is_verbose: bool) -> Self {
        Self { output, is_json: output.is_json, is_verbose, first_time: None, is_closed: false }
    }

    pub(super) fn print_message(&mut self, record: &MessageRecord) -> anyhow::Result<()> {
        let relative_time = record.time - *self.first_time.get_or_insert(record.time);
        if self.is_json {
            return self.print_json(record);
        }
        let is_verbose = self.is_verbose;
        self.write(|out| write_message(out, record, relative_time, is_verbose))
    }

    pub(super) fn print_json(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        let json = serde_json::to_string(value)?;
        self.write(|out| writeln!(out, "{}", escaped_json(&json)))
    }

    pub(super) fn print_comparison(
        &mut self,
        is_same: bool,
        connection: u64,
        name: &str,
        request: Option<u32>,
        differences: &[String],
    ) -> anyhow::Result<()> {
        let request = request.map(|id| format!(" #{id}")).unwrap_or_default();
        self.write(|out| {
            let (tone, result) = if is_same { (GOOD, "same") } else { (BAD, "differs") };
            writeln!(
                out,
                "{tone}{result}{tone:#}  {FAINT}{connection}{FAINT:#}  {name}{FAINT}{request}{FAINT:#}"
            )?;
            differences.iter().try_for_each(|one| writeln!(out, "    {}", OneLine::new(one)))
        })
    }

    /// Writes text to standard output. It is not an error if the reader has closed it.
    pub(super) fn write(&mut self, format: impl FnOnce(&mut String) -> fmt::Result) -> anyhow::Result<()> {
        let mut text = String::new();
        format(&mut text)?;
        self.is_closed |= !self.output.write(&text)?;
        Ok(())
    }
}

/// Writes a line such as `0.000312  1  127.0.0.1:40000 > 127.0.0.1:2809  Bank::Account.deposit
/// {"amount":10.0}`.
fn write_message(
    out: &mut String,
    record: &MessageRecord,
    relative_time: f64,
    is_verbose: bool,
) -> fmt::Result {
    write!(
        out,
        "{FAINT}{relative_time:.6}  {}  {} > {}{FAINT:#}  ",
        record.connection, record.from, record.to
    )?;
    let operation = || {
        if record.operation.is_none() {
            return "(unknown operation)".to_owned();
        }
        let name = Printable::new(record.operation.as_deref().unwrap_or_default());
        match &record.interface {
            Some(interface) => format!("{}.{name}", Printable::new(interface)),
            None => name.to_string(),
        }
    };
    let request = record.request.map(|id| format!(" #{id}")).unwrap_or_default();
    let is_bad = matches!(record.status, Some("user_exception" | "system_exception" | "unknown_object"));
    let body = body_text(record, is_verbose);
    match record.message {
        "request" => {
            write!(out, "{CALL}{}{CALL:#}{FAINT}{request}{FAINT:#}", operation())?;
            if record.oneway {
                write!(out, " oneway")?;
            }
            write!(out, "{body}")?;
        }
        "reply" => {
            let tone = if is_bad { BAD } else { GOOD };
            write!(out, "{tone}reply{tone:#} {}{FAINT}{request}{FAINT:#}", operation())?;
            if let Some(status) = record.status.filter(|status| *status != "no_exception") {
                write!(out, " {tone}{status}{tone:#}")?;
            }
            write!(out, "{body}")?;
        }
        other => {
            let tone = match other {
                "message_error" | "noise" => BAD,
                "cancel_request" | "close_connection" | "fragment" => DOUBTFUL,
                _ => CALL,
            };
            write!(out, "{tone}{other}{tone:#}{FAINT}{request}{FAINT:#}")?;
            if record.operation.is_some() {
                write!(out, " {}", operation())?;
            }
            if let Some(status) = record.status {
                let tone = if is_bad { BAD } else { GOOD };
                write!(out, " {tone}{status}{tone:#}")?;
            } else if let Some(key) = record.key.as_ref().filter(|_| record.message == "locate_request") {
                write!(out, " {key}")?;
            }
            write!(out, "{body}")?;
        }
    }
    if let Some(latency) = record.latency_us {
        write!(out, "  {FAINT}{latency:.0} us{FAINT:#}")?;
    }
    for remark in &record.remarks {
        write!(out, "  {DOUBTFUL}({}){DOUBTFUL:#}", OneLine::new(remark))?;
    }
    writeln!(out)?;
    if is_verbose {
        let order = if record.little_endian { "little-endian" } else { "big-endian" };
        write!(out, "    {FAINT}GIOP {}, {order}, {} bytes", record.giop, record.size)?;
        if record.fragments > 1 {
            write!(out, " in {} fragments", record.fragments)?;
        }
        if let Some(key) = &record.key {
            write!(out, ", key {key}")?;
        }
        writeln!(out, "{FAINT:#}")?;
        for context in &record.contexts {
            let name = context.name.map_or_else(|| format!("{:#x}", context.id), str::to_owned);
            let content = context.content.as_deref();
            let content = content.map(|text| format!(" {}", printable(text))).unwrap_or_default();
            writeln!(out, "    {FAINT}{name} ({} bytes){content}{FAINT:#}", context.size)?;
        }
    }
    Ok(())
}

/// Returns the full text of a message, without colours.
#[cfg(test)]
pub(super) fn text(record: &MessageRecord) -> String {
    let mut out = String::new();
    write_message(&mut out, record, 0.0, true).unwrap();
    anstream::adapter::strip_str(&out).to_string()
}

/// Returns the body with a space before it, or an empty text if there is no body or it has no members.
fn body_text(record: &MessageRecord, is_verbose: bool) -> String {
    let text = match (&record.body, &record.body_hex) {
        (Some(json), _) if json.get() == "{}" => return String::new(),
        (Some(json), _) => escaped_json(&with_short_references(json.get())),
        (None, Some(hex)) => format!("0x{hex}"),
        (None, None) => return String::new(),
    };
    let text = OneLine::new(&text).whole().to_string();
    match text.char_indices().nth(MAX_BODY_CHARS) {
        Some((end, _)) if !is_verbose => {
            format!(" {} ... ({} more bytes, see --verbose)", &text[..end], text.len() - end)
        }
        _ => format!(" {text}"),
    }
}

/// Replaces each `IOR:` string in JSON by the type and address of the reference.
fn with_short_references(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(start) = rest.find("\"IOR:") {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let Some(end) = from.get(1..).and_then(|text| text.find('"')).map(|end| end + 1) else {
            rest = from;
            break;
        };
        let text = from.get(1..end).unwrap_or_default();
        match text.parse::<Ior>() {
            Ok(ior) if ior.is_nil() => out.push_str("nil"),
            Ok(ior) => {
                let address = ior.iiop_profile().map_or_else(
                    || "an address without TCP".to_owned(),
                    |profile| address_text(&profile.host, profile.port),
                );
                out.push_str(&format!(
                    "<{} at {address}>",
                    Printable::new(if ior.type_id.is_empty() { "object" } else { &ior.type_id })
                ));
            }
            Err(_) => out.push_str(from.get(..=end).unwrap_or_default()),
        }
        rest = from.get(end + 1..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}
