//! IDL as sites have it: prefixes, pragmas, imports and constants that other compilers take too.

use std::path::PathBuf;

use idl_compiler::model::ConstValue;
use idl_compiler::{Compiler, Diagnostics, Memory, Model, Source};

/// Compiles the first of the files.
fn compile(list: &[(&str, &str)]) -> Result<Model, Diagnostics> {
    let files: Vec<(PathBuf, Vec<u8>)> =
        list.iter().map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec())).collect();
    let first = list.first().expect("a file").0;
    Compiler::default().files(Memory::from_iter(files)).include("inc").compile_files([first])
}

fn good(list: &[(&str, &str)]) -> Model {
    compile(list).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

fn text(idl: &str) -> Model {
    idl_compiler::compile(Source::text("field.idl", idl))
        .unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

fn id(model: &Model, name: &str) -> String {
    model.def(model.find(name).unwrap_or_else(|| panic!("{name}"))).repository_id.clone()
}

/// The messages of files that do not compile.
fn errors(list: &[(&str, &str)]) -> String {
    compile(list).expect_err("errors").render(false)
}

#[test]
fn a_type_prefix_holds_for_scopes_that_come_later_and_may_be_said_again() {
    let model = good(&[
        ("main.idl", "#include \"a.idl\"\n#include \"b.idl\""),
        ("a.idl", "module M { typedef long A; };\ntypeprefix M \"acme.com\";"),
        ("b.idl", "module M { typedef long B; };\ntypeprefix M \"acme.com\";\nmodule M { typedef long C; };"),
    ]);
    for name in ["A", "B", "C"] {
        assert_eq!(id(&model, &format!("M::{name}")), format!("IDL:acme.com/M/{name}:1.0"));
    }
    let model = text(
        "typeprefix M \"a\"; typeprefix ::N \"b\"; typeprefix O::P \"c\"; typeprefix CORBA \"omg.org\";
         module M { typedef long T; }; module N { interface I { }; };
         module O { typedef long T; module P { typedef long T; }; };
         module Q { typeprefix R \"d\"; module R { typedef long T; }; module M { typedef long T; }; };",
    );
    let ids = ["M::T", "N::I", "O::T", "O::P::T", "Q::R::T", "Q::M::T"].map(|name| id(&model, name));
    assert_eq!(
        ids,
        [
            "IDL:a/M/T:1.0",
            "IDL:b/N/I:1.0",
            "IDL:O/T:1.0",
            "IDL:c/O/P/T:1.0",
            "IDL:d/Q/R/T:1.0",
            "IDL:Q/M/T:1.0"
        ]
    );
    // A prefix of a pragma ends with its scope.
    let model = text(
        "typeprefix M \"m\"; module M { typedef long A;\n#pragma prefix \"p\"\n typedef long B; }; module M { typedef long C; };",
    );
    assert_eq!(
        ["M::A", "M::B", "M::C"].map(|name| id(&model, name)),
        ["IDL:m/M/A:1.0", "IDL:p/M/B:1.0", "IDL:m/M/C:1.0"]
    );
    let model = good(&[
        ("main.idl", "typeprefix M \"m\"; module M {\n#pragma prefix \"p\"\n#include \"in.idl\"\n};"),
        ("in.idl", "typedef long T;"),
    ]);
    assert_eq!(id(&model, "M::T"), "IDL:p/M/T:1.0");
    let model = good(&[
        ("main.idl", "#pragma prefix \"m\"\nmodule M {\n#include \"a.idl\"\ntypedef long After; };"),
        ("a.idl", "typedef long A;\n#pragma prefix \"p\"\n#include \"b.idl\""),
        ("b.idl", "typedef long B; module N { typedef long C; };"),
    ]);
    let ids = ["M::A", "M::B", "M::N::C", "M::After"].map(|name| id(&model, name));
    assert_eq!(ids, ["IDL:m/M/A:1.0", "IDL:p/M/B:1.0", "IDL:p/M/N/C:1.0", "IDL:m/M/After:1.0"]);
    let orb = "module CORBA {\n  typeprefix CORBA \"omg.org\"\n  typedef string Identifier;\n};\n";
    let found = errors(&[("orb.idl", orb)]);
    assert_eq!(found.matches("error[").count(), 1, "{found}");
    assert!(found.contains("orb.idl:2:28") && found.contains("expected `;`"), "{found}");
}

#[test]
fn a_file_included_inside_of_a_scope_goes_on_with_its_prefix() {
    let model = good(&[
        (
            "orb.idl",
            "#pragma prefix \"omg.org\"\nmodule CORBA {\n interface Object2;\n#include \"body.idl\"\n typedef long After;\n};\n#include \"own.idl\"\ntypedef long Last;",
        ),
        (
            "body.idl",
            "interface Object2 { };\ntypedef long Inside;\n#include \"deeper.idl\"\n#pragma prefix \"mine\"\ntypedef long Mine;",
        ),
        ("deeper.idl", "module Inner { typedef long T; };"),
        ("own.idl", "typedef long Own;\nmodule CORBA { typedef long Again; };"),
    ]);
    let ids = [
        "CORBA::Object2",
        "CORBA::Inside",
        "CORBA::Inner::T",
        "CORBA::Mine",
        "CORBA::After",
        "Own",
        "CORBA::Again",
        "Last",
    ]
    .map(|name| id(&model, name));
    assert_eq!(
        ids,
        [
            "IDL:omg.org/CORBA/Object2:1.0",
            "IDL:omg.org/CORBA/Inside:1.0",
            "IDL:omg.org/CORBA/Inner/T:1.0",
            "IDL:mine/CORBA/Mine:1.0",
            "IDL:omg.org/CORBA/After:1.0",
            "IDL:Own:1.0",
            "IDL:CORBA/Again:1.0",
            "IDL:omg.org/Last:1.0"
        ]
    );
}

#[test]
fn pragmas_stand_between_any_two_tokens() {
    let model = text(
        "enum State { idle,\n#pragma version State 2.1\n busy };
         union U switch (long) { case 1: long a;\n#pragma version U 3.0\n default: short\n#pragma keylist U a\n b; };
         exception E { };
         interface I { void f(in long a,\n#pragma prefix \"late\"\n in long b) raises (\n#pragma version E 1.5\n E); void g(); };
         typedef long T;",
    );
    let ids = ["State", "U", "E", "I::f", "I::g", "T"].map(|name| id(&model, name));
    assert_eq!(
        ids,
        ["IDL:State:2.1", "IDL:U:3.0", "IDL:E:1.5", "IDL:I/f:1.0", "IDL:late/I/g:1.0", "IDL:T:1.0"]
    );
    assert_eq!(model.pragmas().len(), 1);
    let model = text("#pragma prefix \"acme.com\";\ntypedef long T;");
    assert_eq!(id(&model, "T"), "IDL:acme.com/T:1.0");
    assert!(model.warnings().render(false).contains("a `;` after a pragma has no effect"));
    // What is broken in one place is said once, and the pragmas around it hold.
    let found = errors(&[(
        "x.idl",
        "enum E { a,\n#pragma version E 2.0\n 5 };\n#pragma version E 9\ntypedef long T;",
    )]);
    assert_eq!(found.matches("error[").count(), 1, "{found}");
}

#[test]
fn imports_read_the_file_of_the_name() {
    let model = good(&[
        (
            "main.idl",
            "import ::Depot;\nimport Shop::Item;\nimport ::Depot;\nimport \"extra.idl\";\nimport \"extra.idl\";\nmodule Main { typedef Depot::Part A; typedef Shop::Item B; typedef Extra C; };",
        ),
        (
            "inc/Depot.idl",
            "#pragma prefix \"depot.com\"\nimport ::Common;\nmodule Depot { typedef Common::Number Part; };",
        ),
        ("inc/Common.idl", "module Common { typedef long Number; };"),
        ("shop.idl", "module Shop { struct Item { long number; }; };"),
        ("extra.idl", "typedef long Extra;"),
    ]);
    assert_eq!(id(&model, "Depot::Part"), "IDL:depot.com/Depot/Part:1.0");
    assert_eq!(id(&model, "Common::Number"), "IDL:Common/Number:1.0");
    assert_eq!(id(&model, "Main::A"), "IDL:Main/A:1.0");
    assert!(model.is_included(model.find("Shop::Item").expect("an item")));
    // A name of a module that is there, and a part of it that a file of its own has.
    let model = good(&[
        ("main.idl", "module A { typedef long X; };\nimport A::B;\ntypedef A::B C;"),
        ("B.idl", "module A { struct B { long x; }; };"),
    ]);
    assert!(model.find("C").is_some());
}

#[test]
fn imports_that_find_nothing_say_so() {
    let found = errors(&[("main.idl", "import ::Missing;\nimport \"missing.idl\";\ntypedef long T;")]);
    assert_eq!(found.matches("error[unknown-import]").count(), 2, "{found}");
    // The file is there, and does not have it.
    let found = errors(&[
        ("main.idl", "import ::Depot;\ntypedef long T;"),
        ("Depot.idl", "module Other { typedef long X; };"),
    ]);
    assert_eq!(found.matches("error[").count(), 1, "{found}");
    assert!(found.contains("`::Depot` is imported, but is not declared before"), "{found}");
    // Files that import each other end.
    let model = good(&[
        ("A.idl", "import ::B;\nmodule A { typedef B::T U; };"),
        ("B.idl", "import ::A;\nmodule B { typedef long T; };"),
    ]);
    assert!(model.find("A::U").is_some());
}

#[test]
fn fixed_constants_come_from_floating_literals_exactly() {
    let model = text(
        "typedef fixed<5, 3> P; const P A = 3.141; const P B = -0.1e1; const fixed C = 12.5E-1 + .25; const long D = ~ -5; const long E = 1 + -+3; const double F = - -1.5;",
    );
    let value = |name: &str| match &model.def(model.find(name).expect("a constant")).kind {
        idl_compiler::model::DefKind::Const(constant) => constant.value.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(value("A"), ConstValue::Fixed { unscaled: 3141, scale: 3 });
    assert_eq!(value("B"), ConstValue::Fixed { unscaled: -1, scale: 0 });
    assert_eq!(value("C"), ConstValue::Fixed { unscaled: 15, scale: 1 });
    assert_eq!((value("D"), value("E")), (ConstValue::Integer(4), ConstValue::Integer(-2)));
    assert_eq!(value("F"), ConstValue::Float(1.5));
}

#[test]
fn annotations_of_the_standard_are_taken_where_corba_has_no_use_for_them() {
    let model = text(
        "enum Colour { @value(10) red, green, @value(-3) blue };
         enum Plain { a, @value(1) b };
         union U switch (long) { case 1: @optional long a; default: @default(\"b\") string b; };
         @default(7) typedef long Number;
         @bit_bound(16) enum Small { x, y };
         @bit_bound(32) enum Large { v, w };
         @mutable struct S { @bit_bound(3) long a; };
         @mutable struct T { long a; };",
    );
    let values =
        |name: &str| model.enumeration(model.find(name).expect("an enum")).expect("an enum").values();
    assert_eq!(values("Colour"), Some(vec![10, 11, -3]));
    assert_eq!((values("Plain"), values("Small")), (Some(vec![0, 1]), None));
    let warnings = model.warnings().render(false);
    for said in [
        "`@value` gives this enumerator a number",
        "`@optional` has no meaning on a union member",
        "`@default` has no meaning on a typedef",
        "CORBA does not use the encoding",
        "`@bit_bound` has no meaning on a member",
    ] {
        assert!(warnings.contains(said), "{said}\n{warnings}");
    }
    assert_eq!(warnings.matches("that `@mutable` requests").count(), 1, "{warnings}");
    assert_eq!(warnings.matches("that `@bit_bound` requests").count(), 1, "{warnings}");
    let found = errors(&[(
        "x.idl",
        "enum E { @value(1) a, @value(0) b, c };\nenum F { @value(9999999999) d };\n@default(\"x\") typedef long N;",
    )]);
    assert_eq!(found.matches("error[").count(), 3, "{found}");
    assert!(
        found.contains("two enumerators have the number 1") && found.contains("exceeds 32 bits"),
        "{found}"
    );
}

#[test]
fn a_native_type_in_a_raises_clause_stands_for_any_user_exception() {
    let model = text(
        "native Any2; exception E { }; valuetype V { void f() raises (E, Any2); void g() raises (E); };",
    );
    let raises = |name: &str| match &model.def(model.find(name).expect("an operation")).kind {
        idl_compiler::model::DefKind::Operation(operation) => (operation.raises.len(), operation.raises_any),
        other => panic!("{other:?}"),
    };
    assert_eq!((raises("V::f"), raises("V::g")), ((1, true), (1, false)));
}

#[test]
fn ids_that_are_too_long_for_the_wire_are_refused_at_once() {
    let long = "x".repeat(1 << 20);
    let interfaces: String = (0..2000).map(|n| format!("interface I{n} {{ }};\n")).collect();
    let found = errors(&[("x.idl", &format!("#pragma prefix \"{long}\"\n{interfaces}"))]);
    assert_eq!(found.matches("error[").count(), 1, "{}", &found[..300]);
    let prefix = "y".repeat(1000);
    let text = |name: &str| format!("#pragma prefix \"{prefix}\"\ninterface {name} {{ void f(); }};");
    good(&[("x.idl", &text("Short"))]);
    let found = errors(&[("x.idl", &text("AnInterfaceWithALongName"))]);
    assert!(found.contains("has 1033 bytes") && found.matches("error[").count() == 1, "{found}");
}

#[test]
fn a_type_from_the_root_may_follow_an_annotation() {
    let idl = "@annotation mark { }; module M { @annotation inner { }; typedef long T; };
        struct S { @optional ::M::T a; @unknown ::M::T b; @mark /* */ ::M::T c; @M::inner ::M::T d; @::mark long e; @::M::inner ::M::T f; };";
    for model in
        [text(idl), idl_compiler::compile(Source::tokens(idl.parse().expect("tokens"))).expect("a model")]
    {
        let found = model.structure(model.find("S").expect("S")).expect("a struct");
        let members: Vec<(String, String)> = found
            .members
            .iter()
            .map(|member| (member.annotations.0[0].name.clone(), model.describe(member.ty)))
            .collect();
        let wanted = [
            ("optional", "M::T"),
            ("unknown", "M::T"),
            ("mark", "M::T"),
            ("M::inner", "M::T"),
            ("::mark", "long"),
            ("::M::inner", "M::T"),
        ]
        .map(|(name, ty)| (name.to_owned(), ty.to_owned()));
        assert_eq!(members, wanted);
    }
}

#[test]
fn a_definition_that_breaks_off_inside_its_braces_is_one_error() {
    for idl in [
        "enum E { a, b; }; struct S { long a; };",
        "enum E { a b }; struct S { long a; };",
        "module M { enum E { a = 1, b }; struct S { E a; }; };",
        "bitmask B { a, 5 }; struct S { long a; };",
    ] {
        let found = errors(&[("main.idl", idl)]);
        assert_eq!(found.matches("error[").count(), 1, "{found}");
    }
}
