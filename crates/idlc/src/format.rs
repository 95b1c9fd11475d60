//! `idlc fmt`: indents and spaces IDL.
//!
//! Line breaks are kept, as in gofmt, because they express the author's grouping. White space within lines,
//! indentation and empty lines change. Before anything is written, the result is checked to have the same
//! tokens, comments and directives. Incorrect IDL is formatted as far as it consists of tokens.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::{Failure, is_standard_input, write};

const INDENT: usize = 4;

/// Formats files, each by itself, or lists those that would change.
pub(crate) fn files(files: &[PathBuf], check: bool) -> Result<(), Failure> {
    let mut differ = false;
    for path in files {
        let from_stdin = is_standard_input(path);
        let before = read(path)?;
        let after = laid_out(&before).map_err(|line| {
            Failure::Io(format!(
                "{}:{line}: a comment or literal has no end: nothing is changed",
                path.display()
            ))
        })?;
        match (check, from_stdin) {
            (true, _) if after != before => {
                differ = true;
                write(None, &format!("{}\n", path.display()))?;
            }
            (true, _) => {}
            (false, true) => write(None, &after)?,
            (false, false) if after != before => write(Some(path), &after)?,
            (false, false) => {}
        }
    }
    if differ { Err(Failure::Idl) } else { Ok(()) }
}

fn read(path: &Path) -> Result<String, Failure> {
    let octets = if is_standard_input(path) {
        let mut octets = Vec::new();
        io::stdin().read_to_end(&mut octets).map(|_| octets)
    } else {
        fs::read(path)
    };
    let octets = octets.map_err(|error| Failure::Io(format!("cannot read {}: {error}", path.display())))?;
    String::from_utf8(octets)
        .map_err(|_| Failure::Io(format!("{} is not UTF-8: convert it first", path.display())))
}

/// A piece of the text that can be surrounded by white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece<'t> {
    kind: Kind,
    text: &'t str,
    /// Number of line breaks between it and the previous piece.
    breaks: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A name, keyword or number.
    Word,
    /// A literal in quotes, with its prefix.
    Literal,
    /// Punctuation, such as `::`.
    Sign,
    /// `// ...`, without the end of the line.
    LineComment,
    /// `/* ... */`.
    BlockComment,
    /// A preprocessor line, with its continuation lines.
    Directive,
}

/// Returns the formatted text.
///
/// # Errors
/// The line of a comment or literal that does not end.
fn laid_out(text: &str) -> Result<String, usize> {
    let pieces = pieces(text)?;
    let out = Layout::default().of(&pieces);
    // If formatting would change more than white space, the text is left unchanged.
    match self::pieces(&out) {
        Ok(again) if !same(&pieces, &again) => Ok(text.to_owned()),
        Ok(_) if text.contains("\r\n") => Ok(out.replace("\r\n", "\n").replace('\n', "\r\n")),
        Ok(_) => Ok(out),
        Err(_) => Ok(text.to_owned()),
    }
}

/// Returns whether the pieces differ in white space only. White space at the start and end of lines within
/// comments is ignored as well.
fn same(before: &[Piece<'_>], after: &[Piece<'_>]) -> bool {
    let stripped = |piece: &Piece<'_>| -> (Kind, Vec<String>) {
        (piece.kind, piece.text.lines().map(|line| line.trim().to_owned()).collect())
    };
    before.len() == after.len() && before.iter().zip(after).all(|(a, b)| stripped(a) == stripped(b))
}

/// Splits a text into pieces.
fn pieces(text: &str) -> Result<Vec<Piece<'_>>, usize> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut all = Vec::new();
    let (mut at, mut breaks, mut line) = (0, 0, 1);
    let mut conditions = 0_usize;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        if c == '\n' {
            breaks += 1;
            line += 1;
        }
        if c.is_whitespace() || c == '\u{1a}' {
            at += c.len_utf8();
            continue;
        }
        let rest = text.get(at..).unwrap_or_default();
        let starts_line = breaks > 0 || all.is_empty();
        let (kind, len) = match piece(rest, starts_line) {
            Some(found) => found,
            // The preprocessor may skip this text, so it can be prose with an apostrophe.
            None if conditions > 0 && !rest.starts_with("/*") => {
                (Kind::Literal, rest.find('\n').unwrap_or(rest.len()))
            }
            None => return Err(line),
        };
        let piece = rest.get(..len).unwrap_or(rest);
        if kind == Kind::Directive {
            let word = piece.trim_start_matches(['#', ' ', '\t']);
            conditions = match word {
                _ if word.starts_with("if") => conditions + 1,
                _ if word.starts_with("endif") => conditions.saturating_sub(1),
                _ => conditions,
            };
        }
        line += piece.matches('\n').count();
        all.push(Piece { kind, text: piece.trim_end(), breaks });
        breaks = 0;
        at += len;
    }
    Ok(all)
}

/// Returns the kind and the length in bytes of the next piece.
fn piece(rest: &str, starts_line: bool) -> Option<(Kind, usize)> {
    let first = rest.chars().next()?;
    if starts_line && first == '#' {
        return Some((Kind::Directive, skipped(rest).unwrap_or_else(|| directive(rest))));
    }
    if rest.starts_with("//") {
        return Some((Kind::LineComment, rest.find('\n').unwrap_or(rest.len())));
    }
    if rest.starts_with("/*") {
        let end = rest.get(2..)?.find("*/")?;
        return Some((Kind::BlockComment, end + 4));
    }
    for prefix in ["L\"", "L'", "\"", "'"] {
        if rest.starts_with(prefix) {
            return Some((Kind::Literal, literal(rest, prefix)?));
        }
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if is_word(first) || first == '.' && rest.get(1..)?.starts_with(|c: char| c.is_ascii_digit()) {
        return Some((Kind::Word, word(rest)));
    }
    for sign in ["::", "<<", ">>", "##"] {
        if rest.starts_with(sign) {
            return Some((Kind::Sign, sign.len()));
        }
    }
    Some((Kind::Sign, first.len_utf8()))
}

/// Returns the length of `#if 0` and the text that it skips, up to the line that ends it. The skipped text
/// need not be IDL.
fn skipped(rest: &str) -> Option<usize> {
    let word = |line: &str| line.trim_start().strip_prefix('#').map(|word| word.trim().to_owned());
    let mut lines = rest.split_inclusive('\n');
    let first = lines.next()?;
    word(first)?.strip_prefix("if").filter(|condition| condition.trim() == "0")?;
    let (mut at, mut depth) = (first.len(), 0_usize);
    for line in lines {
        match word(line) {
            Some(word) if word.starts_with("if") => depth += 1,
            Some(word) if depth == 0 && ["else", "elif", "endif"].iter().any(|end| word.starts_with(end)) => {
                break;
            }
            Some(word) if word.starts_with("endif") => depth -= 1,
            _ => {}
        }
        at += line.len();
    }
    rest.get(..at).map(|text| text.trim_end().len())
}

/// Returns the length of a directive with its continuation lines. A comment that begins in it and ends after
/// it is included.
fn directive(rest: &str) -> usize {
    let mut at = 0;
    let mut in_comment = false;
    for line in rest.split_inclusive('\n') {
        at += line.len();
        let mut scan = line;
        loop {
            let (mark, opens) = if in_comment { ("*/", false) } else { ("/*", true) };
            match scan.find(mark) {
                Some(place) if opens && scan.get(..place).is_some_and(|before| before.contains("//")) => {
                    break;
                }
                Some(place) => {
                    in_comment = opens;
                    scan = scan.get(place + 2..).unwrap_or_default();
                }
                None => break,
            }
        }
        if !in_comment && !line.trim_end_matches(['\n', '\r']).ends_with('\\') {
            break;
        }
    }
    rest.get(..at).map_or(at, |text| text.trim_end().len())
}

fn literal(rest: &str, prefix: &str) -> Option<usize> {
    let quote = prefix.chars().last()?;
    let mut escaped = false;
    for (place, c) in rest.char_indices().skip(prefix.len()) {
        match c {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(place + 1),
            _ => {}
        }
    }
    None
}

/// Returns the length of a name, keyword or number: `1.5e-3` is one, `1-3` is not.
fn word(rest: &str) -> usize {
    let number = rest.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let hex = rest.starts_with("0x") || rest.starts_with("0X");
    let mut before = '\0';
    for (place, c) in rest.char_indices() {
        let goes_on = c.is_alphanumeric()
            || c == '_'
            || number && c == '.'
            || number && !hex && matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
        if !goes_on {
            return place;
        }
        before = c;
    }
    rest.len()
}

/// The writer of formatted pieces.
#[derive(Default)]
struct Layout {
    out: String,
    /// The open brackets: `{`, `(`, `[`, or `<` of a type.
    open: Vec<char>,
    /// A statement has begun and not ended.
    goes_on: bool,
    /// After a label of a union and before the member that it selects.
    labelled: bool,
}

impl Layout {
    fn of(mut self, pieces: &[Piece<'_>]) -> String {
        let mut before: Option<(usize, &Piece<'_>)> = None;
        for (at, piece) in pieces.iter().enumerate() {
            match before {
                None => self.begin(piece),
                Some((_, last))
                    if piece.breaks > 0 || last.kind == Kind::Directive || piece.kind == Kind::Directive =>
                {
                    self.end_line();
                    // Several empty lines become one. Empty lines after an opening brace and before a closing
                    // one are removed.
                    let wanted = piece.breaks > 1 && last.text != "{" && piece.text != "}";
                    if wanted {
                        self.out.push('\n');
                    }
                    self.begin(piece);
                }
                Some((place, last)) => {
                    let earlier = place.checked_sub(1).and_then(|place| pieces.get(place));
                    if self.spaced(earlier, last, piece) {
                        self.out.push(' ');
                    }
                }
            }
            self.write(piece);
            before = Some((at, piece));
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

    /// Indents a piece at the start of a line.
    fn begin(&mut self, piece: &Piece<'_>) {
        if piece.kind == Kind::Directive {
            return;
        }
        let mut depth = self.open.iter().filter(|open| **open != '<').count();
        if matches!(piece.text, "}" | ")" | "]") {
            depth = depth.saturating_sub(1);
        } else {
            let selected = self.labelled && !is_label(piece.text);
            let further = self.goes_on && self.in_body() && piece.text != "{";
            depth += usize::from(selected || further);
        }
        self.out.extend(std::iter::repeat_n(' ', depth * INDENT));
    }

    /// Returns whether the current position is between declarations, not inside one.
    fn in_body(&self) -> bool {
        self.open.last().is_none_or(|open| *open == '{')
    }

    fn write(&mut self, piece: &Piece<'_>) {
        match piece.kind {
            Kind::BlockComment => return self.comment(piece.text),
            Kind::LineComment | Kind::Directive => {
                self.out.push_str(piece.text);
                return;
            }
            Kind::Word | Kind::Literal | Kind::Sign => self.out.push_str(piece.text),
        }
        match piece.text {
            "{" | "(" | "[" => self.open.extend(piece.text.chars()),
            "<" if self.is_type() => self.open.push('<'),
            ">" | ">>" => {
                for _ in piece.text.chars() {
                    self.open.pop_if(|open| *open == '<');
                }
            }
            "}" | ")" | "]" => {
                while self.open.pop_if(|open| *open == '<').is_some() {}
                self.open.pop();
            }
            _ => {}
        }
        let label = piece.text == ":" && self.is_label_line();
        // An enumerator counts as a declaration. So does an item after an annotation on a line of its own.
        let over = matches!(piece.text, ";" | "{" | "}") || piece.text == "," && self.in_body() || label;
        self.goes_on = !over && !self.line().trim_start().starts_with('@');
        self.labelled = label || self.labelled && !(piece.text == ";" && self.in_body());
    }

    /// Returns the current line so far.
    fn line(&self) -> &str {
        self.out.rsplit('\n').next().unwrap_or_default()
    }

    /// Returns the current declaration so far, within the current line.
    fn declaration(&self) -> &str {
        self.line().rsplit([';', '{', '}']).next().unwrap_or_default().trim_start()
    }

    /// Returns whether a `<` that was just written opens the parameters of a type, such as `sequence<long>`,
    /// or of a template module.
    fn is_type(&self) -> bool {
        let before = self.out.trim_end_matches('<').trim_end();
        let word = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        takes_parameters(word) || self.is_template(word)
    }

    fn is_template(&self, word: &str) -> bool {
        let declaration = self.declaration();
        let names_template = ["module ", "alias "].iter().any(|word| declaration.starts_with(word));
        names_template && word.starts_with(char::is_alphabetic)
    }

    fn is_label_line(&self) -> bool {
        // A line may contain several labels.
        let label = self.declaration().trim_end_matches(':').rsplit(": ").next().unwrap_or_default();
        is_label(label.split([' ', ':']).next().unwrap_or_default())
    }

    /// Writes a comment. The lines after the first keep their relative indentation.
    fn comment(&mut self, text: &str) {
        let column = self.out.rsplit('\n').next().map_or(0, str::len);
        let starred = text.lines().skip(1).all(|line| line.trim_start().starts_with('*'));
        let shared = text
            .lines()
            .skip(1)
            .filter(|line| !line.trim().is_empty())
            .map(|line| line.len() - line.trim_start().len())
            .min()
            .unwrap_or(0);
        for (number, line) in text.lines().enumerate() {
            if number == 0 {
                self.out.push_str(line.trim_end());
                continue;
            }
            self.out.push('\n');
            if line.trim().is_empty() {
                continue;
            }
            let rest = if starred { line.trim() } else { line.get(shared..).unwrap_or(line).trim_end() };
            // Further text is aligned with the text of the first line.
            let indent = column + if starred { 1 } else { 3 };
            self.out.extend(std::iter::repeat_n(' ', indent));
            self.out.push_str(rest);
        }
    }

    /// Returns whether two pieces of a line are separated by a space.
    fn spaced(&self, earlier: Option<&Piece<'_>>, last: &Piece<'_>, piece: &Piece<'_>) -> bool {
        if is_comment(last) || is_comment(piece) {
            return true;
        }
        let in_type = self.open.last() == Some(&'<');
        match (last.text, piece.text) {
            (_, ";" | "," | ")" | "]" | "[") | ("(" | "[" | "@" | "~" | "::", _) | ("{", "}") => false,
            // `in ::M::T t`, but `M::T`.
            (_, "::") => match last.kind {
                Kind::Word => stands_before_types(last.text),
                _ => !matches!(last.text, "<"),
            },
            ("<", _) if in_type => false,
            (_, "<") => !takes_parameters(last.text) && !self.is_template(last.text),
            // Without a space they would form another operator.
            (">" | ">>", ">" | ">>") => true,
            (_, ">" | ">>") if in_type => false,
            // A sign of a number, if no operand precedes it.
            ("-" | "+", _) => !earlier.is_none_or(|earlier| match earlier.kind {
                Kind::Sign => !matches!(earlier.text, ")" | "]"),
                _ => earlier.text == "case",
            }),
            (_, "(") if last.kind == Kind::Word => {
                matches!(last.text, "raises" | "getraises" | "setraises" | "context" | "switch")
            }
            // A label, unlike the bases of an interface, has no space before its colon.
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

/// Returns whether a type has parameters between `<` and `>`.
fn takes_parameters(word: &str) -> bool {
    matches!(word, "sequence" | "string" | "wstring" | "fixed" | "map" | "bitfield")
}

/// Returns whether a keyword may be followed by a scoped name that begins with `::`.
fn stands_before_types(word: &str) -> bool {
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
mod tests {
    use super::*;

    #[track_caller]
    fn becomes(text: &str, wanted: &str) {
        let out = laid_out(text).unwrap();
        assert_eq!(out, wanted, "\n{out}");
        assert_eq!(laid_out(&out).unwrap(), out, "laid out again it is the same");
    }

    #[test]
    fn lines_are_indented_by_what_is_open() {
        becomes(
            "module  M{\ninterface  I:Base ,Other{\nvoid op( in long  a,\nin string<8>b )raises( X ,Y );\nreadonly attribute ::M::T t;\n};\n};",
            "module M {\n    interface I : Base, Other {\n        void op(in long a,\n            in string<8> b) raises (X, Y);\n        readonly attribute ::M::T t;\n    };\n};\n",
        );
    }

    #[test]
    fn unions_enums_and_constants_are_spaced() {
        becomes(
            "union U switch(long){\ncase 1 :case -2: long  a;\ndefault:\nsequence <sequence<long>,3>b[2] [3];\n};\nenum E{A,B ,\nC};\nconst long X=-1+ ( 2<<3 )*~4;\nconst double D = 1.5e-3;\n",
            "union U switch (long) {\n    case 1: case -2: long a;\n    default:\n        sequence<sequence<long>, 3> b[2][3];\n};\nenum E { A, B,\n    C };\nconst long X = -1 + (2 << 3) * ~4;\nconst double D = 1.5e-3;\n",
        );
    }

    #[test]
    fn parameters_of_template_modules_are_spaced() {
        becomes(
            "module M<typename T ,const long N,sequence <T>Q>{\nalias ::Other < T,N >Names;\ntypedef sequence<T,N> L;\n};\nmodule ::A::M <sequence <long>,(1+2),sequence<long> >X;\n",
            "module M<typename T, const long N, sequence<T> Q> {\n    alias ::Other<T, N> Names;\n    typedef sequence<T, N> L;\n};\nmodule ::A::M<sequence<long>, (1 + 2), sequence<long> > X;\n",
        );
    }

    #[test]
    fn comments_and_directives_stay() {
        becomes(
            "#ifndef A // x\n#define A \\\n    1\n/* a\n   b */\nmodule M { // why\n/** one\n* two\n*/\n\n\n  struct S { long a; /* in */ char b; };\n\n};\n#endif\n",
            "#ifndef A // x\n#define A \\\n    1\n/* a\n   b */\nmodule M { // why\n    /** one\n     * two\n     */\n\n    struct S { long a; /* in */ char b; };\n};\n#endif\n",
        );
    }

    #[test]
    fn literals_are_left_alone() {
        becomes(
            "const string S=\"a  \\\" // b\";\nconst wchar W=L'\\'' ;\n",
            "const string S = \"a  \\\" // b\";\nconst wchar W = L'\\'';\n",
        );
        becomes(
            "#if 0\n  it isn't   IDL\n#if 1\n#else\n#endif\n#else\nconst long A=1;\n#endif\n",
            "#if 0\n  it isn't   IDL\n#if 1\n#else\n#endif\n#else\nconst long A = 1;\n#endif\n",
        );
        assert!(laid_out("#ifdef NOTES\nit isn't IDL\n#endif\nconst long A=1;\n").is_ok());
        assert_eq!(laid_out("const string S = \"a\n;"), Err(1));
        assert_eq!(laid_out("\n/* a"), Err(2));
    }

    #[test]
    fn line_ends_stay_what_they_are() {
        becomes("struct S {\r\nlong a;\r\n};\r\n", "struct S {\r\n    long a;\r\n};\r\n");
        becomes("\u{feff}struct S { };", "struct S {};\n");
        becomes("", "");
    }

    /// Formats all IDL of this repository, whether correct or not, and that of omniORB if it is installed.
    #[test]
    fn no_token_is_lost_and_what_is_laid_out_stays() {
        let mut folders =
            vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")), "/usr/share/idl".into()];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "idl") {
                    let Ok(text) = fs::read_to_string(&path) else { continue };
                    let Ok(before) = pieces(&text) else { continue };
                    let out = Layout::default().of(&before);
                    assert!(same(&before, &pieces(&out).unwrap()), "{}\n{out}", path.display());
                    assert_eq!(laid_out(&out).unwrap(), out, "{}", path.display());
                    seen += 1;
                }
            }
        }
        assert!(seen > 50, "{seen} files");
    }

    #[test]
    fn annotations_and_values_are_spaced() {
        becomes(
            "@topic( name=\"x\" )struct S{@key long a;};\nvaluetype V:truncatable Base supports I{public long a;factory make(in long a);};\n",
            "@topic(name = \"x\") struct S { @key long a; };\nvaluetype V : truncatable Base supports I { public long a; factory make(in long a); };\n",
        );
    }
}
