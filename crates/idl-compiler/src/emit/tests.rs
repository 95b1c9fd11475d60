//! Tests of the structure of generated code: its items, their names and their paths. Whether it works is
//! tested in `idl-macros`, which compiles it.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};

use super::{OptionProblem, Options, emit};
use crate::{Compiler, Memory, Model, Source, compile};

fn model(idl: &str) -> Model {
    compile(Source::text("test.idl", idl)).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

fn options(rename: &[(&str, &str)], non_nil: &[&str]) -> Options {
    Options {
        rename: rename.iter().map(|(idl, rust)| ((*idl).to_owned(), (*rust).to_owned())).collect(),
        non_nil: non_nil.iter().map(|pattern| (*pattern).to_owned()).collect(),
        ..Options::default()
    }
}

fn file(idl: &str, options: &Options) -> syn::File {
    let tokens =
        emit(&model(idl), options).unwrap_or_else(|errors| panic!("{}", errors.render(false))).tokens;
    syn::parse2(tokens).expect("generated code parses")
}

/// Returns the items for the IDL's file-level declarations. They are in a hidden module, unless there are
/// only modules that name nothing outside.
fn items(file: &syn::File) -> &[syn::Item] {
    match file.items.first() {
        Some(syn::Item::Mod(hidden)) if hidden.ident.to_string().starts_with("__zorb_idl_") => {
            hidden.content.as_ref().map_or(&[][..], |(_, items)| items)
        }
        _ => &file.items,
    }
}

/// Returns the paths of all public items below the hidden module, and of their methods and fields.
fn names(idl: &str, options: &Options) -> BTreeSet<String> {
    fn ident(scope: &str, ident: &syn::Ident) -> String {
        format!("{scope}{ident}")
    }
    fn walk(scope: &str, items: &[syn::Item], names: &mut BTreeSet<String>) {
        for item in items {
            match item {
                syn::Item::Mod(module) if !module.ident.to_string().starts_with("__zorb") => {
                    let scope = ident(scope, &module.ident) + "::";
                    walk(&scope, module.content.as_ref().map_or(&[][..], |(_, items)| items), names);
                }
                syn::Item::Struct(item) => {
                    let name = ident(scope, &item.ident);
                    let fields = item.fields.iter().filter_map(|field| field.ident.as_ref());
                    names.extend(fields.map(|field| format!("{name}::{field}")));
                    names.insert(name);
                }
                syn::Item::Enum(item) => {
                    let name = ident(scope, &item.ident);
                    names.extend(item.variants.iter().map(|variant| format!("{name}::{}", variant.ident)));
                    names.insert(name);
                }
                syn::Item::Trait(item) => {
                    let name = ident(scope, &item.ident);
                    for item in &item.items {
                        let syn::TraitItem::Fn(method) = item else { continue };
                        names.insert(format!("{name}::{}", method.sig.ident));
                    }
                    names.insert(name);
                }
                syn::Item::Type(item) => drop(names.insert(ident(scope, &item.ident))),
                syn::Item::Const(item) => drop(names.insert(ident(scope, &item.ident))),
                _ => {}
            }
        }
    }
    let file = file(idl, options);
    let mut names = BTreeSet::new();
    walk("", items(&file), &mut names);
    names
}

fn assert_names(idl: &str, options: &Options, expected: &[&str]) {
    let names = names(idl, options);
    for name in expected {
        assert!(names.contains(*name), "`{name}` is not among {names:#?}");
    }
}

fn warnings(idl: &str) -> String {
    emit(&model(idl), &Options::default()).expect("code").warnings.render(false)
}

/// Returns the type of a field or parameter, or the output of a method, without spaces.
fn type_of(idl: &str, options: &Options, name: &str) -> String {
    struct Find<'a>(&'a str, Option<String>);
    impl Visit<'_> for Find<'_> {
        fn visit_field(&mut self, field: &syn::Field) {
            if field.ident.as_ref().is_some_and(|ident| ident == self.0) {
                self.1.get_or_insert(text(&field.ty));
            }
        }
        fn visit_trait_item_fn(&mut self, method: &syn::TraitItemFn) {
            if method.sig.ident == self.0 {
                self.1.get_or_insert(text(&method.sig.output));
            }
            for input in &method.sig.inputs {
                let syn::FnArg::Typed(param) = input else { continue };
                if text(&param.pat) == self.0 {
                    self.1.get_or_insert(text(&param.ty));
                }
            }
        }
    }
    fn text(tokens: &impl quote::ToTokens) -> String {
        let text = tokens.to_token_stream().to_string().replace(' ', "");
        text.replace("::core::primitive::", "").replace("::zorb::__private::v1::", "")
    }
    let file = file(idl, options);
    let mut find = Find(name, None);
    find.visit_file(&file);
    find.1.unwrap_or_else(|| panic!("no `{name}`"))
}

const BANK: &str = "
    module Bank {
        exception Poor { double balance; };
        interface Account {
            readonly attribute double balance;
            attribute string owner;
            void withdraw(in double amount) raises (Poor);
            long many(out long a, out long b, inout long c);
        };
    };";

#[test]
fn an_interface_becomes_a_reference_two_traits_and_a_module() {
    let expected = [
        "bank::Poor::balance",
        "bank::Account::balance",
        "bank::Account::set_owner",
        "bank::AccountRef",
        "bank::AccountServant::withdraw",
        "bank::account::WithdrawError::Poor",
        "bank::account::WithdrawError::System",
        "bank::account::ManyReply::result",
        "bank::account::ManyReply::c",
    ];
    assert_names(BANK, &Options::default(), &expected);
}

#[test]
fn definitions_at_file_level_are_in_one_hidden_module_and_re_exported() {
    let file = file("struct Alone { long x; };", &Options::default());
    let [syn::Item::Mod(hidden), syn::Item::Use(exports), ..] = file.items.as_slice() else {
        panic!("two items")
    };
    assert!(
        hidden.ident.to_string().starts_with("__zorb_idl_")
            && matches!(hidden.vis, syn::Visibility::Inherited)
    );
    assert!(matches!(exports.vis, syn::Visibility::Public(_)));
}

#[test]
fn modules_that_name_nothing_outside_are_not_in_a_hidden_module() {
    fn modules(idl: &str, options: &Options) -> Vec<String> {
        let is_module = |item: &syn::Item| match item {
            syn::Item::Mod(module) => Some(module.ident.to_string()),
            _ => None,
        };
        file(idl, options).items.iter().filter_map(is_module).collect()
    }
    let options = Options::default();
    let apart = "module A { struct S { long x; }; }; module B { struct S { long x; }; };";
    assert_eq!(modules(apart, &options), ["a", "b"]);
    let code = emit(&model(apart), &options).expect("code").tokens.to_string();
    // No path leads out of the modules, so the macro can be used in a function.
    assert!(!code.contains("super :: a") && !code.contains("super :: b"), "{code}");
    for crossing in [
        "module A { struct S { long x; }; }; module B { struct T { A::S s; }; };",
        "module A { interface I { }; }; module B { interface J : A::I { }; };",
        "module A { exception X { }; }; module B { interface J { void f() raises (A::X); }; };",
        "const long N = 1; module A { struct S { long x; }; };",
    ] {
        let modules = modules(crossing, &options);
        assert!(
            matches!(modules.as_slice(), [one] if one.starts_with("__zorb_idl_")),
            "{crossing}: {modules:?}"
        );
    }
}

#[test]
fn a_skeleton_has_the_signatures_of_the_servant_trait() {
    let idl = "module M { valuetype V { public long x; }; interface I { V f(in string s, inout V v); oneway void g(); }; };";
    let model = model(idl);
    let skeleton = super::SkeletonOptions::default();
    let code = super::skeleton(&model, &Options::default(), &skeleton).expect("code").to_string();
    let code = code.replace(' ', "");
    assert!(code.contains("asyncfnf(&self,s:&str,v:Option<Value<m::V>>)->Result<(Option<Value<m::V>>,Option<Value<m::V>>),SystemException>"), "{code}");
    assert!(code.contains("asyncfng(&self,)->Result<(),SystemException>"), "{code}");
    let outside = super::SkeletonOptions {
        module: Some(quote::quote!(crate::idl)),
        interfaces: vec!["M::I".to_owned()],
    };
    let code = super::skeleton(&model, &Options::default(), &outside).expect("code").to_string();
    assert!(code.replace(' ', "").contains("implcrate::idl::m::IServantforIImpl"), "{code}");
    let names = super::servant_names(&model, &Options::default(), &outside).expect("names");
    assert_eq!(names[0].reference, "crate::idl::m::IRef");
    assert_eq!((names[0].servant.as_str(), names[0].interface.as_str()), ("IImpl", "M::I"));
}

#[test]
fn the_same_text_gives_the_same_code_and_other_roots_another_module() {
    let text = |idl: &str| emit(&model(idl), &Options::default()).expect("code").tokens.to_string();
    assert_eq!(text(BANK), text(BANK));
    let module = |idl: &str| {
        text(idl).split_whitespace().find(|word| word.starts_with("__zorb_idl")).map(str::to_owned)
    };
    assert_ne!(module("struct A { long x; };"), module("struct B { long x; };"));
    assert_eq!(text(""), "");
}

#[test]
fn every_path_is_absolute_or_starts_at_the_root_and_nothing_is_unsafe() {
    struct Check {
        bad: Vec<String>,
    }
    impl Visit<'_> for Check {
        fn visit_path(&mut self, path: &syn::Path) {
            let first = path.segments[0].ident.to_string();
            let rooted =
                path.leading_colon.is_some() || ["self", "super", "Self", "Local"].contains(&first.as_str());
            if !rooted && path.segments.len() > 1 {
                self.bad.push(first);
            }
            visit::visit_path(self, path);
        }
        fn visit_type_path(&mut self, path: &syn::TypePath) {
            let first = &path.path.segments[0].ident;
            let known = ["Self", "S", "E", "Skeleton", "Local"].iter().any(|name| first == name);
            if path.path.get_ident().is_some() && !known {
                self.bad.push(format!("type {first}"));
            }
            visit::visit_type_path(self, path);
        }
        fn visit_local(&mut self, local: &syn::Local) {
            if let syn::Pat::Ident(name) = &local.pat
                && !name.ident.to_string().starts_with("__zorb_")
            {
                self.bad.push(format!("let {}", name.ident));
            }
            visit::visit_local(self, local);
        }
        fn visit_macro(&mut self, item: &syn::Macro) {
            if item.path.leading_colon.is_none() {
                self.bad.push(format!("{}!", item.path.segments[0].ident));
            }
        }
        fn visit_ident(&mut self, ident: &syn::Ident) {
            if ident == "unsafe" {
                self.bad.push("unsafe".to_owned());
            }
        }
        // Built-in attributes have no paths. Those of derives are checked by compilation.
        fn visit_attribute(&mut self, _: &syn::Attribute) {}
    }
    for (name, idl) in good_texts() {
        let mut check = Check { bad: Vec::new() };
        check.visit_file(&file(&idl, &Options::default()));
        assert!(check.bad.is_empty(), "{name}: {:?}", check.bad);
    }
}

/// Returns every text of the UI tests that compiles and whose names do not clash in Rust.
fn good_texts() -> Vec<(String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let mut texts = vec![("bank".to_owned(), BANK.to_owned())];
    for entry in std::fs::read_dir(folder).expect("tests/ui") {
        let path = entry.expect("an entry").path();
        let name = path.to_string_lossy().into_owned();
        if name.ends_with("_ok.idl") {
            let bytes = std::fs::read(&path).expect("a readable file");
            let Ok(model) = compile(Source::from_bytes(&*name, bytes.clone())) else { continue };
            if emit(&model, &Options::default()).is_ok() {
                texts.push((name, String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
    }
    assert!(texts.len() > 40, "the UI texts are found");
    texts
}

#[test]
fn names_that_differ_only_in_idl_get_an_underscore_and_a_warning_with_help() {
    for (idl, [kept, changed]) in [
        ("module M { struct fooBar { long x; }; struct foo_bar { long x; }; };", ["M::fooBar", "M::foo_bar"]),
        ("struct S { long aB; long a_b; };", ["S::aB", "S::a_b"]),
        ("enum E { aB, a_b };", ["E::aB", "E::a_b"]),
        ("interface I { void aB(); void a_b(); };", ["I::aB", "I::a_b"]),
        ("interface I { void f(in long aB, in long a_b); };", ["I::f::aB", "I::f::a_b"]),
        ("interface I { attribute long a; void set_a(); };", ["I::a", "I::set_a"]),
        ("interface A { void aB(); }; interface B : A { void a_b(); };", ["A::aB", "B::a_b"]),
        (
            "interface A { void aB(); }; interface B { void a_b(); }; interface C : A, B { };",
            ["A::aB", "B::a_b"],
        ),
        ("module aB { const long x = 1; }; module a_b { const long x = 1; };", ["aB", "a_b"]),
        ("exception fooA { }; struct foo_A { long x; };", ["fooA", "foo_A"]),
        // An exception without members is also in the namespace of values.
        ("exception x_1 { }; const long x1 = 1;", ["x_1", "x1"]),
    ] {
        let warnings = warnings(idl);
        for part in
            [format!("`{kept}`"), format!("rename(\"{changed}\""), "_`".to_owned(), ", because".to_owned()]
        {
            assert!(warnings.contains(&part), "{idl}: {part}\n{warnings}");
        }
        assert_eq!(warnings.matches("warning[rust-name-clash]").count(), 1, "{idl}\n{warnings}");
    }
}

#[test]
fn all_clashes_are_reported_together_and_each_once() {
    let idl = "struct S { long aB; long a_b; }; interface A { void aB(); void a_b(); }; interface B : A { };";
    let warnings = warnings(idl);
    assert_eq!(warnings.matches("warning[rust-name-clash]").count(), 2, "{warnings}");
    let expected = ["S::a_b", "S::a_b_", "A::a_b", "A::a_b_", "AServant::a_b", "AServant::a_b_"];
    assert_names(idl, &Options::default(), &expected);
}

#[test]
fn derived_names_change_if_the_idl_uses_them() {
    let idl = "
        module M {
            interface Account {
                exception E { };
                struct WithdrawError { long x; };
                struct OpReply { long x; };
                void withdraw() raises (E);
                void op(out long a, out long b, out long c, out long d);
            };
            interface AccountRef { };
            struct AccountServant { long x; };
            interface FooBar { const long X = 1; };
            module foo_bar { const long Y = 1; };
        };";
    let expected = [
        "m::AccountRef_",
        "m::AccountRef",
        "m::AccountServant_",
        "m::AccountServant::x",
        "m::account::WithdrawError::x",
        "m::account::WithdrawRaises::E",
        "m::account::OpReply::x",
        "m::account::OpReply_::a",
        "m::foo_bar_::X",
        "m::foo_bar::Y",
    ];
    assert_names(idl, &Options::default(), &expected);
}

#[test]
fn a_name_can_be_chosen_for_anything() {
    let rename = [
        ("::Bank::Account", "Konto"),
        ("Bank::Account::withdraw", "take"),
        ("Bank::Account::owner", "holder"),
        ("Bank::Account::many::a", "type"),
        ("Bank::Poor::balance", "left"),
    ];
    let expected = [
        "bank::KontoRef",
        "bank::Konto::take",
        "bank::konto::TakeError::System",
        "bank::Konto::set_holder",
        "bank::konto::ManyReply::r#type",
        "bank::Poor::left",
    ];
    assert_names(BANK, &options(&rename, &[]), &expected);
    let annotated = "interface I { attribute long a; @rust_name(\"assign_a\") void set_a(); };";
    assert_names(annotated, &Options::default(), &["I::a", "I::set_a", "I::assign_a"]);
    let wrong = model("@rust_name(\"a b\") struct S { long x; };");
    let errors = emit(&wrong, &Options::default()).expect_err("an error").render(false);
    assert!(errors.contains("requires one Rust identifier"), "{errors}");
}

#[test]
fn invalid_options_are_reported() {
    let options = options(&[("Bank::Account", "Konto"), ("Bank::Acount", "X"), ("Bank::Poor", "a-b")], &[]);
    let problems = options.check(&model(BANK));
    assert_eq!(problems, [OptionProblem::UnknownName(1), OptionProblem::NotAnIdentifier(2)]);
    let path = |text: &str| text.parse().expect("a path");
    let derive = ["*", "Bank::*", "::Bank::Poor", "Bank::Account", "Poor*"];
    let bodies = ["*", "Bank::Account", "Bank::Account::owner", "Bank", "Account"];
    let options = Options {
        derive: derive.iter().map(|pattern| ((*pattern).to_owned(), path("Eq"))).collect(),
        default_bodies: bodies.iter().map(|pattern| (*pattern).to_owned()).collect(),
        ami: ["*", "Bank::*", "Bank::Account", "Bank::Poor"].map(str::to_owned).to_vec(),
        interpretive: ["*", "Bank::Poor", "Bank::Account", "Bank::Acc"].map(str::to_owned).to_vec(),
        adaptive: [("*", 1), ("Bank::Poor", 9), ("Bank::Account", 9), ("*", 0)]
            .map(|(pattern, uses)| (pattern.to_owned(), uses))
            .to_vec(),
        use_counts_fn: Some("a-b".to_owned()),
        runtime: path("super::zorb"),
        ..Options::default()
    };
    let expected = [
        OptionProblem::UnmatchedDerive(3),
        OptionProblem::UnmatchedDerive(4),
        OptionProblem::UnmatchedDefaultBody(3),
        OptionProblem::UnmatchedDefaultBody(4),
        OptionProblem::UnmatchedAmi(3),
        OptionProblem::UnmatchedInterpretive(3),
        OptionProblem::UnmatchedAdaptive(2),
        OptionProblem::ZeroUses(3),
        OptionProblem::InvalidUseCountsFn,
        OptionProblem::RelativeRuntime,
    ];
    assert_eq!(options.check(&model(BANK)), expected);
    assert_eq!(Options { runtime: path("::zorb"), ..options }.check(&model("interface I { };")).len(), 18);
}

#[test]
fn references_are_optional_where_they_may_be_nil() {
    let idl = "interface I { I f(in I one, in Object two); @non_nil I g(@non_nil in I three); };
               struct S { I member; @non_nil I sure; };";
    let none = Options::default();
    assert_eq!(type_of(idl, &none, "member"), "::core::option::Option<self::IRef>");
    assert_eq!(type_of(idl, &none, "sure"), "self::IRef");
    assert!(type_of(idl, &none, "one").contains("Into<::core::option::Option<self::IRef>>"));
    assert!(type_of(idl, &none, "two").contains("Into<::core::option::Option<ObjectRef>>"));
    assert!(type_of(idl, &none, "three").contains("Into<self::IRef>"));
    assert!(type_of(idl, &none, "g").contains("Result<self::IRef,"));
    let all = options(&[], &["S::*", "I::f"]);
    assert_eq!(type_of(idl, &all, "member"), "self::IRef");
    assert!(type_of(idl, &all, "f").contains("Result<self::IRef,"));
    assert!(type_of(idl, &all, "one").contains("Option<self::IRef>"));
}

#[test]
fn a_struct_with_a_reference_that_is_never_nil_has_no_default() {
    let has_default = |idl: &str| {
        let code = emit(&model(idl), &Options::default()).expect("code").tokens.to_string();
        code.matches("default :: Default for").count()
    };
    assert_eq!(has_default("interface I { }; struct S { I i; };"), 1);
    assert_eq!(
        has_default("interface I { }; struct S { @non_nil I i; }; struct T { S s; }; struct U { T t[2]; };"),
        0
    );
    assert_eq!(has_default("interface I { }; struct S { @non_nil I i; }; struct T { sequence<S> s; };"), 1);
}

#[test]
fn a_parameter_named_result_keeps_its_name() {
    let idl = "interface I { long f(out long result, out long b, out long c); };";
    assert_names(idl, &Options::default(), &["i::FReply::result", "i::FReply::result_"]);
}

#[test]
fn the_path_of_the_runtime_can_be_chosen() {
    let options = Options { runtime: quote::quote!(crate::mine), ..Options::default() };
    let code = emit(&model(BANK), &options).expect("code").tokens.to_string();
    assert!(code.contains("crate :: mine :: __private :: v1") && !code.contains(":: zorb"));
}

/// Generates the code for `shop.idl`, which includes `base.idl`. Returns it without spaces.
fn with_base(base: &str, shop: &str, options: &Options) -> Result<String, String> {
    let files = Memory::from_iter([("base.idl", base), ("shop.idl", shop)]);
    let model = Compiler::default().files(files).compile_files(["shop.idl"]);
    let model = model.unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    assert_eq!(options.check(&model), []);
    let tokens = emit(&model, options).map_err(|errors| errors.render(false))?.tokens;
    syn::parse2::<syn::File>(tokens.clone()).expect("generated code parses");
    Ok(tokens.to_string().replace(' ', ""))
}

fn external(entries: &[(&str, &str)]) -> Options {
    let entries = entries.iter().map(|(idl, path)| ((*idl).to_owned(), path.parse().expect("a path")));
    Options { external: entries.collect(), ..Options::default() }
}

#[test]
fn options_specify_the_rust_of_native_types_of_all_files() {
    let base = "module B { native N; local interface L { N f(in N n); }; };";
    let shop = "#include \"base.idl\"\nmodule S { native M; local interface K : B::L { void g(in B::N n, in M m); }; };";
    let text = with_base(base, shop, &external(&[("::B::N", "crate::Own"), ("S::M", "::other::Type")]));
    let text = text.expect("code");
    assert!(text.contains("pubtypeN=crate::Own;") && text.contains("pubtypeM=::other::Type;"), "{text}");
    // The module is external, and contains the alias.
    let text = with_base(base, shop, &external(&[("::B", "::base::b"), ("::S::M", "crate::M")]));
    let text = text.expect("code");
    assert!(!text.contains("pubtypeN="), "{text}");
    assert!(text.contains("::base::b::N") && text.contains("::base::b::LRef"), "{text}");
    // With both entries, the user's type is used here.
    let both = external(&[("::B", "::base::b"), ("::B::N", "crate::Own"), ("::S::M", "crate::M")]);
    let text = with_base(base, shop, &both).expect("code");
    assert!(text.contains("pubtypeN=crate::Own;") && text.contains("::base::b::LRef"), "{text}");

    let errors = with_base(base, shop, &external(&[("::S::M", "crate::M")])).expect_err("an error");
    assert_eq!(errors.matches("error[no-extern]").count(), 1, "{errors}");
    assert!(errors.contains("extern(\"::B::N\" = ::path::Type)"), "{errors}");
    let problems = external(&[("::S::K", "crate::K")]);
    let model = model("module S { native M; local interface K { }; };");
    assert_eq!(problems.check(&model), [OptionProblem::UnmatchedExternal(0)]);
}

#[test]
fn types_inside_an_annotation_have_no_rust() {
    let idl = "@annotation mark { enum Kind { A, B }; Kind value default A; }; enum E { C };";
    let options =
        Options { adaptive: vec![("*".into(), 3)], use_counts_fn: Some("uses".into()), ..Options::default() };
    let code = emit(&model(idl), &options).expect("code").tokens.to_string();
    assert!(code.contains("enum E") && !code.contains("Kind ::"), "{code}");
}

#[test]
fn a_local_interface_has_the_same_items_as_others() {
    let idl = "exception E { }; local interface L { void f() raises (E); attribute long a; };
        interface P { void p(); }; local interface M : L, P { };";
    assert_names(
        idl,
        &Options::default(),
        &["L::f", "L::set_a", "LRef", "LServant::a", "l::FError::E", "MRef", "M", "MServant"],
    );
    let text = emit(&model(idl), &Options::default()).expect("code").tokens.to_string().replace(' ', "");
    assert!(text.contains("From<self::MRef>forself::LRef"), "{text}");
    assert!(
        !text.contains("From<self::MRef>forself::PRef")
            && !text.contains("From<self::MRef>for::zorb::__private::v1::ObjectRef")
    );
}
