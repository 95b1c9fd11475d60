//! Places as people count them: lines and columns, `#line`, includes and macros.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use super::{Expansion, File, LineMark, MACRO, Sources, Span, clamp};

/// Where the lines of a text end, found when first asked for: a model has many places, which people count from the
/// start.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Octets of the line ends, in order.
    ends: OnceCell<Vec<u32>>,
    /// The last octet of which the column was asked, and characters before it in its line: the next is near it most
    /// often, and a line may be long.
    last: Cell<(usize, usize)>,
}

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
        let lines = self.ends_before(offset).saturating_sub(self.ends_before(from));
        (mark.and_then(|mark| mark.name.as_deref()).unwrap_or(&self.name), first + lines)
    }

    /// How many lines end before an octet.
    fn ends_before(&self, offset: usize) -> usize {
        self.line_ends().partition_point(|end| (*end as usize) < offset)
    }

    fn line_ends(&self) -> &[u32] {
        self.lines.ends.get_or_init(|| {
            let octets = self.text.bytes().enumerate();
            octets.filter(|(_, octet)| *octet == b'\n').map(|(at, _)| clamp(at)).collect()
        })
    }

    /// Characters before an octet in its line, and whether that is the first.
    fn column(&self, offset: usize) -> (usize, bool) {
        let line = self.ends_before(offset).checked_sub(1).and_then(|last| self.line_ends().get(last));
        let start = line.map_or(0, |end| *end as usize + 1);
        let (known, count) = self.lines.last.get();
        let (from, count) = if (start..=offset).contains(&known) { (known, count) } else { (start, 0) };
        let count = count + self.text.get(from..offset).map_or(0, |text| text.chars().count());
        self.lines.last.set((offset, count));
        (count, line.is_none())
    }

    /// The end of a text is behind its last line, not in an empty line that follows.
    pub(crate) fn visible(&self, offset: usize) -> usize {
        let is_end = offset >= self.text.len() && self.text.ends_with('\n');
        if is_end { self.text.len() - 1 } else { offset }
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
        self.at(span.file, span.start)
    }

    /// The place behind the last character of a span; otherwise as [`Sources::position`].
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

    /// The names behind `#include` that led to a span, the innermost first.
    pub fn included_from(&self, span: Span) -> Vec<Span> {
        let from = |span: &Span| self.file(span.file).and_then(|file| file.opened.from);
        std::iter::successors(from(&span), from).collect()
    }

    /// The file whose `#include` led to a file.
    pub(crate) fn includer(&self, file: u32) -> Option<u32> {
        self.file(file)?.opened.from.map(|from| from.file)
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
