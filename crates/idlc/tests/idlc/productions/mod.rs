//! What becomes of each production of the grammar, measured by texts that use it, is the table at the end of
//! docs/IDL-MAPPING.md. `BLESS=1 cargo test -p idlc --test idlc productions` writes it anew.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use idl_compiler::emit::{Options, emit};
use idl_compiler::{Compiler, Diagnostics, Severity, Source};
use proc_macro2::TokenStream;

const GRAMMAR: &str = include_str!("grammar.txt");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/IDL-MAPPING.md");
const BEGIN: &str = "<!-- productions: made by the tests of idlc -->\n";
const END: &str = "<!-- end of productions -->\n";

/// How many productions IDL 4.2 has.
const PRODUCTIONS: usize = 226;

/// Every word that IDL 4.2 reserves, and those of other versions that are words here.
const WORDS: &str = "abstract alias any attribute bitfield bitmask bitset boolean case char component connector const \
    consumes context custom default double emits enum eventtype exception factory FALSE finder fixed float getraises home \
    import in inout int16 int32 int64 int8 interface local long manages map mirrorport module multiple native Object octet \
    oneway out port porttype primarykey private provides public publishes raises readonly sequence setraises short string \
    struct supports switch TRUE truncatable typedef typeid typename typeprefix uint16 uint32 uint64 uint8 union unsigned \
    uses ValueBase valuetype void wchar wstring";

/// What a native type of the examples is.
const NATIVE: &str = "/// Native.\n#[derive(Debug)]\npub struct Handle;";

/// The module `Components` of the compiler, whole.
fn known() -> String {
    let known = include_str!("../../../../idl-compiler/src/components.idl");
    let text = format!("#pragma prefix \"omg.org\"\nmodule Components {{\n{known}}};\n");
    let model = Compiler::default().compile(Source::text("known.idl", text)).unwrap_or_else(|_| panic!());
    let file = syn::parse2(emit(&model, &Options::default()).unwrap_or_else(|_| panic!()).tokens).unwrap();
    format!("/// Known.\npub mod known {{\n{}\n}}\n", prettyplease::unparse(&file))
}

/// What the author of a type writes beside the generated code.
fn by_hand(idl: &str) -> &'static str {
    match idl.contains("custom valuetype V ") {
        true => CUSTOM,
        false => "",
    }
}

const CUSTOM: &str = "
use ::zorb::values::{CustomMarshal, DecodeError, Decoder, EncodeError, Encoder};
impl CustomMarshal for V {
    fn marshal(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_i32(self.a);
        Ok(())
    }
    fn unmarshal(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.a = d.read_i32()?;
        Ok(())
    }
}";

/// A line of the grammar.
struct Row {
    /// None for what is no production.
    number: Option<usize>,
    name: String,
    /// The text that uses it.
    with: String,
    /// The same text without it.
    without: String,
}

/// A part of the grammar, and its rows.
type Block = (String, Vec<Row>);

fn blocks() -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for line in GRAMMAR.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(title) = line.strip_prefix("== ") {
            blocks.push((title.to_owned(), Vec::new()));
            continue;
        }
        let (head, text) = line.split_once(" | ").unwrap_or_else(|| panic!("no text: {line}"));
        let (number, name) = head.split_once(' ').unwrap();
        let (with, without) = texts(text);
        let row = Row { number: number.parse().ok(), name: name.to_owned(), with, without };
        blocks.last_mut().unwrap().1.push(row);
    }
    blocks
}

/// A text with what is marked, and without it or with what stands in its place.
fn texts(marked: &str) -> (String, String) {
    let (mut with, mut without) = (String::new(), String::new());
    let mut parts = marked.split(['«', '»']);
    let first = parts.next().unwrap();
    with.push_str(first);
    without.push_str(first);
    while let (Some(use_of_it), Some(rest)) = (parts.next(), parts.next()) {
        let (new, old) = use_of_it.split_once('¦').unwrap_or((use_of_it, ""));
        with = with + new + rest;
        without = without + old + rest;
    }
    assert!(with != without, "nothing is marked: {marked}");
    (with, without)
}

/// What a text gives: Rust and the codes of warnings, or the code of the first error.
fn outcome(text: &str) -> Result<(TokenStream, Vec<String>), String> {
    let codes = |found: &Diagnostics, severity: Severity| -> Vec<String> {
        found.iter().filter(|it| it.severity == severity).map(|it| it.code.to_string()).collect()
    };
    let refused = |errors: Diagnostics| codes(&errors, Severity::Error).swap_remove(0);
    let model = Compiler::default().compile(Source::text("text.idl", text)).map_err(refused)?;
    let mut options = Options::default();
    if text.contains("native Handle;") {
        options.external.push(("::Handle".to_owned(), "crate::Handle".parse().unwrap()));
    }
    // The module of the component model is made once for all rows.
    if model.find("Components").is_some() {
        options.external.push(("::Components".to_owned(), "crate::known::components".parse().unwrap()));
    }
    assert!(options.check(&model).is_empty(), "{text}");
    let warnings = codes(model.warnings(), Severity::Warning);
    Ok((emit(&model, &options).map_err(refused)?.tokens, warnings))
}

/// What becomes of a row: its state, and its Rust where it has some.
fn state(row: &Row) -> (String, Option<TokenStream>) {
    let without = match row.without.trim() {
        "" => (TokenStream::new(), Vec::new()),
        text => outcome(text).unwrap_or_else(|code| panic!("{}: {code} in `{text}`", row.name)),
    };
    match outcome(&row.with) {
        Err(code) => (format!("refused, `error[{code}]`"), None),
        Ok((_, warnings)) if warnings.len() > without.1.len() => {
            (format!("ignored, `warning[{}]`", warnings.join(", ")), None)
        }
        Ok((rust, _)) if items(&rust) == items(&without.0) => ("checked only".to_owned(), None),
        Ok((rust, _)) => ("mapped".to_owned(), Some(rust)),
    }
}

/// Rust without the name of the hidden module, which is that of the text.
fn items(rust: &TokenStream) -> String {
    let text = rust.to_string();
    let Some(at) = text.find("__zorb_idl_") else { return text };
    let name: String =
        text[at..].chars().take_while(|char| char.is_ascii_alphanumeric() || *char == '_').collect();
    text.replace(&name, "")
}

/// This takes more than ten seconds if the generated Rust has changed: rustc checks a crate with all of it.
#[test]
fn the_table_of_productions_is_true() {
    let mut table = String::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut rust = format!("{NATIVE}\n{}\n", known());
    let (mut seen, mut rows, mut texts) = (0, 0, BTreeSet::new());
    for (title, block) in blocks() {
        let head = "| | production | example | state |\n|---:|---|---|---|";
        writeln!(table, "\n**{title}**\n\n{head}").unwrap();
        for row in block {
            let (state, tokens) = state(&row);
            if let Some(number) = row.number {
                seen += 1;
                assert_eq!(number, seen, "productions are in order, and none is left out");
                *counts.entry(state.split(',').next().unwrap_or_default().to_owned()).or_default() += 1;
            }
            let number = row.number.map(|number| number.to_string()).unwrap_or_default();
            let (name, text) = (row.name.replace('|', "\\|"), row.with.replace('|', "\\|"));
            let name = if row.number.is_some() { format!("`{name}`") } else { name };
            writeln!(table, "| {number} | {name} | `{text}` | {state} |").unwrap();
            if let Some(tokens) = tokens.filter(|_| texts.insert(row.with.clone())) {
                let file: syn::File = syn::parse2(tokens).unwrap();
                let docs = row.with.replace('\\', "\\\\");
                let items = prettyplease::unparse(&file);
                let by_hand = by_hand(&row.with);
                rows += 1;
                writeln!(rust, "/// {docs}\npub mod row_{rows} {{\n{items}\n{by_hand}\n}}").unwrap();
            }
        }
    }
    assert_eq!(seen, PRODUCTIONS);
    let counts: Vec<String> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let table = format!("{PRODUCTIONS} productions: {}.\n{table}", counts.join(", "));
    compare(&table);
    support::rustc_accepts("productions", &[("rows", rust)]);
}

fn compare(table: &str) {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{BEGIN}{table}{END}{after}");
    if std::env::var_os("BLESS").is_some() {
        return std::fs::write(PAGE, wanted).unwrap();
    }
    let changed: Vec<&str> = wanted.lines().filter(|line| !page.contains(line)).collect();
    assert!(page == wanted, "BLESS=1 writes docs/IDL-MAPPING.md anew; new:\n{}", changed.join("\n"));
}

#[test]
fn every_word_of_idl_is_in_an_example() {
    let texts: Vec<String> = blocks().into_iter().flat_map(|(_, rows)| rows).map(|row| row.with).collect();
    let used = |word: &str| {
        texts.iter().any(|text| {
            text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_').any(|part| part == word)
        })
    };
    let missing: Vec<&str> = WORDS.split_whitespace().filter(|word| !used(word)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn states_are_told_apart() {
    let state_of = |marked: &str| {
        let (with, without) = texts(marked);
        state(&Row { number: None, name: String::new(), with, without }).0
    };
    assert_eq!(state_of("const long A = «2¦1»;"), "mapped");
    assert_eq!(state_of("const long A = «0x1¦1»;"), "checked only");
    assert_eq!(state_of("const long A = «1.5¦1»;"), "refused, `error[type-mismatch]`");
    assert_eq!(
        state_of("«#pragma prefixx \"acme.com\"\n»const long A = 1;"),
        "ignored, `warning[unknown-pragma]`"
    );
}
