//! Texts and files, constants, and errors in them.

use zorb::dynamic::{Decimal, DefinitionKind, Idl, IdlError, Value};
use zorb::{LongDouble, TcKind, TypeCode};

fn fault(text: &str) -> IdlError {
    Idl::parse(text).unwrap_err()
}

#[test]
fn constants_are_values_of_their_types() {
    let idl = Idl::parse(
        "module M {
            enum E { zero, one };
            typedef fixed<9, 3> Money;
            bitmask Bits { a, b };
            const boolean B = TRUE; const octet O = 255; const int8 I = -1; const char C = 'c'; const wchar W = L'\\u20ac';
            const short S = -3; const unsigned short US = 65535; const long L = -5; const unsigned long UL = 6;
            const long long LL = -7; const unsigned long long ULL = 18446744073709551615;
            const float F = 0.5; const double D = -2.25; const long double LD = 1.0;
            const string T = \"text\"; const wstring WT = L\"wide\"; const E ENUM = one;
            const fixed X = 12.50d; const Money PRICE = -1.5d;
        };",
    )
    .unwrap();
    let money = Decimal { unscaled: -1500, digits: 9, scale: 3 };
    for (name, value) in [
        ("B", Value::Boolean(true)),
        ("O", Value::Octet(255)),
        ("I", Value::Octet(255)),
        ("C", Value::Char(zorb::Char(b'c'))),
        ("W", Value::WChar(zorb::WChar(0x20ac))),
        ("S", Value::Short(-3)),
        ("US", Value::UShort(65535)),
        ("L", Value::Long(-5)),
        ("UL", Value::ULong(6)),
        ("LL", Value::LongLong(-7)),
        ("ULL", Value::ULongLong(u64::MAX)),
        ("F", Value::Float(0.5)),
        ("D", Value::Double(-2.25)),
        ("LD", Value::LongDouble(LongDouble::from_bits(0x3fff << 112))),
        ("T", Value::String("text".into())),
        ("WT", Value::WString("wide".into())),
        ("ENUM", Value::Enum(1)),
        ("X", Value::Fixed(Box::new(Decimal { unscaled: 125, digits: 3, scale: 1 }))),
        ("PRICE", Value::Fixed(Box::new(money))),
    ] {
        let constant = idl.find(&format!("M::{name}")).unwrap();
        assert_eq!((constant.kind(), constant.type_code()), (DefinitionKind::Const, None));
        assert_eq!(constant.constant().unwrap().value, value, "{name}");
    }
    assert_eq!(idl.find("M::PRICE").unwrap().constant().unwrap().code, idl.type_code("M::Money").unwrap());
}

#[test]
fn definitions_are_found_by_name_and_id_and_say_where_they_are() {
    let idl = Idl::parse(
        "module M { /// A point.\n struct P { long x; }; native N; }; module M { typedef P Q; interface I { exception E { }; }; };",
    )
    .unwrap();
    let module = idl.find("::M").unwrap();
    assert_eq!(module.contents().map(|one| one.name()).collect::<Vec<_>>(), ["P", "N", "Q", "I"]);
    assert_eq!(idl.roots().map(|one| one.scoped_name()).collect::<Vec<_>>(), ["M"]);
    let point = idl.find_id("IDL:M/P:1.0").unwrap();
    assert_eq!((point.scoped_name(), point.docs().trim(), point.is_included()), ("M::P", "A point.", false));
    assert_eq!(point.parent().map(|parent| parent.id()), Some("IDL:M:1.0"));
    assert_eq!(idl.type_code("M::N"), Some(TypeCode::create_native("IDL:M/N:1.0", "N").unwrap()));
    assert_eq!(idl.type_code("M::I").map(|code| code.kind()), Some(TcKind::ObjRef));
    assert_eq!(idl.type_code("M::I::E").map(|code| code.kind()), Some(TcKind::Except));
    assert!(idl.type_code("M").is_none() && idl.find("m::p").is_none() && idl.interface("M::P").is_none());
    assert_eq!(idl.warnings(), "");
    assert_eq!(format!("{point:?}"), "Struct M::P");
}

#[test]
fn what_comes_out_outlives_the_text_and_goes_to_other_threads() {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    let idl = Idl::parse("interface I { void f(); };").unwrap();
    shared(&idl);
    let interface = idl.interface("I").unwrap();
    drop(idl);
    assert_eq!(interface.operations().len(), 1);
}

#[test]
fn every_error_has_its_place_and_a_text_includes_nothing() {
    let error = fault("struct S {\n  Missing a;\n  long b;\n  long c;\n  long c;\n};");
    assert_eq!(error.findings().len(), 2, "{error}");
    let first = &error.findings()[0];
    assert_eq!((&*first.file, first.line, first.column), ("text.idl", 2, 3));
    assert!(first.message.contains("Missing") && error.to_string().contains("Missing a;"), "{error}");
    assert!(fault("#include \"Cargo.toml\"\n").to_string().contains("Cargo.toml"));
    let missing = Idl::options().files(["tests/no_such.idl"]).unwrap_err();
    assert!(missing.to_string().contains("no_such.idl"), "{missing}");
    shared_error(&error);
}

fn shared_error<E: std::error::Error + Send + Sync + 'static>(_: &E) {}

#[test]
fn options_are_those_of_the_compiler() {
    let options =
        Idl::options().include("tests/interop/idl").define("MOST=7").define("GONE").undefine("GONE");
    let text = "#include <bench.idl>\n#ifndef GONE\ntypedef sequence<long, MOST> Few;\n#endif";
    let idl = options.text("few.idl", text).unwrap();
    assert_eq!(idl.type_code("Few").unwrap().unaliased().length(), Ok(7));
    assert!(idl.definitions().any(|one| one.is_included()));
    let strict = "struct Right { string right; };";
    assert!(!Idl::parse(strict).unwrap().warnings().is_empty());
    assert!(Idl::options().strict_names(true).text("strict.idl", strict).is_err());
}

#[test]
fn recursion_through_many_types_takes_no_longer_than_they_are() {
    // Each refers to all others: a traversal of all paths would not end.
    let count = 20;
    let mut text = String::new();
    (0..count).for_each(|at| text += &format!("struct S{at};\n"));
    for at in 0..count {
        text += &format!("struct S{at} {{");
        (0..count).for_each(|to| text += &format!(" sequence<S{to}> m{to};"));
        text += " };\n";
    }
    let idl = Idl::parse(&text).unwrap();
    let code = idl.type_code("S0").unwrap();
    assert_eq!(code.member_count(), Ok(count));
    assert_eq!(code.member_type(7).unwrap().content_type().unwrap(), idl.type_code("S7").unwrap());
    // The maximum number of levels of the compiler.
    let chain: String =
        (1..64).map(|at| format!("valuetype V{at} : V{} {{ public V0 m; }};\n", at - 1)).collect();
    let idl =
        Idl::parse(&format!("valuetype V0 {{ public long m0; }};\n{chain}").replace("public V0 m;", ""))
            .unwrap();
    assert!(idl.type_code("V63").unwrap().concrete_base_type().unwrap().is_some());
}

/// Every type code contains all types of which its type consists.
#[test]
fn types_that_are_made_of_each_other_do_not_take_the_square_of_memory() {
    let long = "x".repeat(10_000);
    let each = |of: &dyn Fn(usize) -> String| (0..300).map(of).collect::<String>();
    let members = each(&|n| format!("long {long}{n}; "));
    let text =
        format!("struct All {{ {members} }};\n{}", each(&|n| format!("struct U{n} {{ All all; }};\n")));
    let error = fault(&text);
    let [finding] = error.findings() else { panic!("{error}") };
    assert!(finding.message.contains("has no type code: ") && finding.message.contains("256 MiB"), "{error}");
    // The position of the first type that exceeds the limit.
    assert!((finding.line > 50, finding.column) == (true, 8), "{finding:?}");
    assert!(error.to_string().starts_with(&format!("text.idl:{}:8: U", finding.line)), "{error}");
}
