//! `idlc fmt`: indents and spaces IDL.
//!
//! Lines stay lines, as in gofmt: what belongs together is the author's to say. What changes is the white space within them, how far
//! they are indented, and empty lines. The tokens, comments and directives are those of before, which is checked before anything
//! is written; IDL that is not correct is laid out as far as it has tokens.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::{Failure, is_standard_input, write};

const INDENT: usize = 4;

/// Lays files out, each by itself, or tells which would change.
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

/// A piece of the text that white space may stand around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece<'t> {
    kind: Kind,
    text: &'t str,
    /// Line breaks between it and the piece before.
    breaks: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A name, keyword or number.
    Word,
    /// A literal in quotes, with what stands directly before them.
    Literal,
    /// A sign, such as `::`.
    Sign,
    /// `// ...`, without the end of the line.
    LineComment,
    /// `/* ... */`.
    BlockComment,
    /// A line of the preprocessor, with those that it goes on in.
    Directive,
}

/// The text, laid out.
///
/// # Errors
/// The line of a comment or literal that does not end.
fn laid_out(text: &str) -> Result<String, usize> {
    let pieces = pieces(text)?;
    let out = Layout::default().of(&pieces);
    // What is in the way is left as it was.
    match self::pieces(&out) {
        Ok(again) if !same(&pieces, &again) => Ok(text.to_owned()),
        Ok(_) if text.contains("\r\n") => Ok(out.replace("\r\n", "\n").replace('\n', "\r\n")),
        Ok(_) => Ok(out),
        Err(_) => Ok(text.to_owned()),
    }
}

/// Whether they differ in white space alone; that within comments counts as such where lines of it begin.
fn same(before: &[Piece<'_>], after: &[Piece<'_>]) -> bool {
    let stripped = |piece: &Piece<'_>| -> (Kind, Vec<String>) {
        (piece.kind, piece.text.lines().map(|line| line.trim().to_owned()).collect())
    };
    before.len() == after.len() && before.iter().zip(after).all(|(a, b)| stripped(a) == stripped(b))
}

/// Takes a text apart.
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
            // The preprocessor may leave this out, and it may be prose with an apostrophe.
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

/// What begins here, and its octets.
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

/// `#if 0` with all that it leaves out, up to the line that ends that: whatever stands there is no IDL.
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

/// A line, and those that follow behind backslashes. A comment that begins in it and goes on behind it belongs to it.
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

/// A name, keyword or number: `1.5e-3` is one, `1-3` is not.
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

/// Writes pieces.
#[derive(Default)]
struct Layout {
    out: String,
    /// What is open: `{`, `(`, `[`, or `<` of a type.
    open: Vec<char>,
    /// A statement has begun that is not over.
    goes_on: bool,
    /// Below a label of a union, in front of what it selects.
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
                    // One empty line stays one, and none stands behind an opening brace or before a closing one.
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

    /// Indents what begins a line.
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

    /// Whether declarations stand here, and not the parts of one.
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
        // Enumerators are declarations of their own, and so is what an annotation on a line of its own stands above.
        let over = matches!(piece.text, ";" | "{" | "}") || piece.text == "," && self.in_body() || label;
        self.goes_on = !over && !self.line().trim_start().starts_with('@');
        self.labelled = label || self.labelled && !(piece.text == ";" && self.in_body());
    }

    /// What there is of the line.
    fn line(&self) -> &str {
        self.out.rsplit('\n').next().unwrap_or_default()
    }

    /// What there is of the declaration, as far as it is in this line.
    fn declaration(&self) -> &str {
        self.line().rsplit([';', '{', '}']).next().unwrap_or_default().trim_start()
    }

    /// Whether a `<` just written opens the parameters of a type, such as `sequence<long>`, or of a template module.
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
        // Several labels may stand in a line.
        let label = self.declaration().trim_end_matches(':').rsplit(": ").next().unwrap_or_default();
        is_label(label.split([' ', ':']).next().unwrap_or_default())
    }

    /// A comment of several lines: those behind the first stand as they stood to each other.
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
            // Text goes on below the text of the first line.
            let indent = column + if starred { 1 } else { 3 };
            self.out.extend(std::iter::repeat_n(' ', indent));
            self.out.push_str(rest);
        }
    }

    /// Whether a space stands between two pieces of a line.
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
            // Joined they would be another sign.
            (">" | ">>", ">" | ">>") => true,
            (_, ">" | ">>") if in_type => false,
            // A sign of a number, where nothing stands before it.
            ("-" | "+", _) => !earlier.is_none_or(|earlier| match earlier.kind {
                Kind::Sign => !matches!(earlier.text, ")" | "]"),
                _ => earlier.text == "case",
            }),
            (_, "(") if last.kind == Kind::Word => {
                matches!(last.text, "raises" | "getraises" | "setraises" | "context" | "switch")
            }
            // A label, but not what an interface is derived from.
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

/// Types that have their parameters between `<` and `>`.
fn takes_parameters(word: &str) -> bool {
    matches!(word, "sequence" | "string" | "wstring" | "fixed" | "map" | "bitfield")
}

/// Keywords behind which a scoped name may stand, which begins with `::`.
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

    /// All IDL of this repository, be it right or wrong, and that of omniORB where it is installed.
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
