//! Positions in messages: lines and columns according to `#line`, and the origins of tokens.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use super::{Expansion, File, LineMark, MACRO, Sources, Span, clamp};

/// The line ends of a text, computed once, on first use.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Byte offsets of the line ends, in order.
    ends: OnceCell<Vec<u32>>,
    /// The last byte offset whose column was computed, and the number of characters before it in its line.
    /// The next query is usually for a nearby offset, which avoids counting a long line again.
    last_column: Cell<(usize, usize)>,
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
    pub(crate) fn name_and_line(&self, offset: usize) -> (&str, usize) {
        let mark = self.mark(offset);
        let (from, first) = mark.map_or((0, self.first_line), |mark| (mark.offset as usize, mark.line));
        let lines = self.ends_before(offset).saturating_sub(self.ends_before(from));
        (mark.and_then(|mark| mark.name.as_deref()).unwrap_or(&self.name), first + lines)
    }

    fn ends_before(&self, offset: usize) -> usize {
        self.line_ends().partition_point(|end| (*end as usize) < offset)
    }

    fn line_ends(&self) -> &[u32] {
        self.lines.ends.get_or_init(|| {
            let bytes = self.text.bytes().enumerate();
            bytes.filter(|(_, byte)| *byte == b'\n').map(|(at, _)| clamp(at)).collect()
        })
    }

    /// Returns the number of characters before a byte in its line, and whether that line is the first.
    fn column(&self, offset: usize) -> (usize, bool) {
        let line = self.ends_before(offset).checked_sub(1).and_then(|last| self.line_ends().get(last));
        let start = line.map_or(0, |end| *end as usize + 1);
        let (known, count) = self.lines.last_column.get();
        let (from, count) = if (start..=offset).contains(&known) { (known, count) } else { (start, 0) };
        let count = count + self.text.get(from..offset).map_or(0, |text| text.chars().count());
        self.lines.last_column.set((offset, count));
        (count, line.is_none())
    }

    /// Returns the offset to show: the end of a text counts as the end of its last line.
    pub(crate) fn visible_offset(&self, offset: usize) -> usize {
        let is_end = offset >= self.text.len() && self.text.ends_with('\n');
        if is_end { self.text.len() - 1 } else { offset }
    }

    /// Returns the name of the file that contains a byte, according to `#line`.
    pub(crate) fn name_at(&self, offset: usize) -> &str {
        self.mark(offset).and_then(|mark| mark.name.as_deref()).unwrap_or(&self.name)
    }

    fn mark(&self, offset: usize) -> Option<&LineMark> {
        let mark = self.marks.partition_point(|mark| mark.offset as usize <= offset).checked_sub(1)?;
        self.marks.get(mark)
    }

    /// Returns the file name that the last `#line` so far sets.
    pub(crate) fn last_name(&self) -> Option<Rc<str>> {
        self.marks.last().and_then(|mark| mark.name.clone())
    }
}

impl Sources {
    /// Returns the position of the start of a span. For text inside a Rust macro, this is the position in the
    /// Rust file, as far as rustc provides it. For a token from a `#define`, it is where the macro is used.
    pub fn position(&self, span: Span) -> Position {
        self.position_at(span.file, span.start)
    }

    /// Returns the position after the last character of a span; otherwise like [`Sources::position`].
    pub fn end_position(&self, span: Span) -> Position {
        self.position_at(span.file, span.end.max(span.start))
    }

    fn position_at(&self, file: u32, offset: u32) -> Position {
        let Some(file) = self.file(file) else {
            return Position { file: MACRO.to_owned(), line: 1, column: 1 };
        };
        let offset = match file.text.is_char_boundary(offset as usize) {
            true => offset as usize,
            false => file.text.len(),
        };
        let offset = file.visible_offset(offset);
        let (column, is_first) = file.column(offset);
        let column = if is_first { file.first_column + column } else { column };
        let (name, line) = file.name_and_line(offset);
        Position { file: name.to_owned(), line, column: column + 1 }
    }

    /// Returns the locations of the `#include` names that led to the file of a span, the innermost first.
    pub fn included_from(&self, span: Span) -> Vec<Span> {
        let from = |span: &Span| self.file(span.file).and_then(|file| file.info.include_span);
        std::iter::successors(from(&span), from).collect()
    }

    pub(crate) fn includer(&self, file: u32) -> Option<u32> {
        self.file(file)?.info.include_span.map(|span| span.file)
    }

    /// Returns the macros from which a token results, innermost first, and where it is in their definitions.
    pub fn expanded_from(&self, span: Span) -> Vec<(&str, Span)> {
        let expansion = |number: u32| self.expansions.get((number as usize).checked_sub(1)?);
        std::iter::successors(expansion(span.expansion), |inner| expansion(inner.outer))
            .map(|expansion| (&*expansion.name, expansion.body))
            .collect()
    }

    /// Records that a token comes from the body of a macro, and returns the token's span at the macro's use.
    pub(crate) fn add_expansion(&mut self, name: &Rc<str>, used: Span, body: Span) -> Span {
        self.expansions.push(Expansion { name: Rc::clone(name), body, outer: used.expansion });
        Span { expansion: clamp(self.expansions.len()), ..used }
    }

    pub(crate) fn mark_line(&mut self, file: u32, offset: usize, line: usize, name: Option<Rc<str>>) {
        if let Some(file) = self.files.get_mut(file as usize) {
            let name = name.or_else(|| file.last_name());
            file.marks.push(LineMark { offset: clamp(offset), line, name });
        }
    }

    /// Adds a file with the text of file `base`, for `# 1 "name" 1` of another preprocessor.
    pub(crate) fn add_virtual(&mut self, base: u32, name: String, from: Span) -> u32 {
        let text = self.file(base).map_or_else(|| Rc::from(""), |file| Rc::clone(&file.text));
        let info = super::FileInfo { include_span: Some(from), included: true, ..super::FileInfo::default() };
        self.add_text(name, text, info)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::{FileInfo, Sources, Span};

    #[test]
    fn positions_do_not_depend_on_the_order_of_queries() {
        let text = "ab\n\nçd é\r\n\u{1f600}x";
        let mut sources = Sources::default();
        let file = sources.add_text("t".to_owned(), Rc::from(text), FileInfo::default());
        let marked = sources.add_text("u".to_owned(), Rc::from("1\n2\n3\n4"), FileInfo::default());
        sources.mark_line(marked, 4, 70, Some(Rc::from("v")));
        let at = |offset: usize| {
            let position = sources.position(Span::new(file, offset..offset));
            (position.line, position.column)
        };
        let expected = |offset: usize| {
            let before = &text[..offset];
            let line = before.matches('\n').count() + 1;
            (line, before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1)
        };
        let offsets: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        for offsets in [offsets.clone(), offsets.iter().rev().copied().collect()] {
            offsets.iter().for_each(|offset| assert_eq!(at(*offset), expected(*offset), "{offset}"));
        }
        assert_eq!(at(1000), expected(text.len()), "after the end");
        let shown = |offset: usize| sources.position(Span::new(marked, offset..offset)).to_string();
        assert_eq!([shown(0), shown(2), shown(4), shown(6)], ["u:1:1", "u:2:1", "v:70:1", "v:71:1"]);
    }
}
