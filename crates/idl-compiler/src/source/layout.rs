//! Conversion of Rust tokens to a text with the same lines and columns, to which IDL spans can refer.

/// Maximum gaps between tokens in the text. Larger gaps come from macros that combine distant tokens.
const MAX_BLANK_LINES: usize = 50;
const MAX_BLANKS: usize = 200;

/// Text under construction, with the start, end and Rust span of each token.
#[derive(Debug, Default)]
pub(crate) struct TokenText {
    pub(crate) text: String,
    pub(crate) spans: Vec<(u32, u32, proc_macro2::Span)>,
    pub(crate) first_line: usize,
    pub(crate) first_column: usize,
    line: usize,
    column: usize,
}

impl TokenText {
    /// Adds a token and returns its range of bytes.
    pub(crate) fn push(&mut self, token: &str, span: proc_macro2::Span) -> (u32, u32) {
        let place = span.start();
        if self.spans.is_empty() {
            (self.first_line, self.first_column) = (place.line, place.column);
            (self.line, self.column) = (place.line, place.column);
        }
        if place.line > self.line {
            let lines = place.line - self.line;
            self.text.extend(std::iter::repeat_n('\n', lines.min(MAX_BLANK_LINES)));
            (self.line, self.column) = (place.line, 0);
        }
        if place.line == self.line && place.column >= self.column {
            self.text.extend(std::iter::repeat_n(' ', (place.column - self.column).min(MAX_BLANKS)));
            self.column = place.column;
        } else if !self.text.is_empty() {
            self.text.push(' ');
            self.column += 1;
        }
        let start = self.text.len() as u32;
        self.text.push_str(token);
        match token.rsplit_once('\n') {
            None => self.column += token.chars().count(),
            Some((before, last)) => {
                self.line += 1 + before.matches('\n').count();
                self.column = last.chars().count();
            }
        }
        let end = self.text.len() as u32;
        self.spans.push((start, end, span));
        (start, end)
    }

    /// Removes the last token.
    pub(crate) fn pop(&mut self) {
        if let Some((start, _, _)) = self.spans.pop() {
            let removed = self.text.split_off(start as usize);
            self.column = self.column.saturating_sub(removed.chars().count());
        }
    }
}
