//! The output of commands: trees of names and values for people, or JSON for programs.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::Context;
use giop_codec::{OneLine, Printable};
use orb_runtime::lossy::{self, LossyWriter};
use serde::Serialize;

use crate::limits::replace_library_options;
pub(crate) use crate::pretty::escaped_json;
use crate::pretty::write_pretty;

const NAME: Style = Style::new().dimmed();
const HEAD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const DOUBTFUL: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// The number of bytes after which a printed string from a peer is truncated.
const MAX_STRING_BYTES: usize = 4096;

/// The capacity of each queue of a server's output.
const QUEUE_BYTES: usize = 256 << 10;

/// How long a process that is about to end waits until its queued output is read.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The queues of standard output and standard error of a server.
static QUEUES: OnceLock<[LossyWriter; 2]> = OnceLock::new();

/// Writes text or JSON to standard output and standard error.
///
/// Control and format characters are escaped, and so are line breaks that are not from this program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) is_json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

impl Output {
    /// Makes all further output non-blocking. This is for servers, which must not wait for a slow reader.
    /// Lines that do not fit into the queue are dropped and counted.
    pub(crate) fn make_nonblocking(&self) -> anyhow::Result<()> {
        let as_json = |lines: u64| format!("{{\"missing_lines\":{lines}}}\n");
        let notice: fn(u64) -> String = if self.is_json { as_json } else { lossy::missing_lines_notice };
        let out = LossyWriter::new(io::stdout(), QUEUE_BYTES, notice).context("cannot start a thread")?;
        let err = LossyWriter::new(io::stderr(), QUEUE_BYTES, notice).context("cannot start a thread")?;
        let _ = QUEUES.set([out, err]);
        Ok(())
    }

    /// Waits until queued output is written, but at most [`FLUSH_TIMEOUT`] for each stream.
    pub(crate) fn finish() {
        for queue in QUEUES.get().into_iter().flatten() {
            queue.flush(FLUSH_TIMEOUT);
        }
    }

    /// Writes a result as JSON or as the text of a tree. It is not an error if the reader closes the output.
    pub(crate) fn show<T: Serialize>(
        &self,
        value: &T,
        tree: impl FnOnce(&T) -> Vec<Node>,
    ) -> anyhow::Result<()> {
        let text = match self.is_json {
            true => escaped_json(&serde_json::to_string_pretty(value)?) + "\n",
            false => tree_text(&tree(value)),
        };
        self.write(&text).map(drop)
    }

    /// Writes JSON with line breaks, even without --json. Does not copy the whole text.
    pub(crate) fn show_json(&self, json: &str, tone: Tone) -> anyhow::Result<()> {
        let style = if self.is_json { Style::new() } else { tone.style() };
        write_pretty(json, style, |piece| self.write(piece))
    }

    /// Writes text that is already escaped to standard output. Returns false if standard output is closed.
    pub(crate) fn write(&self, text: &str) -> anyhow::Result<bool> {
        match write_to(Stream::Out, text) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            result => result.map(|()| true).context("cannot write to standard output"),
        }
    }

    /// Writes a remark to standard error, unless the output is JSON.
    pub(crate) fn remark(&self, text: &str) {
        if !self.is_json {
            let _ = write_to(
                Stream::Err,
                &format!("{NAME}{}{NAME:#}\n", OneLine::new(&replace_library_options(text))),
            );
        }
    }

    pub(crate) fn print_admin_address(&self, orb: &zorb::Orb) {
        if let Some(address) = orb.admin_address() {
            self.remark(&format!("admin endpoint: http://{address}/"));
        }
    }

    pub(crate) fn print_failure(&self, error: &anyhow::Error) {
        let text = with_causes(error);
        let text = replace_library_options(&text);
        let text = match self.is_json {
            true => escaped_json(&serde_json::json!({ "error": text }).to_string()) + "\n",
            false => {
                // Lines after the first one are indented, so that they do not look like separate messages.
                let lines: Vec<String> = text.lines().map(|line| OneLine::new(line).to_string()).collect();
                format!("{BAD}zorb:{BAD:#} {}\n", lines.join("\n  "))
            }
        };
        let _ = write_to(Stream::Err, &text);
    }
}

pub(crate) fn log_line(line: &str) {
    let _ = write_to(Stream::Err, &format!("{}\n", OneLine::new(line)));
}

/// Returns the text of an error and its causes. Omits causes that this text already contains.
pub(crate) fn with_causes(error: &anyhow::Error) -> String {
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

/// Writes to a stream, or to its queue if there is one. Removes colours if the stream does not support them.
fn write_to(stream: Stream, text: &str) -> io::Result<()> {
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
        if queue.has_failed() {
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

/// Returns a string from a peer, escaped and truncated for output.
pub(crate) fn printable(text: &str) -> String {
    Printable::new(text).max_bytes(MAX_STRING_BYTES).to_string()
}

/// A name and a value in a tree of output, with children. Line breaks in the texts are escaped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    name: String,
    value: Vec<String>,
    tone: Tone,
    children: Vec<Node>,
}

/// The meaning of a value, which determines its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Head,
    Good,
    Doubtful,
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

    pub(crate) fn lines(name: impl Into<String>, lines: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let value = lines.into_iter().map(Into::into).collect();
        Self { name: name.into(), value, ..Self::default() }
    }

    pub(crate) fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    pub(crate) fn children(mut self, children: impl IntoIterator<Item = Node>) -> Self {
        self.children.extend(children);
        self
    }
}

/// Returns the text of a tree. The names of siblings are padded to the same width, so that their values are
/// aligned. If no sibling has a name, the lines start with the values.
pub(crate) fn tree_text(nodes: &[Node]) -> String {
    let mut out = String::new();
    append_level(&mut out, nodes, 0);
    out
}

/// Writes sibling nodes and their children. `depth` is the depth of the siblings in the tree.
pub(crate) fn write_level(out: &mut impl Write, nodes: &[Node], depth: usize) -> io::Result<()> {
    let mut text = String::new();
    append_level(&mut text, nodes, depth);
    out.write_all(text.as_bytes())
}

fn append_level(out: &mut String, nodes: &[Node], depth: usize) {
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
        append_level(out, &node.children, depth + 1);
    }
}

#[cfg(test)]
mod tests {
    use giop_codec::is_printable;

    use super::*;

    fn text(nodes: &[Node]) -> String {
        anstream::adapter::strip_str(&tree_text(nodes)).to_string()
    }

    #[test]
    fn values_of_siblings_are_aligned() {
        let tree = [
            Node::new("a", "one"),
            Node::lines("long", ["two", "lines"])
                .tone(Tone::Bad)
                .children([Node::new("x", "1"), Node::new("y", "")]),
        ];
        assert_eq!(text(&tree), "a     one\nlong  two\n      lines\n  x  1\n  y\n");
    }

    #[test]
    fn values_without_a_name_are_not_indented() {
        assert_eq!(text(&[Node::lines("", ["one", "two"])]), "one\ntwo\n");
    }

    #[test]
    fn control_characters_and_line_breaks_in_names_and_values_are_escaped() {
        let hostile = "a\u{1b}[2J\nzorb: done\u{202e}";
        assert_eq!(
            text(&[Node::new(hostile, hostile)]),
            "a\\x1b[2J\\nzorb: done\\u{202e}  a\\x1b[2J\\nzorb: done\\u{202e}\n"
        );
    }

    #[test]
    fn json_with_escaped_control_characters_has_the_same_value() {
        let hostile = serde_json::json!({ "\u{202e}": "\u{1b}\u{7f}\u{9b}\u{200b}\u{e0041}ü\n\t\"" });
        let json = escaped_json(&serde_json::to_string_pretty(&hostile).unwrap());
        assert!(json.chars().all(|c| c == '\n' || is_printable(c)), "{json}");
        assert!(json.contains("ü") && json.contains("\\u202e"), "{json}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), hostile);
    }

    #[test]
    fn causes_that_an_error_already_contains_are_not_repeated() {
        let error =
            anyhow::anyhow!("address in use").context("cannot listen: address in use").context("no server");
        assert_eq!(with_causes(&error), "no server: cannot listen: address in use");
    }
}
