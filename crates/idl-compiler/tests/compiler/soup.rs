//! Whatever it is given, the compiler answers with a model or with messages: it never panics and never hangs.

use idl_compiler::{Source, compile};
use proc_macro2::TokenStream;
use proptest::prelude::*;

/// Words, numbers and marks that mean something, so that random rows of them get deep into the parser.
const PIECES: &[&str] = &[
    "module",
    "typename",
    "alias",
    "module M<typename T> { typedef T A; };",
    "module M<long> I;",
    "interface",
    "struct",
    "union",
    "enum",
    "typedef",
    "const",
    "exception",
    "switch",
    "case",
    "default",
    "sequence",
    "string",
    "wstring",
    "long",
    "short",
    "unsigned",
    "double",
    "float",
    "char",
    "wchar",
    "boolean",
    "octet",
    "Object",
    "any",
    "ValueBase",
    "CORBA",
    "TypeCode",
    "Factory",
    "void",
    "oneway",
    "readonly",
    "attribute",
    "in",
    "out",
    "inout",
    "raises",
    "getraises",
    "setraises",
    "context",
    "TRUE",
    "FALSE",
    "int8",
    "uint64",
    "map",
    "bitset",
    "bitfield",
    "bitmask",
    "annotation",
    "position",
    "typeid",
    "typeprefix",
    "valuetype",
    "custom",
    "truncatable",
    "supports",
    "public",
    "private",
    "factory",
    "ValueBase",
    "abstract",
    "local",
    "local interface",
    "abstract interface",
    "native",
    "fixed",
    "import",
    "component",
    "home",
    "eventtype",
    "porttype",
    "connector",
    "provides",
    "uses",
    "multiple",
    "emits",
    "publishes",
    "consumes",
    "port",
    "mirrorport",
    "manages",
    "primarykey",
    "finder",
    "Components",
    "A",
    "B",
    "_C",
    "a",
    "M",
    "I",
    "E",
    "::",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ">>",
    "<<",
    ",",
    ";",
    ";",
    ";",
    ":",
    "=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "~",
    "@",
    "0",
    "1",
    "017",
    "0x1F",
    "1.5",
    ".5",
    "1e9",
    "\"x\"",
    "\"\"",
    "'c'",
    "L\"w\"",
    "L'w'",
    "/// doc\n",
    "/** doc */",
    "//! doc\n",
    "\n#pragma prefix \"p\"\n",
    "\n#pragma ID A \"IDL:x:1.0\"\n",
    "\n#pragma version A 1.2\n",
    "\n#include <x>\n",
    "\n#if 1\n",
    "\n#endif\n",
    "\n#else\n",
    "\n#elif A ? 0x1 : B\n",
    "\n#ifdef A\n",
    "\n#define A\n",
    "\n#define B A B\n",
    "\n#define I(a, ...) a ## 1 #a B(__VA_ARGS__) __VA_OPT__(I)\n",
    "\n#undef A\n",
    "\n#line 5 \"x\"\n",
    "\n# 1 \"y\" 1\n",
    "\n# 1 \"x\" 2\n",
    "I(",
    "__LINE__",
    "__FILE__",
    "##",
    "#",
    "\\\n",
    "@zero_copy",
    "@non_nil",
    "@range(1)",
    "@range(min = 1, max = 9)",
    "@min(1)",
    "@optional",
    "@default(5)",
    "@default(a)",
];

/// Whole declarations that refer to each other, to be cut and mixed.
const DECLARATIONS: &[&str] = &[
    "struct A { long x; };",
    "struct A;",
    "typedef sequence<A> B;",
    "struct A { B b; A a; };",
    "interface I;",
    "interface I { void f(in A a) raises (E); };",
    "interface B : I, A { attribute B b; };",
    "exception E { string s; };",
    "enum M { a, b, c };",
    "union A switch (M) { case a: long x; default: B y; };",
    "const long a = 1 << 5;",
    "const double E = 1.5 / 0.0;",
    "module M { typedef long A; };",
    "module M { interface I : ::I { I f(); }; };",
    "typedef A B[a][2];",
    "const M I = b;",
    "typeprefix M \"p\";",
    "typeid A \"IDL:x:1.0\";",
    "union A;",
    "valuetype A;",
    "abstract valuetype A;",
    "valuetype A : truncatable B, I supports E { public A a; private long b; factory f(in A a) raises (E); };",
    "valuetype B supports I { typedef sequence<B> L; public L l; B g(inout A a); };",
    "abstract valuetype I : A { attribute A a; };",
    "custom valuetype E : A { private B x[2]; };",
    "valuetype M sequence<A>;",
    "valuetype B struct C { A a; M m; };",
    "typedef string<a> E;",
    "struct Any { any a; CORBA::TypeCode b; sequence<ValueBase> c; };",
    "interface Values { any f(in any a) context (\"a\", \"b*\"); };",
    "module CORBA { typedef TypeCode A; };",
    "module CORBA { interface TypeCode; };",
    "@zero_copy struct B { octet o[a]; A a2; };",
    "@min(1) typedef long R;",
    "struct B { @optional R r; @default(2) R s; };",
    "eventtype V;",
    "eventtype V { public long a; };",
    "abstract eventtype W : V { };",
    "interface VConsumer;",
    "porttype P;",
    "porttype P { provides I a; uses I b; attribute E c; };",
    "porttype P2 { port P a; mirrorport P b; uses multiple Object c; };",
    "component C;",
    "component C supports I { provides I a; uses I b; uses multiple I c; emits V d; publishes V e; consumes V f; };",
    "component C : C2 { port P p; mirrorport P2 q; readonly attribute E a; };",
    "component C2 { };",
    "connector L { port P2 p; };",
    "valuetype K : Components::PrimaryKeyBase { public long a; };",
    "home H manages C { factory a(in E e) raises (Components::CreateFailure); finder b(); void c(); };",
    "home H2 : H supports I manages C primarykey K { };",
    "module Components { valuetype Cookie; };",
    "import ::M; import \"IDL:A:1.0\"; import \"x.idl\";",
    "local interface I;",
    "local interface I { I f(in E a) raises (E); };",
    "abstract interface A : I { attribute B b; };",
    "local interface E : A, I { void g(inout M m) context (\"a\", \"b*\"); };",
    "native E;",
    "exception E { I i; sequence<M> m; };",
];

fn check(text: &str) {
    for result in [compile(Source::text("soup.idl", text)), compile_tokens(text)].into_iter() {
        match result {
            Ok(model) => {
                for def in model.defs() {
                    model.scoped_name(def.id);
                    model.all_members(def.id).count();
                    model.member_types(def.id).iter().for_each(|ty| {
                        model.is_fixed_size(*ty);
                        model.is_hashable(*ty);
                        model.describe(*ty);
                    });
                }
            }
            Err(errors) => {
                assert!(!errors.is_empty());
                errors.render(false);
                errors.to_compile_errors();
            }
        }
    }
}

fn compile_tokens(text: &str) -> Result<idl_compiler::Model, idl_compiler::Diagnostics> {
    compile(Source::tokens(text.parse::<TokenStream>().unwrap_or_default()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_row_of_tokens_is_answered(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..80)) {
        check(&pieces.join(" "));
    }

    #[test]
    fn any_row_of_declarations_is_answered(pieces in prop::collection::vec(prop::sample::select(DECLARATIONS), 0..12)) {
        check(&pieces.join("\n"));
    }

    #[test]
    fn any_cut_and_mix_is_answered(
        pieces in prop::collection::vec((prop::sample::select(DECLARATIONS), 0usize..40, prop::sample::select(PIECES)), 0..8)
    ) {
        let cut = |(text, at, piece): &(&str, usize, &str)| format!("{} {piece}", &text[..(*at).min(text.len())]);
        check(&pieces.iter().map(cut).collect::<Vec<_>>().join(" "));
    }

    #[test]
    fn any_text_is_answered(text in "\\PC{0,80}") {
        check(&text);
    }

    #[test]
    fn any_octets_are_answered(octets in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = compile(Source::from_bytes("octets.idl", octets)).map_err(|errors| errors.render(true));
    }

    #[test]
    fn any_number_is_answered(number in "[0-9.eEdDxX_+-]{1,12}") {
        check(&format!("const double A = {number}; const long double B = {number}; const long C = {number}; const fixed D = {number};"));
    }
}

/// Rust's lexer takes letters of every script for a word, also after the point of a number.
#[test]
fn a_word_of_any_script_after_a_point_is_answered() {
    for word in ["\u{e9}", "\u{10a19}", "\u{d7b0}\u{10a22}", "e\u{e9}", "E5\u{e9}", "d\u{e9}", "\u{3b4}d"] {
        check(&format!("0.{word}"));
        check(&format!("const double A = 1.{word};"));
    }
}

/// Definitions each built on the one before.
fn chain(first: &str, next: impl Fn(usize) -> String) -> String {
    std::iter::once(first.to_owned()).chain((1..2_000).map(next)).collect::<Vec<_>>().join("\n")
}

#[test]
fn deep_and_long_texts_are_answered_once_and_soon() {
    let nests = |open: &str, middle: &str, close: &str| {
        format!("{}{middle}{}", open.repeat(20_000), close.repeat(20_000))
    };
    let bombs = [
        nests("module M { ", "const long X = 1;", " };"),
        format!("const long X = {};", nests("(", "1", ")")),
        format!("const long X = {}1;", "-".repeat(20_000)),
        format!("typedef {} T;", nests("sequence<", "long", ">")),
        nests("struct S { ", "long x;", " } s;"),
        nests("{", "", "}"),
        nests("<", "", ">"),
        "@a(".repeat(20_000),
        "}".repeat(20_000),
        "\"".repeat(20_000),
        "$".repeat(20_000),
        format!("const long X = 1{};", " + 1".repeat(20_000)),
        format!("const string X = {};", "\"x\" ".repeat(20_000)),
        format!("typedef {}X T;", "A::".repeat(20_000)),
        (0..5_000).map(|i| format!("typedef Nope{i} T{i};\n")).collect(),
        (0..5_000).map(|i| format!("? long x{i};\n")).collect(),
        format!("typedef long T; {}", "typedef long T; ".repeat(5_000)),
        format!("typedef long T;{}", "\ntypedef long T;".repeat(5_000)),
        chain("interface I0 { };", |i| format!("interface I{i} : I{} {{ void f{i}(); }};", i - 1)),
        chain("interface A0 { }; interface B0 { };", |i| {
            format!(
                "interface A{i} : A{0}, B{0} {{ }}; interface B{i} : A{0}, B{0} {{ void f(in X x); }};",
                i - 1
            )
        }),
        chain("typedef long T0;", |i| format!("typedef T{} T{i};", i - 1)),
        chain("valuetype V0 { public V0 v; };", |i| {
            format!(
                "valuetype V{i} : truncatable V{} {{ public V{i} m{i}; public sequence<V0> n{i}; }};",
                i - 1
            )
        }),
        chain("valuetype V0;", |i| format!("valuetype V{i} {{ public V{} a; public V0 b; }};", i - 1)),
        chain("valuetype V0 { public long x; };", |i| format!("valuetype V{i} sequence<V{}>;", i - 1)),
        chain("@zero_copy struct S0 { octet o; };", |i| {
            format!("@zero_copy struct S{i} {{ S{0} a; S{0} b; }};", i - 1)
        }),
        chain("struct R; typedef sequence<R> R0;", |i| format!("typedef sequence<R{}> R{i};", i - 1)),
        format!("const double X = 1{}.5e{};", "0".repeat(1_000_000), "9".repeat(20_000)),
    ];
    for bomb in bombs {
        match compile(Source::text("bomb.idl", &*bomb)) {
            Ok(_) => {}
            Err(errors) => {
                assert!(errors.len() <= 201, "{} messages for {}", errors.len(), &bomb[..40]);
                let rendered = errors.render(false);
                assert!(rendered.len() < 3_000_000, "{} octets for {}", rendered.len(), &bomb[..40]);
            }
        }
    }
}
