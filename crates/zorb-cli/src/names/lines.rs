//! Incremental output of lists of names, as text or JSON.

use std::io::{self, Write};

use anyhow::Context;
use serde::Serialize;

use super::list_limits::StopReason;
use crate::output::{Node, Output, escaped_json, write_level};

pub(super) struct ListWriter<W: Write> {
    out: W,
    is_json: bool,
    /// For each open list, whether it has any items.
    open_lists: Vec<bool>,
    /// The first error of a write. Nothing is written after it.
    error: Option<io::Error>,
}

impl ListWriter<anstream::AutoStream<io::Stdout>> {
    pub(super) fn new(output: &Output) -> Self {
        Self::to(anstream::stdout(), output.is_json)
    }
}

impl<W: Write> ListWriter<W> {
    fn to(out: W, is_json: bool) -> Self {
        Self { out, is_json, open_lists: Vec::new(), error: None }
    }

    /// Begins the list of the whole output, or a list inside the last item.
    pub(super) fn begin_list(&mut self) {
        self.write_json("[");
        self.open_lists.push(false);
    }

    pub(super) fn end_list(&mut self) {
        if self.open_lists.pop() == Some(true) {
            self.json_line_break();
        }
        self.write_json("]");
    }

    /// Writes an item of the current list: `json` if the output is JSON, and the node if it is text.
    pub(super) fn write_item(&mut self, json: &impl Serialize, node: impl FnOnce() -> Node) {
        self.begin_item();
        if self.is_json {
            let text = serde_json::to_string(json).unwrap_or_default();
            self.write_json(&text);
        } else {
            self.write_node(&node(), self.open_lists.len().saturating_sub(1));
        }
    }

    /// Writes the start of an item that contains a list: the start of a JSON object, or the node.
    pub(super) fn begin_nested_item(&mut self, json: &str, node: impl FnOnce() -> Node) {
        self.begin_item();
        self.write_json(json);
        if !self.is_json {
            self.write_node(&node(), self.open_lists.len().saturating_sub(1));
        }
    }

    /// Writes a node one level deeper than the current list. Writes nothing if the output is JSON.
    pub(super) fn write_nested_node(&mut self, node: &Node) {
        self.write_node(node, self.open_lists.len());
    }

    fn write_node(&mut self, node: &Node, depth: usize) {
        if !self.is_json && self.error.is_none() {
            self.error = write_level(&mut self.out, std::slice::from_ref(node), depth).err();
        }
    }

    /// Writes a part of JSON. Writes nothing if the output is text.
    pub(super) fn write_json(&mut self, text: &str) {
        if self.is_json && self.error.is_none() {
            self.error = self.out.write_all(escaped_json(text).as_bytes()).err();
        }
    }

    /// Flushes the output. Fails after any failed write. [`finish`](Self::finish) returns the error.
    pub(super) fn flush(&mut self) -> Result<(), StopReason> {
        if self.error.is_none() {
            self.error = self.out.flush().err();
        }
        if self.error.is_some() { Err(StopReason::Closed) } else { Ok(()) }
    }

    /// Ends the output. Fails after any failed write, unless the reader has closed the pipe.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        self.write_json("\n");
        let _ = self.flush();
        match self.error {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(error).context("cannot write to standard output")
            }
            _ => Ok(()),
        }
    }

    fn begin_item(&mut self) {
        let has_items =
            self.open_lists.last_mut().is_some_and(|has_items| std::mem::replace(has_items, true));
        if has_items {
            self.write_json(",");
        }
        self.json_line_break();
    }

    fn json_line_break(&mut self) {
        let indent = format!("\n{:1$}", "", 2 * self.open_lists.len());
        self.write_json(&indent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(is_json: bool) -> String {
        let mut out = Vec::new();
        let mut lines = ListWriter::to(&mut out, is_json);
        lines.begin_list();
        lines.write_item(&serde_json::json!({ "name": "a" }), || Node::new("a", ""));
        lines.begin_nested_item(r#"{"name":"b","context":"#, || Node::new("b/", ""));
        lines.begin_list();
        lines.write_item(&serde_json::json!({ "name": "c" }), || Node::new("c", ""));
        lines.end_list();
        lines.write_nested_node(&Node::new("...", "more"));
        lines.write_json("}");
        lines.end_list();
        lines.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nested_lists_are_written_as_json_and_as_text() {
        let json: serde_json::Value = serde_json::from_str(&example(true)).unwrap();
        assert_eq!(json, serde_json::json!([{ "name": "a" }, { "name": "b", "context": [{ "name": "c" }] }]));
        let text = anstream::adapter::strip_str(&example(false)).to_string();
        assert_eq!(text, "a\nb/\n  c\n  ...  more\n");
    }

    #[test]
    fn a_pipe_that_the_reader_closed_is_not_an_error() {
        struct FailingWriter(io::ErrorKind);
        impl Write for FailingWriter {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(self.0.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for (kind, is_error) in [(io::ErrorKind::BrokenPipe, false), (io::ErrorKind::StorageFull, true)] {
            let mut lines = ListWriter::to(FailingWriter(kind), true);
            lines.begin_list();
            assert_eq!(lines.flush(), Err(StopReason::Closed));
            assert_eq!(lines.finish().is_err(), is_error);
        }
    }
}
