//! Places as people count them: lines and columns, `#line`, includes and macros.

use std::rc::Rc;

use super::{Expansion, File, LineMark, MACRO, Sources, Span, clamp};

/// A place in a text as people count it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// File as named by whoever gave the source, or by `#line`.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl File {
    /// Name of the file and number of the line in which an octet stands, as `#line` says.
    pub(crate) fn line(&self, offset: usize) -> (&str, usize) {
        let mark = self.mark(offset);
        let (from, first) = mark.map_or((0, self.first_line), |mark| (mark.offset as usize, mark.line));
        let between = self.text.as_bytes().get(from..offset.min(self.text.len())).unwrap_or(&[]);
        let lines = between.iter().filter(|octet| **octet == b'\n').count();
        (mark.and_then(|mark| mark.name.as_deref()).unwrap_or(&self.name), first + lines)
    }

    /// The name alone, without counting lines.
    pub(crate) fn name_at(&self, offset: usize) -> &str {
        self.mark(offset).and_then(|mark| mark.name.as_deref()).unwrap_or(&self.name)
    }

    fn mark(&self, offset: usize) -> Option<&LineMark> {
        let mark = self.marks.partition_point(|mark| mark.offset as usize <= offset).checked_sub(1)?;
        self.marks.get(mark)
    }

    /// The name that holds at the end of what was read so far.
    pub(crate) fn last_name(&self) -> Option<Rc<str>> {
        self.marks.last().and_then(|mark| mark.name.clone())
    }
}

impl Sources {
    /// Where a span starts. For text inside a macro this is the place in the Rust file, as far as rustc tells it; for a
    /// token that a `#define` brought, where that is used.
    pub fn position(&self, span: Span) -> Position {
        let Some(file) = self.file(span.file) else {
            return Position { file: MACRO.to_owned(), line: 1, column: 1 };
        };
        let before = file.text.get(..span.start as usize).unwrap_or(&file.text);
        let in_line = before.rsplit('\n').next().unwrap_or("").chars().count();
        let column = if before.contains('\n') { in_line } else { file.first_column + in_line };
        let (name, line) = file.line(before.len());
        Position { file: name.to_owned(), line, column: column + 1 }
    }

    /// The names behind `#include` that led to a span, the innermost first.
    pub fn included_from(&self, span: Span) -> Vec<Span> {
        let from = |span: &Span| self.file(span.file).and_then(|file| file.opened.from);
        std::iter::successors(from(&span), from).collect()
    }

    /// The macros that brought a token, the innermost first: name, and the token in the definition.
    pub fn expanded_from(&self, span: Span) -> Vec<(&str, Span)> {
        let expansion = |number: u32| self.expansions.get((number as usize).checked_sub(1)?);
        std::iter::successors(expansion(span.expansion), |inner| expansion(inner.outer))
            .map(|expansion| (&*expansion.name, expansion.body))
            .collect()
    }

    /// Files a token of a macro's body and gives the span of its use.
    pub(crate) fn expanded(&mut self, name: &Rc<str>, used: Span, body: Span) -> Span {
        self.expansions.push(Expansion { name: Rc::clone(name), body, outer: used.expansion });
        Span { expansion: clamp(self.expansions.len()), ..used }
    }

    /// From this octet on lines count from `line`, in the file of this name if one is given.
    pub(crate) fn mark_line(&mut self, file: u32, offset: usize, line: usize, name: Option<Rc<str>>) {
        if let Some(file) = self.files.get_mut(file as usize) {
            let name = name.or_else(|| file.last_name());
            file.marks.push(LineMark { offset: clamp(offset), line, name });
        }
    }

    /// The text goes on as another file: `# 1 "name" 1` of a preprocessor's output.
    pub(crate) fn add_virtual(&mut self, base: u32, name: String, from: Span) -> u32 {
        let text = self.file(base).map_or_else(|| Rc::from(""), |file| Rc::clone(&file.text));
        let opened = super::Opened { path: None, from: Some(from), included: true };
        self.add_text(name, text, opened)
    }
}
