//! The amount of Rust generated from IDL: items and tokens of each construct. rustc's time grows with both.

use allocation_counter::measure;
use idl_compiler::emit::{Options, emit};
use idl_compiler::{Source, compile};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::common::corpus;

/// What a text becomes.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    /// Types, traits, impls, functions, constants, statics, modules; `use` is none.
    items: usize,
    functions: usize,
    tokens: usize,
}

impl<'ast> Visit<'ast> for Size {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        self.items += usize::from(!matches!(item, syn::Item::Use(_)));
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.functions += 1;
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.functions += 1;
        visit::visit_trait_item_fn(self, item);
    }
}

fn tokens(stream: TokenStream) -> usize {
    let count = |tree| match tree {
        TokenTree::Group(group) => 2 + tokens(group.stream()),
        _ => 1,
    };
    stream.into_iter().map(count).sum()
}

fn size(idl: &str) -> Size {
    let model = compile(Source::text("lean.idl", idl)).unwrap_or_else(|errors| panic!("{errors}"));
    let rust = emit(&model, &Options::default()).unwrap_or_else(|errors| panic!("{errors}")).tokens;
    let mut size = Size::default();
    size.visit_file(&syn::parse2(rust.clone()).expect("generated code parses"));
    size.tokens = tokens(rust);
    size
}

/// What one construct adds, and the most that it may: items, functions, tokens. Half of the tokens are paths.
type Construct = (&'static str, &'static str, &'static str, [usize; 3]);

const CONSTRUCTS: &[Construct] = &[
    ("interface", "", "interface I { };", [30, 19, 2400]),
    ("interface that derives", "interface A { };", "interface I : A { };", [36, 23, 2900]),
    ("operation", "interface I { @ };", "void f();", [4, 8, 1100]),
    ("operation with parameters", "interface I { @ };", "long f(in string a, out long b);", [4, 8, 1700]),
    ("operation that raises", "exception X { }; interface I { @ };", "void f() raises (X);", [12, 14, 1850]),
    ("inherited operation", "interface A { @ }; interface I : A { };", "void f();", [5, 12, 1550]),
    ("oneway operation", "interface I { @ };", "oneway void f();", [4, 8, 1075]),
    ("readonly attribute", "interface I { @ };", "readonly attribute long f;", [4, 8, 1200]),
    ("attribute", "interface I { @ };", "attribute long f;", [6, 15, 2350]),
    ("struct", "", "struct S { long a; string b; };", [6, 3, 800]),
    ("member", "struct S { string a; @ };", "string b;", [0, 0, 200]),
    ("exception", "", "exception X { string b; };", [9, 4, 775]),
    ("enum", "", "enum E { a, b };", [7, 8, 1050]),
    ("union", "", "union U switch (long) { case 1: long a; default: string b; };", [7, 4, 1100]),
    ("typedef", "struct S { long a; };", "typedef sequence<S> T;", [4, 0, 300]),
    ("constant", "", "const long C = 1;", [1, 0, 50]),
    ("value type", "", "valuetype V { public long a; private string b; };", [6, 5, 1050]),
];

#[test]
fn constructs_become_few_items() {
    let mut wrong = Vec::new();
    for (name, around, part, most) in CONSTRUCTS {
        // A part of a construct replaces the mark; a construct of its own follows the definitions that it
        // needs.
        let [without, with] = ["", part].map(|part| match around.contains('@') {
            true => around.replace('@', part),
            false => format!("const long NOTHING = 1; {around} {part}"),
        });
        let (before, after) = (size(&without), size(&with));
        let of = |count: fn(&Size) -> usize| count(&after).saturating_sub(count(&before));
        let found = [of(|size| size.items), of(|size| size.functions), of(|size| size.tokens)];
        println!("| {name} | {} | {} | {} |", found[0], found[1], found[2]);
        if found.iter().zip(most).any(|(found, most)| found > most) {
            wrong.push(format!("{name}: {found:?}, the most is {most:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn emission_grows_as_the_text_does() {
    let cost = |lines| {
        let model = compile(Source::text("corpus.idl", corpus::idl(lines))).expect("no errors");
        let mut made = 0;
        let cost = measure(|| made = tokens(emit(&model, &Options::default()).expect("Rust").tokens));
        (cost.count_total, cost.bytes_total, made as u64)
    };
    let (once, twice) = (cost(540), cost(1080));
    for (name, once, twice) in
        [("allocations", once.0, twice.0), ("octets", once.1, twice.1), ("tokens", once.2, twice.2)]
    {
        assert!(twice < once * 2 * 11 / 10, "{name}: {once} once, {twice} for twice the text");
    }
}
