//! Output of commands: trees of names and values for people, JSON for programs.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::Context;
use giop_codec::{OneLine, Printable};
use orb_runtime::lossy::{self, Lossy};
use serde::Serialize;

use crate::limits::in_options;
pub(crate) use crate::pretty::escaped_json;
use crate::pretty::pretty;

const NAME: Style = Style::new().dimmed();
const HEAD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const DOUBTFUL: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// Maximum bytes of a peer's string in results. Messages show fewer.
const SHOWN: usize = 4096;

/// Capacity of the output queues in bytes, for commands that serve.
const QUEUED: usize = 256 << 10;

/// Maximum time that the end of the process waits for output that is not read.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The queues of standard output and standard error, for commands that serve.
static QUEUES: OnceLock<[Lossy; 2]> = OnceLock::new();

/// The form of results on standard output.
///
/// Everything that is written to a terminal passes through here. Control and format characters are escaped in
/// all of it, and so are line breaks, except those between lines that this program creates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Returns whether the output is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Makes all further output non-blocking. Lines that do not fit into the queue are dropped and counted.
    /// For commands that serve, which must continue if a pipe or terminal is not read.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub(crate) fn never_block(&self) -> anyhow::Result<()> {
        let as_json = |lines: u64| format!("{{\"missing_lines\":{lines}}}\n");
        let notice: fn(u64) -> String = if self.json { as_json } else { lossy::missing };
        let out = Lossy::new(io::stdout(), QUEUED, notice).context("cannot start")?;
        let err = Lossy::new(io::stderr(), QUEUED, notice).context("cannot start")?;
        let _ = QUEUES.set([out, err]);
        Ok(())
    }

    /// Waits until everything is written, for at most one second if it is not read.
    pub(crate) fn finish() {
        for queue in QUEUES.get().into_iter().flatten() {
            queue.flush(LAST_LINES);
        }
    }

    /// Writes a result in the selected form.
    ///
    /// # Errors
    /// Standard output cannot be written. It is not an error if the reader closes it early.
    pub(crate) fn show<T: Serialize>(
        &self,
        value: &T,
        tree: impl FnOnce(&T) -> Vec<Node>,
    ) -> anyhow::Result<()> {
        let text = match self.json {
            true => escaped_json(&serde_json::to_string_pretty(value)?) + "\n",
            false => shown(&tree(value)),
        };
        self.write(&text).map(drop)
    }

    /// Writes a result that is a single line of JSON, as multiple lines. It needs no further memory.
    ///
    /// # Errors
    /// As for [`show`](Self::show).
    pub(crate) fn show_json(&self, json: &str, tone: Tone) -> anyhow::Result<()> {
        let style = if self.json { Style::new() } else { tone.style() };
        pretty(json, style, |piece| self.write(piece))
    }

    /// Writes escaped text to standard output. Returns false if standard output is closed.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub(crate) fn write(&self, text: &str) -> anyhow::Result<bool> {
        match put(Stream::Out, text) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            written => written.map(|()| true).context("cannot write to standard output"),
        }
    }

    /// Writes a remark for people to standard error.
    pub(crate) fn remark(&self, text: &str) {
        if !self.json {
            let _ = put(Stream::Err, &format!("{NAME}{}{NAME:#}\n", OneLine::new(&in_options(text))));
        }
    }

    /// Writes the address of the admin endpoint, if there is one.
    pub(crate) fn admin_at(&self, orb: &zorb::Orb) {
        if let Some(address) = orb.admin_address() {
            self.remark(&format!("admin at http://{address}/"));
        }
    }

    /// Writes the failure of a command to standard error.
    pub(crate) fn failure(&self, error: &anyhow::Error) {
        let text = causes(error);
        let text = in_options(&text);
        let text = match self.json {
            true => escaped_json(&serde_json::json!({ "error": text }).to_string()) + "\n",
            false => {
                // Lines after the first are indented, so that none resembles a separate message.
                let lines: Vec<String> = text.lines().map(|line| OneLine::new(line).to_string()).collect();
                format!("{BAD}zorb:{BAD:#} {}\n", lines.join("\n  "))
            }
        };
        let _ = put(Stream::Err, &text);
    }
}

/// Writes a line of the log to standard error.
pub(crate) fn log_line(line: &str) {
    let _ = put(Stream::Err, &format!("{}\n", OneLine::new(line)));
}

/// Returns an error with its causes, each once, because many errors include their cause in their own text.
pub(crate) fn causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(cause.trim_end()) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Writes to a stream, or to its queue, without colours if the stream does not support them.
fn put(stream: Stream, text: &str) -> io::Result<()> {
    let choice = match stream {
        Stream::Out => anstream::AutoStream::choice(&io::stdout()),
        Stream::Err => anstream::AutoStream::choice(&io::stderr()),
    };
    let text: Cow<'_, str> = match choice {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(text).to_string().into(),
        _ => text.into(),
    };
    if let Some([out, err]) = QUEUES.get() {
        let queue = if stream == Stream::Out { out } else { err };
        if queue.is_closed() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        queue.push(text.as_bytes());
        return Ok(());
    }
    match stream {
        Stream::Out => {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        }
        Stream::Err => io::stderr().lock().write_all(text.as_bytes()),
    }
}

/// Returns a peer's string in the form for results.
pub(crate) fn told(text: &str) -> String {
    Printable::new(text).max_bytes(SHOWN).to_string()
}

/// A line of a tree, with its children. Name and value are one line each: line breaks in them are escaped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    name: String,
    /// More than one line if this program creates them.
    value: Vec<String>,
    tone: Tone,
    under: Vec<Node>,
}

/// The meaning of a value, which determines its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tone {
    /// No particular meaning.
    #[default]
    Plain,
    /// The most important value.
    Head,
    /// As expected.
    Good,
    /// Possibly wrong.
    Doubtful,
    /// Wrong.
    Bad,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Head => HEAD,
            Self::Good => GOOD,
            Self::Doubtful => DOUBTFUL,
            Self::Bad => BAD,
        }
    }
}

impl Node {
    pub(crate) fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self::lines(name, [value])
    }

    /// Creates a node with a value of several lines.
    pub(crate) fn lines(name: impl Into<String>, lines: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let value = lines.into_iter().map(Into::into).collect();
        Self { name: name.into(), value, ..Self::default() }
    }

    pub(crate) fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    pub(crate) fn under(mut self, under: impl IntoIterator<Item = Node>) -> Self {
        self.under.extend(under);
        self
    }
}

/// Returns the lines of a tree. Names of siblings are padded to the same width, so that their values are
/// aligned. If none has a name, lines start with the values.
pub(crate) fn shown(nodes: &[Node]) -> String {
    let mut out = String::new();
    show_level(&mut out, nodes, 0);
    out
}

/// Writes nodes and their children at this depth.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn write_level(out: &mut impl Write, nodes: &[Node], depth: usize) -> io::Result<()> {
    let mut text = String::new();
    show_level(&mut text, nodes, depth);
    out.write_all(text.as_bytes())
}

fn show_level(out: &mut String, nodes: &[Node], depth: usize) {
    let names: Vec<String> = nodes.iter().map(|node| OneLine::new(&node.name).whole().to_string()).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let gap = if width == 0 { 0 } else { width + 2 };
    let indent = depth * 2;
    for (node, name) in nodes.iter().zip(&names) {
        let style = node.tone.style();
        let mut lines = node.value.iter().map(|line| OneLine::new(line).whole().to_string());
        let first = lines.next().unwrap_or_default();
        let pad = if first.is_empty() { 0 } else { gap - name.chars().count() };
        let _ = writeln!(out, "{:indent$}{NAME}{name}{NAME:#}{:pad$}{style}{first}{style:#}", "", "");
        for line in lines {
            let _ = writeln!(out, "{:1$}{style}{line}{style:#}", "", indent + gap);
        }
        show_level(out, &node.under, depth + 1);
    }
}

#[cfg(test)]
mod tests {
    use giop_codec::is_printable;

    use super::*;

    fn text(nodes: &[Node]) -> String {
        anstream::adapter::strip_str(&shown(nodes)).to_string()
    }

    #[test]
    fn values_of_neighbours_stand_below_each_other() {
        let tree = [
            Node::new("a", "one"),
            Node::lines("long", ["two", "lines"])
                .tone(Tone::Bad)
                .under([Node::new("x", "1"), Node::new("y", "")]),
        ];
        assert_eq!(text(&tree), "a     one\nlong  two\n      lines\n  x  1\n  y\n");
    }

    #[test]
    fn values_without_a_name_are_not_indented() {
        assert_eq!(text(&[Node::lines("", ["one", "two"])]), "one\ntwo\n");
    }

    #[test]
    fn names_and_values_stay_on_their_lines_whatever_is_in_them() {
        let hostile = "a\u{1b}[2J\nzorb: done\u{202e}";
        assert_eq!(
            text(&[Node::new(hostile, hostile)]),
            "a\\x1b[2J\\nzorb: done\\u{202e}  a\\x1b[2J\\nzorb: done\\u{202e}\n"
        );
    }

    #[test]
    fn json_is_the_same_json_without_characters_that_a_terminal_obeys_or_hides() {
        let hostile = serde_json::json!({ "\u{202e}": "\u{1b}\u{7f}\u{9b}\u{200b}\u{e0041}ü\n\t\"" });
        let json = escaped_json(&serde_json::to_string_pretty(&hostile).unwrap());
        assert!(json.chars().all(|c| c == '\n' || is_printable(c)), "{json}");
        assert!(json.contains("ü") && json.contains("\\u202e"), "{json}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), hostile);
    }

    #[test]
    fn causes_are_said_once() {
        let error =
            anyhow::anyhow!("address in use").context("cannot listen: address in use").context("no server");
        assert_eq!(causes(&error), "no server: cannot listen: address in use");
    }
}
