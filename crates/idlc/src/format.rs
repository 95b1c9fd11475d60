//! `idlc fmt`: formats IDL.
//!
//! Line breaks are kept, as by gofmt, because they express the grouping that the author wants. Indentation,
//! empty lines and white space within lines change. A file is written only if the result has the same tokens,
//! comments and directives. The IDL may be incorrect, but all its comments and literals must have an end.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::{Failure, is_standard_input, write};

const INDENT_SPACES: usize = 4;

/// Formats each file, or with `check_only` lists the files that would change.
pub(crate) fn format_files(files: &[PathBuf], check_only: bool) -> Result<(), Failure> {
    let mut has_changes = false;
    for path in files {
        let from_stdin = is_standard_input(path);
        let before = read(path)?;
        let after = format_text(&before).map_err(|line| {
            let problem = "a comment or literal has no end; the file is not changed";
            Failure::Io(format!("{}:{line}: {problem}", path.display()))
        })?;
        match (check_only, from_stdin) {
            (true, _) if after != before => {
                has_changes = true;
                write(None, &format!("{}\n", path.display()))?;
            }
            (true, _) => {}
            (false, true) => write(None, &after)?,
            (false, false) if after != before => write(Some(path), &after)?,
            (false, false) => {}
        }
    }
    if has_changes { Err(Failure::Idl) } else { Ok(()) }
}

fn read(path: &Path) -> Result<String, Failure> {
    let bytes = if is_standard_input(path) {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    let bytes = bytes.map_err(|error| Failure::Io(format!("cannot read {}: {error}", path.display())))?;
    String::from_utf8(bytes).map_err(|_| Failure::Io(format!("{} is not UTF-8", path.display())))
}

/// A token, comment or directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece<'t> {
    kind: Kind,
    text: &'t str,
    /// The number of line breaks before the piece.
    line_breaks: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A name, keyword or number.
    Word,
    /// A literal in quotes, with its prefix.
    Literal,
    Punctuation,
    LineComment,
    BlockComment,
    /// A preprocessor line, with its continuation lines.
    Directive,
}

/// Returns the formatted text. The error is the line of a comment or literal that has no end.
fn format_text(text: &str) -> Result<String, usize> {
    let pieces = split_pieces(text)?;
    let out = Formatter::default().format(&pieces);
    // If formatting would change more than white space, the text is left unchanged.
    match split_pieces(&out) {
        Ok(new_pieces) if !is_equal(&pieces, &new_pieces) => Ok(text.to_owned()),
        Ok(_) if text.contains("\r\n") => Ok(out.replace("\r\n", "\n").replace('\n', "\r\n")),
        Ok(_) => Ok(out),
        Err(_) => Ok(text.to_owned()),
    }
}

/// Returns whether the pieces are equal, apart from white space at the start and end of their lines.
fn is_equal(before: &[Piece<'_>], after: &[Piece<'_>]) -> bool {
    let stripped = |piece: &Piece<'_>| -> (Kind, Vec<String>) {
        (piece.kind, piece.text.lines().map(|line| line.trim().to_owned()).collect())
    };
    before.len() == after.len() && before.iter().zip(after).all(|(a, b)| stripped(a) == stripped(b))
}

/// Splits a text into pieces. The error is the line of a comment or literal that has no end.
fn split_pieces(text: &str) -> Result<Vec<Piece<'_>>, usize> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut all = Vec::new();
    let (mut position, mut line_breaks, mut line) = (0, 0, 1);
    // The number of enclosing `#if` directives.
    let mut condition_depth = 0_usize;
    while let Some(c) = text.get(position..).and_then(|rest| rest.chars().next()) {
        if c == '\n' {
            line_breaks += 1;
            line += 1;
        }
        if c.is_whitespace() || c == '\u{1a}' {
            position += c.len_utf8();
            continue;
        }
        let rest = text.get(position..).unwrap_or_default();
        let starts_line = line_breaks > 0 || all.is_empty();
        let (kind, len) = match next_piece(rest, starts_line) {
            Some(piece) => piece,
            // The preprocessor may skip text after an `#if`. Such text need not be IDL.
            None if condition_depth > 0 && !rest.starts_with("/*") => {
                (Kind::Literal, rest.find('\n').unwrap_or(rest.len()))
            }
            None => return Err(line),
        };
        let piece = rest.get(..len).unwrap_or(rest);
        if kind == Kind::Directive {
            let word = piece.trim_start_matches(['#', ' ', '\t']);
            condition_depth = match word {
                _ if word.starts_with("if") => condition_depth + 1,
                _ if word.starts_with("endif") => condition_depth.saturating_sub(1),
                _ => condition_depth,
            };
        }
        line += piece.matches('\n').count();
        all.push(Piece { kind, text: piece.trim_end(), line_breaks });
        line_breaks = 0;
        position += len;
    }
    Ok(all)
}

/// Returns the kind and the length in bytes of the next piece. Returns `None` if it has no end.
fn next_piece(rest: &str, starts_line: bool) -> Option<(Kind, usize)> {
    let first = rest.chars().next()?;
    if starts_line && first == '#' {
        return Some((Kind::Directive, skipped_block_len(rest).unwrap_or_else(|| directive_len(rest))));
    }
    if rest.starts_with("//") {
        return Some((Kind::LineComment, rest.find('\n').unwrap_or(rest.len())));
    }
    if rest.starts_with("/*") {
        let end = rest.get(2..)?.find("*/")?;
        return Some((Kind::BlockComment, end + 4));
    }
    if let Some(prefix) = ["L\"", "L'", "\"", "'"].into_iter().find(|prefix| rest.starts_with(prefix)) {
        return Some((Kind::Literal, literal_len(rest, prefix)?));
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if is_word(first) || first == '.' && rest.get(1..)?.starts_with(|c: char| c.is_ascii_digit()) {
        return Some((Kind::Word, word_len(rest)));
    }
    let sign = ["::", "<<", ">>", "##"].into_iter().find(|sign| rest.starts_with(sign));
    Some((Kind::Punctuation, sign.map_or(first.len_utf8(), str::len)))
}

/// Returns the length of `#if 0` and the text that it skips, or `None` for any other directive.
fn skipped_block_len(rest: &str) -> Option<usize> {
    let directive = |line: &str| line.trim_start().strip_prefix('#').map(|word| word.trim().to_owned());
    let mut lines = rest.split_inclusive('\n');
    let first = lines.next()?;
    directive(first)?.strip_prefix("if").filter(|condition| condition.trim() == "0")?;
    let (mut len, mut depth) = (first.len(), 0_usize);
    for line in lines {
        match directive(line) {
            Some(word) if word.starts_with("if") => depth += 1,
            Some(word) if depth == 0 && ["else", "elif", "endif"].iter().any(|end| word.starts_with(end)) => {
                break;
            }
            Some(word) if word.starts_with("endif") => depth -= 1,
            _ => {}
        }
        len += line.len();
    }
    rest.get(..len).map(|text| text.trim_end().len())
}

/// Returns the length of a directive with its continuation lines and a block comment that starts in it.
fn directive_len(rest: &str) -> usize {
    let mut len = 0;
    let mut in_comment = false;
    for line in rest.split_inclusive('\n') {
        len += line.len();
        let mut remaining = line;
        loop {
            let (delimiter, is_start) = if in_comment { ("*/", false) } else { ("/*", true) };
            match remaining.find(delimiter) {
                Some(position)
                    if is_start && remaining.get(..position).is_some_and(|before| before.contains("//")) =>
                {
                    break;
                }
                Some(position) => {
                    in_comment = is_start;
                    remaining = remaining.get(position + 2..).unwrap_or_default();
                }
                None => break,
            }
        }
        if !in_comment && !line.trim_end_matches(['\n', '\r']).ends_with('\\') {
            break;
        }
    }
    rest.get(..len).map_or(len, |text| text.trim_end().len())
}

/// Returns the length of a literal. Returns `None` if it does not end in the same line.
fn literal_len(rest: &str, prefix: &str) -> Option<usize> {
    let quote = prefix.chars().last()?;
    let mut is_escaped = false;
    for (position, c) in rest.char_indices().skip(prefix.len()) {
        match c {
            '\n' => return None,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return Some(position + 1),
            _ => {}
        }
    }
    None
}

/// Returns the length of a name, keyword or number. `1.5e-3` is one number, but `1-3` is not.
fn word_len(rest: &str) -> usize {
    let is_number = rest.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let is_hex = rest.starts_with("0x") || rest.starts_with("0X");
    let mut previous = '\0';
    for (position, c) in rest.char_indices() {
        let is_part = c.is_alphanumeric()
            || c == '_'
            || is_number && c == '.'
            || is_number && !is_hex && matches!(c, '+' | '-') && matches!(previous, 'e' | 'E');
        if !is_part {
            return position;
        }
        previous = c;
    }
    rest.len()
}

/// The formatted text so far, and the state of the formatter.
#[derive(Default)]
struct Formatter {
    out: String,
    /// The open brackets: `{`, `(`, `[`, or `<` of a type.
    open_brackets: Vec<char>,
    in_declaration: bool,
    /// True between a label of a union and the end of the member that it selects.
    is_labelled: bool,
}

impl Formatter {
    fn format(mut self, pieces: &[Piece<'_>]) -> String {
        let mut last: Option<&Piece<'_>> = None;
        for (index, piece) in pieces.iter().enumerate() {
            match last {
                None => self.indent(piece),
                Some(last)
                    if piece.line_breaks > 0
                        || last.kind == Kind::Directive
                        || piece.kind == Kind::Directive =>
                {
                    self.end_line();
                    // Several empty lines become one. After `{` and before `}` they are removed.
                    if piece.line_breaks > 1 && last.text != "{" && piece.text != "}" {
                        self.out.push('\n');
                    }
                    self.indent(piece);
                }
                Some(last) => {
                    let earlier = index.checked_sub(2).and_then(|index| pieces.get(index));
                    if self.needs_space(earlier, last, piece) {
                        self.out.push(' ');
                    }
                }
            }
            self.write(piece);
            last = Some(piece);
        }
        self.end_line();
        self.out
    }

    fn end_line(&mut self) {
        let len = self.out.trim_end_matches(' ').len();
        self.out.truncate(len);
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn indent(&mut self, piece: &Piece<'_>) {
        if piece.kind == Kind::Directive {
            return;
        }
        let mut depth = self.open_brackets.iter().filter(|open| **open != '<').count();
        if matches!(piece.text, "}" | ")" | "]") {
            depth = depth.saturating_sub(1);
        } else {
            let is_selected = self.is_labelled && !is_label(piece.text);
            let is_continuation = self.in_declaration && self.in_body() && piece.text != "{";
            depth += usize::from(is_selected || is_continuation);
        }
        self.out.extend(std::iter::repeat_n(' ', depth * INDENT_SPACES));
    }

    fn in_body(&self) -> bool {
        self.open_brackets.last().is_none_or(|open| *open == '{')
    }

    fn write(&mut self, piece: &Piece<'_>) {
        match piece.kind {
            Kind::BlockComment => return self.write_comment(piece.text),
            Kind::LineComment | Kind::Directive => {
                self.out.push_str(piece.text);
                return;
            }
            Kind::Word | Kind::Literal | Kind::Punctuation => self.out.push_str(piece.text),
        }
        match piece.text {
            "{" | "(" | "[" => self.open_brackets.extend(piece.text.chars()),
            "<" if self.opens_type_parameters() => self.open_brackets.push('<'),
            ">" | ">>" => {
                for _ in piece.text.chars() {
                    self.open_brackets.pop_if(|open| *open == '<');
                }
            }
            "}" | ")" | "]" => {
                while self.open_brackets.pop_if(|open| *open == '<').is_some() {}
                self.open_brackets.pop();
            }
            _ => {}
        }
        let ends_label = piece.text == ":" && self.is_label_line();
        // An enumerator counts as a declaration. A line that starts with an annotation is a declaration of
        // its own, so that the next line is not indented.
        let ends_declaration =
            matches!(piece.text, ";" | "{" | "}") || piece.text == "," && self.in_body() || ends_label;
        self.in_declaration = !ends_declaration && !self.line().trim_start().starts_with('@');
        self.is_labelled = ends_label || self.is_labelled && !(piece.text == ";" && self.in_body());
    }

    fn line(&self) -> &str {
        self.out.rsplit('\n').next().unwrap_or_default()
    }

    /// Returns the part of the current line that belongs to the current declaration.
    fn declaration(&self) -> &str {
        self.line().rsplit([';', '{', '}']).next().unwrap_or_default().trim_start()
    }

    /// Returns whether the `<` at the end of the output opens parameters, as in `sequence<long>`.
    fn opens_type_parameters(&self) -> bool {
        let before = self.out.trim_end_matches('<').trim_end();
        let word = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        takes_parameters(word) || self.is_template(word)
    }

    /// Returns whether a word in the current declaration is the name of a template module.
    fn is_template(&self, word: &str) -> bool {
        let declaration = self.declaration();
        let may_name_template = ["module ", "alias "].iter().any(|word| declaration.starts_with(word));
        may_name_template && word.starts_with(char::is_alphabetic)
    }

    /// Returns whether the current declaration is a label of a union.
    fn is_label_line(&self) -> bool {
        // A line may contain several labels.
        let label = self.declaration().trim_end_matches(':').rsplit(": ").next().unwrap_or_default();
        is_label(label.split([' ', ':']).next().unwrap_or_default())
    }

    /// Writes a block comment. The lines after the first one keep their indentation relative to each other.
    fn write_comment(&mut self, text: &str) {
        let column = self.out.rsplit('\n').next().map_or(0, str::len);
        let has_stars = text.lines().skip(1).all(|line| line.trim_start().starts_with('*'));
        let common_indent = text
            .lines()
            .skip(1)
            .filter(|line| !line.trim().is_empty())
            .map(|line| line.len() - line.trim_start().len())
            .min()
            .unwrap_or(0);
        for (index, line) in text.lines().enumerate() {
            if index == 0 {
                self.out.push_str(line.trim_end());
                continue;
            }
            self.out.push('\n');
            if line.trim().is_empty() {
                continue;
            }
            let rest =
                if has_stars { line.trim() } else { line.get(common_indent..).unwrap_or(line).trim_end() };
            // Stars are aligned with the `*` of `/*`, and other text with the text after `/* `.
            let indent = column + if has_stars { 1 } else { 3 };
            self.out.extend(std::iter::repeat_n(' ', indent));
            self.out.push_str(rest);
        }
    }

    /// Returns whether a space separates two pieces of a line, `last` and `piece`. `earlier` precedes `last`.
    fn needs_space(&self, earlier: Option<&Piece<'_>>, last: &Piece<'_>, piece: &Piece<'_>) -> bool {
        if is_comment(last) || is_comment(piece) {
            return true;
        }
        let in_type = self.open_brackets.last() == Some(&'<');
        match (last.text, piece.text) {
            (_, ";" | "," | ")" | "]" | "[") | ("(" | "[" | "@" | "~" | "::", _) | ("{", "}") => false,
            // There is a space before `::` in `in ::M::T t`, but not in `M::T`.
            (_, "::") => match last.kind {
                Kind::Word => can_precede_scoped_name(last.text),
                _ => !matches!(last.text, "<"),
            },
            ("<", _) if in_type => false,
            (_, "<") => !takes_parameters(last.text) && !self.is_template(last.text),
            // Without a space, `> >` would be another operator.
            (">" | ">>", ">" | ">>") => true,
            (_, ">" | ">>") if in_type => false,
            // No space follows the sign of a number. Without an operand before it, `-` or `+` is a sign.
            ("-" | "+", _) => !earlier.is_none_or(|earlier| match earlier.kind {
                Kind::Punctuation => !matches!(earlier.text, ")" | "]"),
                _ => earlier.text == "case",
            }),
            (_, "(") if last.kind == Kind::Word => {
                matches!(last.text, "raises" | "getraises" | "setraises" | "context" | "switch")
            }
            // There is no space before the colon of a label, unlike before the bases of an interface.
            (_, ":") => !self.is_label_line(),
            _ => true,
        }
    }
}

fn is_comment(piece: &Piece<'_>) -> bool {
    matches!(piece.kind, Kind::LineComment | Kind::BlockComment)
}

fn is_label(word: &str) -> bool {
    matches!(word, "case" | "default")
}

fn takes_parameters(word: &str) -> bool {
    matches!(word, "sequence" | "string" | "wstring" | "fixed" | "map" | "bitfield")
}

/// Returns whether the word is a keyword that a scoped name with `::` at its start can follow.
fn can_precede_scoped_name(word: &str) -> bool {
    matches!(
        word,
        "in" | "out"
            | "inout"
            | "const"
            | "typedef"
            | "attribute"
            | "readonly"
            | "case"
            | "public"
            | "private"
            | "supports"
            | "truncatable"
            | "manages"
            | "primarykey"
            | "provides"
            | "uses"
            | "emits"
            | "publishes"
            | "consumes"
            | "port"
            | "oneway"
            | "multiple"
            | "module"
            | "alias"
            | "import"
            | "finder"
            | "factory"
            | "raises"
    )
}

#[cfg(test)]
mod tests;
