//! The two token sources: text and Rust tokens must say the same.

use std::fs;
use std::path::Path;

use crate::common::dump;
use idl_compiler::model::ConstValue;
use idl_compiler::{Diagnostics, Model, Source, compile};
use proc_macro2::{Literal, TokenStream, TokenTree};

fn from_text(idl: &str) -> Result<Model, Diagnostics> {
    compile(Source::text("test.idl", idl))
}

fn from_tokens(idl: &str) -> Result<Model, Diagnostics> {
    compile(Source::tokens(idl.parse::<TokenStream>().expect("Rust tokens")))
}

fn good(result: Result<Model, Diagnostics>) -> Model {
    result.unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

/// Kind and place of each message.
fn findings(result: &Result<Model, Diagnostics>) -> Vec<String> {
    let list = match result {
        Ok(model) => model.warnings(),
        Err(errors) => errors,
    };
    let mut findings = Vec::new();
    for finding in list {
        let place = finding.span().map(|span| list.sources().position(span)).expect("a place");
        findings.push(format!("{} {}:{}", finding.code, place.line, place.column));
    }
    findings
}

/// The value of a constant.
fn value(model: &Model, name: &str) -> ConstValue {
    let def = model.find(name).expect(name);
    model.constant(def).expect(name).value.clone()
}

/// What text says and Rust's lexer cannot, or says by other tokens.
const TEXT_ONLY: &[&str] = &[
    "bad_identifier",
    "bad_number",
    "bad_text",
    "stray_character",
    "unterminated_comment",
    "type_mismatch",
    "out_of_range",
    "include_depth",
    "too_large",
];

#[test]
fn both_sources_agree_on_every_ui_text() {
    let mut compared = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui")).expect("tests/ui") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let kind = name.trim_end_matches("_ok");
        if path.extension().is_none_or(|e| e != "idl") || TEXT_ONLY.contains(&kind) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("UTF-8");
        // `L'a'` and `L"a"` need a blank, or Rust 2021 refuses them; unbalanced text is no token stream.
        let Ok(tokens) = text.replace("L'", "L '").replace("L\"", "L \"").parse::<TokenStream>() else {
            continue;
        };
        let (text, tokens) = (from_text(&text), compile(Source::tokens(tokens)));
        match (&text, &tokens) {
            (Ok(text), Ok(tokens)) => assert_eq!(dump(text), dump(tokens), "{name}"),
            (text, tokens) => assert_eq!(text.is_ok(), tokens.is_ok(), "{name}"),
        }
        if kind != "strict_names" && !name.starts_with("whole") {
            assert_eq!(findings(&text), findings(&tokens), "{name}");
        }
        compared += 1;
    }
    assert!(compared > 70, "only {compared} texts were compared");
}

#[test]
fn numbers_survive_the_cuts_of_rusts_lexer() {
    let idl = "const double A = .5; const double B = 5.; const double C = 1.e5; const double D = 1.e-5;
        const double E = 1.5e+3; const double F = .5e3; const double G = -.25; const long H = 017; const long I = 0XfF;
        const long J = 8>>1; const double K = 1e5; const double L = 1.5 - .5; const double M = 2.*3.;";
    let (text, tokens) = (good(from_text(idl)), good(from_tokens(idl)));
    assert_eq!(dump(&text), dump(&tokens));
    assert_eq!(value(&tokens, "D"), ConstValue::Float(1e-5));
    assert_eq!(value(&tokens, "H"), ConstValue::Integer(15));
    assert_eq!(value(&tokens, "I"), ConstValue::Integer(255));
    assert_eq!(value(&tokens, "J"), ConstValue::Integer(4));
}

#[test]
fn fixed_point_literals_are_put_together_from_both_sources() {
    for (number, unscaled, scale) in
        [("1.5d", 15, 1), ("1d", 1, 0), ("01.50D", 15, 1), (".5d", 5, 1), ("5.d", 5, 0), ("100.D", 100, 0)]
    {
        let idl = format!("const fixed X = {number};");
        let expected = ConstValue::Fixed { unscaled, scale };
        assert_eq!(value(&good(from_text(&idl)), "X"), expected, "{number}");
        assert_eq!(value(&good(from_tokens(&idl)), "X"), expected, "{number}");
    }
}

#[test]
fn among_rust_tokens_the_declared_type_says_what_is_wide() {
    let model = good(from_tokens(
        r#"const wstring A = "abc"; const wstring B = L "abc"; const wchar C = 'c'; const wchar D = L 'c';
           const string E = "\x41\u{ff}"; const char F = '\u{ff}'; const wstring G = "€" "x"; const char H = 'ÿ';"#,
    ));
    assert_eq!(value(&model, "A"), ConstValue::WString("abc".into()));
    assert_eq!(value(&model, "B"), ConstValue::WString("abc".into()));
    assert_eq!(value(&model, "C"), ConstValue::WChar(u16::from(b'c')));
    assert_eq!(value(&model, "D"), ConstValue::WChar(u16::from(b'c')));
    assert_eq!(value(&model, "E"), ConstValue::String("A\u{ff}".into()));
    assert_eq!(value(&model, "F"), ConstValue::Char(0xff));
    assert_eq!(value(&model, "G"), ConstValue::WString("€x".into()));
    assert_eq!(value(&model, "H"), ConstValue::Char(0xff));
    let errors = from_tokens(r#"const string A = L "abc"; const string B = "€"; const char C = '€';"#)
        .expect_err("wide");
    assert_eq!(findings(&Err(errors)), ["type-mismatch 1:18", "out-of-range 1:44", "out-of-range 1:64"]);
}

#[test]
fn rust_words_and_raw_identifiers_are_names() {
    let model = good(from_tokens(
        "module r#type { interface r#match { void r#fn(in long self, in long crate, in long dyn); }; };",
    ));
    let operation =
        model.find("type::match::fn").and_then(|def| model.operation(def)).expect("the operation");
    let names: Vec<&str> = operation.params.iter().map(|param| param.name.as_str()).collect();
    assert_eq!(names, ["self", "crate", "dyn"]);
}

#[test]
fn rust_literals_and_attributes_are_refused() {
    let errors = from_tokens(
        "const string A = b\"x\"; const string B = r\"x\"; #[derive(Debug)] struct S { long x; };
        const long C = 1_000; const long D = 5u8; const string E = \"a\nb\"; const string F = \"a\\0b\";",
    );
    let findings = findings(&errors);
    let codes: Vec<&str> = findings.iter().filter_map(|finding| finding.split(' ').next()).collect();
    assert_eq!(
        codes,
        [
            "bad-literal",
            "bad-literal",
            "stray-character",
            "bad-literal",
            "bad-literal",
            "bad-literal",
            "bad-literal"
        ]
    );
}

#[test]
fn pragmas_among_rust_tokens_end_with_their_line() {
    let idl =
        "#pragma prefix \"acme.com\"\nmodule M { interface I { };\n#pragma version I 1.10\n  interface J { };
#pragma ID J \"IDL:other:3.0\"\n};\n#pragma vendor some thing\ninterface K { };";
    let (text, tokens) = (good(from_text(idl)), good(from_tokens(idl)));
    assert_eq!(dump(&text), dump(&tokens));
    let id = |name: &str| tokens.find(name).map(|def| tokens.def(def).repository_id.clone()).expect(name);
    assert_eq!(id("M::I"), "IDL:acme.com/M/I:1.10");
    assert_eq!(id("M::J"), "IDL:other:3.0");
    assert_eq!(id("K"), "IDL:acme.com/K:1.0");
}

/// Tokens as another macro makes them: all at one place.
fn at_one_place(tokens: TokenStream) -> TokenStream {
    let move_token = |tree: TokenTree| match tree {
        TokenTree::Group(group) => {
            TokenTree::Group(proc_macro2::Group::new(group.delimiter(), at_one_place(group.stream())))
        }
        mut other => {
            other.set_span(proc_macro2::Span::call_site());
            other
        }
    };
    tokens.into_iter().map(move_token).collect()
}

#[test]
fn pragmas_without_places_end_by_their_grammar() {
    let idl =
        "#pragma prefix \"acme.com\"\nmodule M { interface I { };\n#pragma version I 1.10\n  interface J { };
#pragma ID M::J \"IDL:other:3.0\"\n}; const double X = 1.5;";
    let tokens = at_one_place(idl.parse().expect("tokens"));
    let model = good(compile(Source::tokens(tokens)));
    assert_eq!(dump(&model), dump(&good(from_text(idl))));
    let unknown = at_one_place("#pragma vendor thing\ninterface K { };".parse().expect("tokens"));
    let errors = compile(Source::tokens(unknown)).expect_err("cannot tell");
    assert_eq!(errors.iter().next().map(|finding| finding.code), Some("unknown-pragma"));
}

#[test]
fn comments_become_documentation_in_both_sources() {
    let idl = "//! Of the file.\n/** One line. */\n#pragma prefix \"p\"\nmodule M {\n    //! Inside.\n    /// First.\n    ///\n    /// Second.
    interface I {\n        /**\n         * Block.\n         *   indented\n         */\n        void f(/// A number.\n            in long x,
            /** Another. */ in long y);\n        // not this\n        /* nor this */\n        /***** nor this *****/\n        //// nor this
        attribute long a; ///< nor this\n    };\n    /// An enum.\n    enum E { /// One.\n A, B };\n};
/// Again.\nmodule M { const long X = 1; };";
    let (text, tokens) = (good(from_text(idl)), good(from_tokens(idl)));
    assert_eq!(dump(&text), dump(&tokens));
    let docs = |name: &str| text.find(name).map(|def| text.def(def).docs.text()).expect(name);
    assert_eq!(text.docs().text(), "Of the file.");
    assert_eq!(docs("M"), "One line.\nInside.\n\nAgain.");
    assert_eq!(docs("M::I"), "First.\n\nSecond.");
    assert_eq!(docs("M::I::f"), "Block.\n  indented");
    assert_eq!(docs("M::I::a"), "");
    let operation = text.find("M::I::f").and_then(|def| text.operation(def)).expect("f");
    assert_eq!(operation.params.iter().map(|p| p.docs.text()).collect::<Vec<_>>(), ["A number.", "Another."]);
}

#[test]
fn text_in_a_literal_keeps_places_inside_it() {
    let rust: TokenStream =
        "macro_call! { r#\"module M {\n    typedef Nope T;\n};\"# }".parse().expect("tokens");
    let literal = rust.into_iter().find_map(|tree| match tree {
        TokenTree::Group(group) => match group.stream().into_iter().next() {
            Some(TokenTree::Literal(literal)) => Some(literal),
            _ => None,
        },
        _ => None,
    });
    let source = Source::literal(&literal.expect("a literal")).expect("a string");
    let errors = compile(source).expect_err("Nope");
    let finding = errors.iter().next().expect("one");
    let position = errors.sources().position(finding.span().expect("a place"));
    assert_eq!((position.line, position.column), (2, 13));
    let rust = errors.sources().rust_span(finding.span().expect("a place"));
    assert_eq!((rust.start().line, rust.start().column, rust.end().column), (2, 12, 16));
}

#[test]
fn escaped_text_in_a_literal_is_shown_in_the_message() {
    let source = Source::literal(&Literal::string("typedef\n\tNope T;")).expect("a string");
    let errors = compile(source).expect_err("Nope").to_compile_errors().to_string();
    assert!(errors.contains("compile_error"), "{errors}");
    assert!(errors.contains("`Nope` is not declared") && errors.contains("^^^^"), "{errors}");
    assert!(Source::literal(&Literal::i32_unsuffixed(5)).is_none());
}

#[test]
fn every_error_becomes_a_compile_error_at_its_token() {
    let idl = "typedef Nope A;\nstruct S { long x; long x; };";
    let errors = from_tokens(idl).expect_err("two");
    let error = errors.to_syn_error().expect("errors");
    let places: Vec<(usize, usize)> = error
        .clone()
        .into_iter()
        .map(|error| (error.span().start().line, error.span().start().column))
        .collect();
    assert_eq!(places, [(1, 8), (2, 24)]);
    let second = error.into_iter().nth(1).expect("two").to_string();
    assert!(second.contains("already declared") && second.contains(":2:17: declared here"), "{second}");
    assert!(good(from_tokens("const long A = 1;")).warnings().to_syn_error().is_none());
}
