//! Incremental output of names, as text or as JSON.

use std::io::{self, Write};

use anyhow::Context;
use serde::Serialize;

use super::bounds::Stop;
use crate::output::{Node, Output, escaped_json, write_level};

/// The writer of names to standard output.
pub(super) struct Lines<W: Write> {
    out: W,
    json: bool,
    /// For each open list, whether it has any items.
    open: Vec<bool>,
    /// The first error of a write.
    failed: Option<io::Error>,
}

impl Lines<anstream::AutoStream<io::Stdout>> {
    pub(super) fn new(output: &Output) -> Self {
        Self::to(anstream::stdout(), output.is_json())
    }
}

impl<W: Write> Lines<W> {
    fn to(out: W, json: bool) -> Self {
        Self { out, json, open: Vec::new(), failed: None }
    }

    /// Begins a list: that of the whole output, or one within the last item.
    pub(super) fn begin(&mut self) {
        self.json("[");
        self.open.push(false);
    }

    /// Ends the current list.
    pub(super) fn end(&mut self) {
        if self.open.pop() == Some(true) {
            self.line_of_json();
        }
        self.json("]");
    }

    /// Writes an item: in JSON as it is, in text as a node at the depth of the open list.
    pub(super) fn item(&mut self, json: &impl Serialize, node: impl FnOnce() -> Node) {
        self.next();
        if self.json {
            let text = serde_json::to_string(json).unwrap_or_default();
            self.json(&text);
        } else {
            self.node(&node(), self.open.len().saturating_sub(1));
        }
    }

    /// Begins an item with further content: in JSON with its first members, in text with its node.
    pub(super) fn open_item(&mut self, json: &str, node: impl FnOnce() -> Node) {
        self.next();
        self.json(json);
        if !self.json {
            self.node(&node(), self.open.len().saturating_sub(1));
        }
    }

    /// Writes a line of text at the depth of a list within the open one; nothing in JSON.
    pub(super) fn inside(&mut self, node: &Node) {
        self.node(node, self.open.len());
    }

    fn node(&mut self, node: &Node, depth: usize) {
        if !self.json && self.failed.is_none() {
            let written = write_level(&mut self.out, std::slice::from_ref(node), depth);
            self.failed = written.err();
        }
    }

    /// Writes this piece of JSON; nothing in text.
    pub(super) fn json(&mut self, text: &str) {
        if self.json && self.failed.is_none() {
            self.failed = self.out.write_all(escaped_json(text).as_bytes()).err();
        }
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// [`Stop::Closed`]: nothing can be written any more, see [`done`](Self::done).
    pub(super) fn flush(&mut self) -> Result<(), Stop> {
        if self.failed.is_none() {
            self.failed = self.out.flush().err();
        }
        if self.failed.is_some() { Err(Stop::Closed) } else { Ok(()) }
    }

    /// Ends the output.
    ///
    /// # Errors
    /// It could not be written. It is not an error if the reader closes a pipe early.
    pub(super) fn done(mut self) -> anyhow::Result<()> {
        self.json("\n");
        let _ = self.flush();
        match self.failed {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(error).context("cannot write to standard output")
            }
            _ => Ok(()),
        }
    }

    fn next(&mut self) {
        let further = self.open.last_mut().is_some_and(|open| std::mem::replace(open, true));
        if further {
            self.json(",");
        }
        self.line_of_json();
    }

    fn line_of_json(&mut self) {
        let indent = format!("\n{:1$}", "", 2 * self.open.len());
        self.json(&indent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(json: bool) -> String {
        let mut out = Vec::new();
        let mut lines = Lines::to(&mut out, json);
        lines.begin();
        lines.item(&serde_json::json!({ "name": "a" }), || Node::new("a", ""));
        lines.open_item(r#"{"name":"b","context":"#, || Node::new("b/", ""));
        lines.begin();
        lines.item(&serde_json::json!({ "name": "c" }), || Node::new("c", ""));
        lines.end();
        lines.inside(&Node::new("...", "more"));
        lines.json("}");
        lines.end();
        lines.done().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn items_in_items_are_json_and_text() {
        let json: serde_json::Value = serde_json::from_str(&written(true)).unwrap();
        assert_eq!(json, serde_json::json!([{ "name": "a" }, { "name": "b", "context": [{ "name": "c" }] }]));
        let text = anstream::adapter::strip_str(&written(false)).to_string();
        assert_eq!(text, "a\nb/\n  c\n  ...  more\n");
    }

    #[test]
    fn a_reader_that_goes_is_no_error() {
        struct Gone(io::ErrorKind);
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(self.0.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for (kind, is_error) in [(io::ErrorKind::BrokenPipe, false), (io::ErrorKind::StorageFull, true)] {
            let mut lines = Lines::to(Gone(kind), true);
            lines.begin();
            assert_eq!(lines.flush(), Err(Stop::Closed));
            assert_eq!(lines.done().is_err(), is_error);
        }
    }
}
