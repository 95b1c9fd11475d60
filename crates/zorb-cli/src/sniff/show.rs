//! Output of messages: one line each for people, one JSON object each for programs.

use std::fmt::{self, Write};

use anstyle::{AnsiColor, Style};
use giop_codec::ior::Ior;
use giop_codec::{OneLine, Printable};
use serde::Serialize;

use super::calls::Told;
use crate::output::{Output, escaped_json, told as shown};

const FAINT: Style = Style::new().dimmed();
const CALL: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const DOUBTFUL: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();

/// Maximum characters of a body that are shown to people.
const LONGEST: usize = 2000;

/// The output of messages. Strings of peers are escaped when they are inserted into a line.
pub(super) struct Lines {
    output: Output,
    pub(super) json: bool,
    /// Show service contexts, sizes and keys too, and bodies of any length.
    pub(super) verbose: bool,
    /// The time of the first message, from which times count.
    first: Option<f64>,
    /// Standard output is closed.
    pub(super) closed: bool,
}

impl Lines {
    pub(super) fn new(output: Output, verbose: bool) -> Self {
        Self { output, json: output.is_json(), verbose, first: None, closed: false }
    }

    /// Prints a message.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub(super) fn tell(&mut self, told: &Told) -> anyhow::Result<()> {
        let since = told.time - *self.first.get_or_insert(told.time);
        if self.json {
            return self.object(told);
        }
        let verbose = self.verbose;
        self.write(|out| line(out, told, since, verbose))
    }

    /// Prints another object, as JSON in one line.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub(super) fn object(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        let json = serde_json::to_string(value)?;
        self.write(|out| writeln!(out, "{}", escaped_json(&json)))
    }

    /// Prints the comparison of a replayed reply.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub(super) fn compared(
        &mut self,
        same: bool,
        connection: u64,
        name: &str,
        request: Option<u32>,
        differences: &[String],
    ) -> anyhow::Result<()> {
        let request = request.map(|id| format!(" #{id}")).unwrap_or_default();
        self.write(|out| {
            let (tone, what) = if same { (GOOD, "same") } else { (BAD, "differs") };
            writeln!(
                out,
                "{tone}{what}{tone:#}  {FAINT}{connection}{FAINT:#}  {name}{FAINT}{request}{FAINT:#}"
            )?;
            differences.iter().try_for_each(|one| writeln!(out, "    {}", OneLine::new(one)))
        })
    }

    /// Writes to standard output. It is not an error if the reader closes it early.
    pub(super) fn write(&mut self, what: impl FnOnce(&mut String) -> fmt::Result) -> anyhow::Result<()> {
        let mut text = String::new();
        what(&mut text)?;
        self.closed |= !self.output.write(&text)?;
        Ok(())
    }
}

/// Writes `0.000312  1  127.0.0.1:40000 > 127.0.0.1:2809  Bank::Account.deposit {"amount":10.0}`.
fn line(out: &mut String, told: &Told, since: f64, verbose: bool) -> fmt::Result {
    write!(out, "{FAINT}{since:.6}  {}  {} > {}{FAINT:#}  ", told.connection, told.from, told.to)?;
    let operation = || {
        if told.operation.is_none() {
            return "of what".to_owned();
        }
        let name = Printable::new(told.operation.as_deref().unwrap_or_default());
        match &told.interface {
            Some(interface) => format!("{}.{name}", Printable::new(interface)),
            None => name.to_string(),
        }
    };
    let request = told.request.map(|id| format!(" #{id}")).unwrap_or_default();
    let bad = matches!(told.status, Some("user_exception" | "system_exception" | "unknown_object"));
    let body = body(told, verbose);
    match told.message {
        "request" => {
            write!(out, "{CALL}{}{CALL:#}{FAINT}{request}{FAINT:#}", operation())?;
            if told.oneway {
                write!(out, " oneway")?;
            }
            write!(out, "{body}")?;
        }
        "reply" => {
            let tone = if bad { BAD } else { GOOD };
            write!(out, "{tone}reply{tone:#} {}{FAINT}{request}{FAINT:#}", operation())?;
            if let Some(status) = told.status.filter(|status| *status != "no_exception") {
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
            if told.operation.is_some() {
                write!(out, " {}", operation())?;
            }
            if let Some(status) = told.status {
                let tone = if bad { BAD } else { GOOD };
                write!(out, " {tone}{status}{tone:#}")?;
            } else if let Some(key) = told.key.as_ref().filter(|_| told.message == "locate_request") {
                write!(out, " {key}")?;
            }
            write!(out, "{body}")?;
        }
    }
    if let Some(latency) = told.latency_us {
        write!(out, "  {FAINT}{latency:.0} us{FAINT:#}")?;
    }
    for remark in &told.remarks {
        write!(out, "  {DOUBTFUL}({}){DOUBTFUL:#}", OneLine::new(remark))?;
    }
    writeln!(out)?;
    if verbose {
        let order = if told.little_endian { "little-endian" } else { "big-endian" };
        write!(out, "    {FAINT}GIOP {}, {order}, {} octets", told.giop, told.octets)?;
        if told.fragments > 1 {
            write!(out, " in {} fragments", told.fragments)?;
        }
        if let Some(key) = &told.key {
            write!(out, ", key {key}")?;
        }
        writeln!(out, "{FAINT:#}")?;
        for context in &told.contexts {
            let name = context.name.map_or_else(|| format!("{:#x}", context.id), str::to_owned);
            let says = context.says.as_deref().map(|says| format!(" {}", shown(says))).unwrap_or_default();
            writeln!(out, "    {FAINT}{name} ({} octets){says}{FAINT:#}", context.octets)?;
        }
    }
    Ok(())
}

/// Returns the full text of a message, without colours.
#[cfg(test)]
pub(super) fn text(told: &Told) -> String {
    let mut out = String::new();
    line(&mut out, told, 0.0, true).unwrap();
    anstream::adapter::strip_str(&out).to_string()
}

/// Returns the body with a blank before it, if there is one.
fn body(told: &Told, verbose: bool) -> String {
    let text = match (&told.body, &told.body_octets) {
        (Some(json), _) if json.get() == "{}" => return String::new(),
        (Some(json), _) => escaped_json(&references(json.get())),
        (None, Some(hex)) => format!("0x{hex}"),
        (None, None) => return String::new(),
    };
    let text = OneLine::new(&text).whole().to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) if !verbose => {
            format!(" {} ... ({} characters more: --verbose)", &text[..end], text.len() - end)
        }
        _ => format!(" {text}"),
    }
}

/// Replaces stringified references by their content.
fn references(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find("\"IOR:") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let Some(end) = from.get(1..).and_then(|text| text.find('"')).map(|end| end + 1) else {
            rest = from;
            break;
        };
        let text = from.get(1..end).unwrap_or_default();
        match text.parse::<Ior>() {
            Ok(ior) if ior.is_nil() => out.push_str("nil"),
            Ok(ior) => {
                let at = ior.iiop_profile().map_or_else(
                    || "elsewhere than at TCP".to_owned(),
                    |profile| match profile.host.contains(':') {
                        true => format!("[{}]:{}", Printable::new(&profile.host), profile.port),
                        false => format!("{}:{}", Printable::new(&profile.host), profile.port),
                    },
                );
                out.push_str(&format!(
                    "<{} at {at}>",
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
