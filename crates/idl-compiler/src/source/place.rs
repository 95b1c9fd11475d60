//! Human-readable positions: lines and columns, `#line`, includes and macros.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use super::{Expansion, File, LineMark, MACRO, Sources, Span, clamp};

/// The line ends of a text, computed on first use. Finding them once avoids a scan from the start for each of
/// the many positions of a model.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Byte offsets of the line ends, in order.
    ends: OnceCell<Vec<u32>>,
    /// The last byte offset whose column was computed, and the number of characters before it in its line.
    /// The next offset is usually close, and a line may be long.
    last: Cell<(usize, usize)>,
}

/// A position in a text, as line and column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The file's name as given with the source, or by `#line`.
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
    /// Returns the name of the file and the number of the line that contains a byte, according to `#line`.
    pub(crate) fn line(&self, offset: usize) -> (&str, usize) {
        let mark = self.mark(offset);
        let (from, first) = mark.map_or((0, self.first_line), |mark| (mark.offset as usize, mark.line));
        let lines = self.ends_before(offset).saturating_sub(self.ends_before(from));
        (mark.and_then(|mark| mark.name.as_deref()).unwrap_or(&self.name), first + lines)
    }

    /// Returns the number of line ends before a byte.
    fn ends_before(&self, offset: usize) -> usize {
        self.line_ends().partition_point(|end| (*end as usize) < offset)
    }

    fn line_ends(&self) -> &[u32] {
        self.lines.ends.get_or_init(|| {
            let octets = self.text.bytes().enumerate();
            octets.filter(|(_, octet)| *octet == b'\n').map(|(at, _)| clamp(at)).collect()
        })
    }

    /// Returns the number of characters before a byte in its line, and whether that line is the first.
    fn column(&self, offset: usize) -> (usize, bool) {
        let line = self.ends_before(offset).checked_sub(1).and_then(|last| self.line_ends().get(last));
        let start = line.map_or(0, |end| *end as usize + 1);
        let (known, count) = self.lines.last.get();
        let (from, count) = if (start..=offset).contains(&known) { (known, count) } else { (start, 0) };
        let count = count + self.text.get(from..offset).map_or(0, |text| text.chars().count());
        self.lines.last.set((offset, count));
        (count, line.is_none())
    }

    /// Returns the offset to show: the end of a text counts as the end of its last line, not as an empty line
    /// after it.
    pub(crate) fn visible(&self, offset: usize) -> usize {
        let is_end = offset >= self.text.len() && self.text.ends_with('\n');
        if is_end { self.text.len() - 1 } else { offset }
    }

    /// Returns the name alone, without counting lines.
    pub(crate) fn name_at(&self, offset: usize) -> &str {
        self.mark(offset).and_then(|mark| mark.name.as_deref()).unwrap_or(&self.name)
    }

    fn mark(&self, offset: usize) -> Option<&LineMark> {
        let mark = self.marks.partition_point(|mark| mark.offset as usize <= offset).checked_sub(1)?;
        self.marks.get(mark)
    }

    /// Returns the name that is in effect at the end of the text read so far.
    pub(crate) fn last_name(&self) -> Option<Rc<str>> {
        self.marks.last().and_then(|mark| mark.name.clone())
    }
}

impl Sources {
    /// Returns the start of a span. For text inside a macro this is the position in the Rust file, as far as
    /// rustc provides it. For a token from a `#define`, it is the position of the use.
    pub fn position(&self, span: Span) -> Position {
        self.at(span.file, span.start)
    }

    /// Returns the position after the last character of a span; otherwise like [`Sources::position`].
    pub fn end(&self, span: Span) -> Position {
        self.at(span.file, span.end.max(span.start))
    }

    fn at(&self, file: u32, offset: u32) -> Position {
        let Some(file) = self.file(file) else {
            return Position { file: MACRO.to_owned(), line: 1, column: 1 };
        };
        let offset = match file.text.is_char_boundary(offset as usize) {
            true => offset as usize,
            false => file.text.len(),
        };
        let offset = file.visible(offset);
        let (column, is_first) = file.column(offset);
        let column = if is_first { file.first_column + column } else { column };
        let (name, line) = file.line(offset);
        Position { file: name.to_owned(), line, column: column + 1 }
    }

    /// Returns the names after `#include` that led to a span, the innermost first.
    pub fn included_from(&self, span: Span) -> Vec<Span> {
        let from = |span: &Span| self.file(span.file).and_then(|file| file.opened.from);
        std::iter::successors(from(&span), from).collect()
    }

    /// Returns the file whose `#include` led to a file.
    pub(crate) fn includer(&self, file: u32) -> Option<u32> {
        self.file(file)?.opened.from.map(|from| from.file)
    }

    /// Returns the macros that a token comes from, the innermost first: name, and the token in the
    /// definition.
    pub fn expanded_from(&self, span: Span) -> Vec<(&str, Span)> {
        let expansion = |number: u32| self.expansions.get((number as usize).checked_sub(1)?);
        std::iter::successors(expansion(span.expansion), |inner| expansion(inner.outer))
            .map(|expansion| (&*expansion.name, expansion.body))
            .collect()
    }

    /// Records a token of a macro's body and returns the span of its use.
    pub(crate) fn expanded(&mut self, name: &Rc<str>, used: Span, body: Span) -> Span {
        self.expansions.push(Expansion { name: Rc::clone(name), body, outer: used.expansion });
        Span { expansion: clamp(self.expansions.len()), ..used }
    }

    /// Records that from this byte on, lines count from `line`, in the file of this name if one is given.
    pub(crate) fn mark_line(&mut self, file: u32, offset: usize, line: usize, name: Option<Rc<str>>) {
        if let Some(file) = self.files.get_mut(file as usize) {
            let name = name.or_else(|| file.last_name());
            file.marks.push(LineMark { offset: clamp(offset), line, name });
        }
    }

    /// Records that the text continues as another file: `# 1 "name" 1` in a preprocessor's output.
    pub(crate) fn add_virtual(&mut self, base: u32, name: String, from: Span) -> u32 {
        let text = self.file(base).map_or_else(|| Rc::from(""), |file| Rc::clone(&file.text));
        let opened = super::Opened { from: Some(from), included: true, ..super::Opened::default() };
        self.add_text(name, text, opened)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::{Opened, Sources, Span};

    #[test]
    fn places_are_counted_from_any_side() {
        let text = "ab\n\nçd é\r\n\u{1f600}x";
        let mut sources = Sources::default();
        let file = sources.add_text("t".to_owned(), Rc::from(text), Opened::default());
        let marked = sources.add_text("u".to_owned(), Rc::from("1\n2\n3\n4"), Opened::default());
        sources.mark_line(marked, 4, 70, Some(Rc::from("v")));
        let at = |offset: usize| {
            let position = sources.position(Span::new(file, offset..offset));
            (position.line, position.column)
        };
        let counted = |offset: usize| {
            let before = &text[..offset];
            let line = before.matches('\n').count() + 1;
            (line, before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1)
        };
        let places: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        for at_once in [places.clone(), places.iter().rev().copied().collect()] {
            at_once.iter().for_each(|offset| assert_eq!(at(*offset), counted(*offset), "{offset}"));
        }
        assert_eq!(at(1000), counted(text.len()), "behind the end");
        let shown = |offset: usize| sources.position(Span::new(marked, offset..offset)).to_string();
        assert_eq!([shown(0), shown(2), shown(4), shown(6)], ["u:1:1", "u:2:1", "v:70:1", "v:71:1"]);
    }
}
