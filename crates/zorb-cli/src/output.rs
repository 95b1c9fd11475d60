//! What commands write: trees of names and values for people, JSON for programs.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use anyhow::Context;
use serde::Serialize;

use crate::limits::in_options;

const NAME: Style = Style::new().dimmed();
const HEAD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const DOUBTFUL: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// How results are written, on standard output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether programs read it.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Writes a result in the form that is wanted.
    ///
    /// # Errors
    /// Standard output does not take it. Who closes it before the end has seen enough: that is none.
    pub(crate) fn show<T: Serialize>(
        &self,
        value: &T,
        tree: impl FnOnce(&T) -> Vec<Node>,
    ) -> anyhow::Result<()> {
        let mut out = anstream::stdout().lock();
        let written = match self.json {
            true => serde_json::to_writer_pretty(&mut out, value)
                .map_err(io::Error::from)
                .and_then(|()| writeln!(out)),
            false => write_all(&mut out, &tree(value)),
        };
        match written.and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.context("cannot write to standard output"),
        }
    }

    /// Says something on standard error, where people look on.
    pub(crate) fn remark(&self, text: &str) {
        if !self.json {
            let text = in_options(text);
            let _ = writeln!(anstream::stderr(), "{NAME}{text}{NAME:#}");
        }
    }

    /// Says where the admin endpoint is, if there is one.
    pub(crate) fn admin_at(&self, orb: &zorb::Orb) {
        if let Some(address) = orb.admin_address() {
            self.remark(&format!("admin at http://{address}/"));
        }
    }

    /// Says on standard error why a command failed.
    pub(crate) fn failure(&self, error: &anyhow::Error) {
        let text = format!("{error:#}");
        let text = in_options(&text);
        let _ = match self.json {
            true => writeln!(io::stderr(), "{}", serde_json::json!({ "error": text })),
            false => writeln!(anstream::stderr(), "{BAD}zorb:{BAD:#} {text}"),
        };
    }
}

/// A line of a tree, with what belongs to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    name: String,
    value: String,
    tone: Tone,
    under: Vec<Node>,
}

/// What a value is to make of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tone {
    /// Nothing.
    #[default]
    Plain,
    /// What matters most.
    Head,
    /// It is as it should be.
    Good,
    /// It may be wrong.
    Doubtful,
    /// It is wrong.
    Bad,
}

impl Node {
    pub(crate) fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into(), ..Self::default() }
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

/// Names of neighbours are as wide as the widest of them, so that their values stand below each other.
fn write_all(out: &mut impl Write, nodes: &[Node]) -> io::Result<()> {
    write_level(out, nodes, 0)
}

/// Writes nodes, and what is under them, at that depth.
pub(crate) fn write_level(out: &mut impl Write, nodes: &[Node], depth: usize) -> io::Result<()> {
    let width = nodes.iter().map(|node| node.name.chars().count()).max().unwrap_or(0);
    for node in nodes {
        let style = match node.tone {
            Tone::Plain => Style::new(),
            Tone::Head => HEAD,
            Tone::Good => GOOD,
            Tone::Doubtful => DOUBTFUL,
            Tone::Bad => BAD,
        };
        let indent = depth * 2;
        let mut lines = node.value.lines();
        let first = lines.next().unwrap_or_default();
        let pad = if first.is_empty() { 0 } else { width - node.name.chars().count() + 2 };
        let name = &node.name;
        writeln!(out, "{:indent$}{NAME}{name}{NAME:#}{:pad$}{style}{first}{style:#}", "", "")?;
        for line in lines {
            writeln!(out, "{:1$}{style}{line}{style:#}", "", indent + width + 2)?;
        }
        write_level(out, &node.under, depth + 1)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(nodes: &[Node]) -> String {
        let mut out = anstream::StripStream::new(Vec::new());
        write_all(&mut out, nodes).unwrap();
        String::from_utf8(out.into_inner()).unwrap()
    }

    #[test]
    fn values_of_neighbours_stand_below_each_other() {
        let tree = [
            Node::new("a", "one"),
            Node::new("long", "two\nlines").tone(Tone::Bad).under([Node::new("x", "1"), Node::new("y", "")]),
        ];
        assert_eq!(text(&tree), "a     one\nlong  two\n      lines\n  x  1\n  y\n");
    }
}
