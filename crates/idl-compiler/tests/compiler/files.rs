//! Several files: what includes find, whose prefixes hold, where messages say that something stands.

use std::path::{Path, PathBuf};

use idl_compiler::emit::{Options, emit};
use idl_compiler::model::ConstValue;
use idl_compiler::{Compiler, Diagnostics, Disk, Memory, Model, Source};

fn files(files: &[(&str, &str)]) -> Compiler {
    let files: Vec<(PathBuf, Vec<u8>)> =
        files.iter().map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec())).collect();
    Compiler::default().files(Memory::from_iter(files))
}

/// Compiles the first of the files.
fn compile(list: &[(&str, &str)]) -> Result<Model, Diagnostics> {
    let first = list.first().expect("a file").0;
    files(list).include("inc").include("more/inc").compile_files([first])
}

fn good(result: Result<Model, Diagnostics>) -> Model {
    result.unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

/// The messages of files that do not compile.
fn errors(list: &[(&str, &str)]) -> String {
    compile(list).expect_err("errors").render(false)
}

fn id(model: &Model, name: &str) -> String {
    model.def(model.find(name).unwrap_or_else(|| panic!("{name}"))).repository_id.clone()
}

#[test]
fn includes_are_found_beside_the_file_and_in_the_folders_in_order() {
    let model = good(compile(&[
        (
            "a/main.idl",
            "#include \"x.idl\"\n#include <y.idl>\n#include \"z.idl\"\n#include \"../up.idl\"\n#define W <w.idl>\n#include W\n#define V \"v.idl\"\n#include V",
        ),
        ("a/x.idl", "struct BesideX { long x; };\n#include \"sub/s.idl\""),
        ("a/sub/s.idl", "#include \"t.idl\"\nstruct SubS { T t; };"),
        ("a/sub/t.idl", "struct T { long x; };"),
        ("inc/x.idl", "#error not this one"),
        ("a/y.idl", "#error not this one"),
        ("more/inc/y.idl", "struct IncY { long x; };"),
        ("inc/z.idl", "struct IncZ { long x; };"),
        ("more/inc/z.idl", "#error not this one"),
        ("up.idl", "struct Up { long x; };"),
        ("inc/w.idl", "struct W1 { long x; };"),
        ("a/v.idl", "struct V1 { long x; };"),
    ]));
    for name in ["BesideX", "SubS", "T", "IncY", "IncZ", "Up", "W1", "V1"] {
        assert!(model.is_included(model.find(name).expect(name)), "{name}");
    }
    let paths: Vec<&Path> = model.sources().paths();
    let names = [
        "a/main.idl",
        "a/x.idl",
        "a/sub/s.idl",
        "a/sub/t.idl",
        "more/inc/y.idl",
        "inc/z.idl",
        "a/../up.idl",
        "inc/w.idl",
        "a/v.idl",
    ];
    assert_eq!(paths, names.map(Path::new));
}

#[test]
fn guards_and_once_keep_a_file_from_coming_twice() {
    let model = good(compile(&[
        (
            "main.idl",
            "#include \"a.idl\"\n#include \"./b.idl\"\n#include \"b.idl\"\n#include \"x/../b.idl\"\n#include \"a.idl\"",
        ),
        ("a.idl", "#ifndef A_IDL\n#define A_IDL\n#include \"b.idl\"\nstruct A { B b; };\n#endif"),
        ("b.idl", "#pragma once\nstruct B { long x; };\n#include \"a.idl\""),
    ]));
    assert!(model.find("A").is_some() && model.find("B").is_some());
}

#[test]
fn a_prefix_belongs_to_its_file() {
    let model = good(compile(&[
        (
            "main.idl",
            "#pragma prefix \"main.org\"\ninterface A { };\n#include \"plain.idl\"\ninterface B { };\n#include \"other.idl\"\ninterface C { };\nmodule M {\n#include \"inside.idl\"\ninterface F { };\n};\nmodule Shared { interface G { }; };",
        ),
        ("plain.idl", "interface Plain { };\n#include \"deep.idl\"\ninterface Plain2 { };"),
        ("deep.idl", "#pragma prefix \"deep.org\"\ninterface Deep { };"),
        (
            "other.idl",
            "#pragma prefix \"other.org\"\ninterface Other { };\nmodule Shared { interface H { }; };\n#pragma prefix \"\"\ninterface Bare { };",
        ),
        ("inside.idl", "interface E { };\n#pragma prefix \"inside.org\"\ninterface E2 { };"),
    ]));
    for (name, wanted) in [
        ("A", "IDL:main.org/A:1.0"),
        ("B", "IDL:main.org/B:1.0"),
        ("C", "IDL:main.org/C:1.0"),
        ("Plain", "IDL:Plain:1.0"),
        ("Plain2", "IDL:Plain2:1.0"),
        ("Deep", "IDL:deep.org/Deep:1.0"),
        ("Other", "IDL:other.org/Other:1.0"),
        ("Bare", "IDL:Bare:1.0"),
        ("M::E", "IDL:main.org/M/E:1.0"),
        ("M::E2", "IDL:inside.org/M/E2:1.0"),
        ("M::F", "IDL:main.org/M/F:1.0"),
        ("Shared::H", "IDL:other.org/Shared/H:1.0"),
        ("Shared::G", "IDL:main.org/Shared/G:1.0"),
    ] {
        assert_eq!(id(&model, name), wanted, "{name}");
    }
}

#[test]
fn what_another_preprocessor_puts_out_is_understood() {
    let text = "# 0 \"<built-in>\"\n# 1 \"main.idl\"\n#pragma prefix \"main.org\"\n# 1 \"inc.idl\" 1\n\ninterface Inc { };\n# 3 \"main.idl\" 2\ninterface A { };\ntypedef Nope T;\n";
    let errors = idl_compiler::compile(Source::text("<stdin>", text)).expect_err("Nope");
    insta::assert_snapshot!("line_marks", errors.render(false));
    let model = good(idl_compiler::compile(Source::text("<stdin>", text.replace("typedef Nope T;", ""))));
    assert_eq!((id(&model, "A"), id(&model, "Inc")), ("IDL:main.org/A:1.0".into(), "IDL:Inc:1.0".into()));
    assert!(
        model.is_included(model.find("Inc").expect("Inc")) && !model.is_included(model.find("A").expect("A"))
    );
}

#[test]
fn several_files_are_one_text() {
    let list = &[
        ("a.idl", "#pragma prefix \"a.org\"\n#define SIZE 3\nstruct A { long x[SIZE]; };"),
        ("b.idl", "#include \"c.idl\"\n#include \"a.idl\"\nstruct B { A a[SIZE]; C c; };"),
        ("c.idl", "#pragma once\nstruct C { long x; };"),
        ("d.idl", "#include \"c.idl\"\nstruct D { C c; B b; };"),
    ];
    let model = good(files(list).compile_files(["b.idl", "a.idl", "d.idl"]));
    assert_eq!((id(&model, "A"), id(&model, "D")), ("IDL:a.org/A:1.0".into(), "IDL:D:1.0".into()));
    let included = |name: &str| model.is_included(model.find(name).expect(name));
    assert_eq!(["A", "B", "C", "D"].map(included), [false, false, true, false]);
}

#[test]
fn macros_of_the_caller_hold() {
    let text = "#ifdef FAST\nconst long A = VALUE;\n#endif\nconst long B = TWICE(4);\n#ifndef GONE\nconst long C = 1;\n#endif";
    let model = good(
        files(&[("m.idl", text)])
            .define("FAST")
            .define("VALUE=7")
            .define("TWICE(x)=(x)*2")
            .define("GONE")
            .undefine("GONE")
            .compile_files(["m.idl"]),
    );
    assert!(["A", "B", "C"].iter().all(|name| model.find(name).is_some()));
    let errors =
        files(&[("m.idl", "const long A = BAD;")]).define("BAD=1 +").define("5=x").compile_files(["m.idl"]);
    insta::assert_snapshot!("command_line", errors.expect_err("errors").render(false));
}

#[test]
fn macros_of_the_caller_hold_in_a_text() {
    let text = Source::text("text.idl", "#ifdef FAST\nconst long A = MOST;\n#endif");
    let model = good(Compiler::default().define("FAST").define("MOST=7").compile(text));
    let found = model.find("A").and_then(|found| model.constant(found)).map(|constant| &constant.value);
    assert_eq!(found, Some(&ConstValue::Integer(7)));
}

#[test]
fn messages_say_where_something_is_used_and_where_it_comes_from() {
    insta::assert_snapshot!(
        "included",
        errors(&[
            ("main.idl", "module M {\n#include \"a.idl\"\n};"),
            ("a.idl", "// a\n#include <b.idl>"),
            ("inc/b.idl", "struct B {\n    Nope x;\n    long y\n};"),
        ])
    );
    insta::assert_snapshot!(
        "expanded",
        errors(&[
            (
                "main.idl",
                "#include \"macros.idl\"\nmodule M {\n    STRUCT(S, long);\n    STRUCT(T, Nope);\n    PAIR;\n};"
            ),
            (
                "macros.idl",
                "#define MEMBER(t) t value\n#define STRUCT(n, t) struct n { MEMBER(t); Missing other; }\n#define PAIR \\\n    STRUCT(S, \\\n        short)\n"
            ),
        ])
    );
    insta::assert_snapshot!(
        "line",
        errors(&[("main.idl", "#line 70 \"template.idl\"\ntypedef Nope T;\n#line 5\ntypedef Nope U;"),])
    );
    insta::assert_snapshot!(
        "earlier_in_another_file",
        errors(&[
            ("main.idl", "#include \"a.idl\"\nstruct A { long x; };"),
            ("a.idl", "struct A { long x; };"),
        ])
    );
}

#[test]
fn a_file_that_its_guard_leaves_out_is_not_opened_again() {
    let many = |line: &str| format!("{line}\n").repeat(10_050);
    let guard =
        "/* a comment */\n#ifndef G\n#define G\n#include <inner.idl>\nstruct A { I i; };\n#endif // G\n";
    let inner = (
        "inc/inner.idl",
        "#ifndef I_IDL\n# define I_IDL\n#if 1\nstruct I { long x; };\n#else\n#endif\n#endif",
    );
    good(compile(&[("main.idl", &many("#include \"g.idl\"")), ("g.idl", guard), inner]));
    // The name is looked at each time, and nothing may stand beside the condition.
    let again = |guarded: &str| {
        let main = "#include \"g.idl\"\n#define G\n#include \"g.idl\"\n#undef G\n#include \"g.idl\"";
        let model = good(compile(&[("main.idl", main), ("g.idl", guarded)]));
        let names = ["A1", "A2", "B1", "B2"];
        names.into_iter().filter(|name| model.find(name).is_some()).collect::<Vec<_>>().join(" ")
    };
    let counted = |name: &str| {
        format!(
            "#ifdef ONCE_{name}\nstruct {name}2 {{ long x; }};\n#else\n#define ONCE_{name}\nstruct {name}1 {{ long x; }};\n#endif\n"
        )
    };
    let (a, b) = (counted("A"), counted("B"));
    assert_eq!(again(&format!("#ifndef G\n{a}#endif\n")), "A1 A2");
    assert_eq!(again(&format!("#ifndef G\n#define G\n{a}#else\n#undef G\n{b}#endif\n")), "A1 A2 B1");
    assert_eq!(again(&format!("#ifndef G\n{a}#endif\n#ifdef G\n{b}#endif\n")), "A1 A2 B1");
    assert_eq!(again(&format!("#ifdef G\n{b}#endif\n#ifndef G\n{a}#endif\n")), "A1 A2 B1");
    assert_eq!(again(&format!("#ifndef G\n{a}#elif defined G\n{b}#endif\n")), "A1 A2 B1");
    // Without a guard each opening counts.
    assert!(
        errors(&[("main.idl", &many("#include \"g.idl\"")), ("g.idl", "")]).contains("more than 10000 files")
    );
}

#[test]
fn what_stands_in_a_macro_of_the_command_line_stays() {
    let compiler = files(&[("m.idl", "const char C = TAB; const string S = TEXT; const long L = LAST;")]);
    let compiler = compiler.define("BAD=1 \\").define("OPEN=/*").define("SLASHES=//").define("TAB='\\t'");
    let compiler = compiler.define("TEXT=\"a\\\\b\\\"\"").undefine("NONE\\").define("LAST=7");
    let model = good(compiler.compile_files(["m.idl"]));
    let value = |name: &str| model.constant(model.find(name).expect(name)).expect("a constant").value.clone();
    assert_eq!(value("C"), ConstValue::Char(b'\t'));
    assert_eq!(value("S"), ConstValue::String("a\\b\"".into()));
    assert_eq!(value("L"), ConstValue::Integer(7));
}

#[test]
fn more_tokens_than_are_held_are_one_error() {
    for piece in [";", "/// doc\n"] {
        let text = piece.repeat((1 << 20) + 3);
        let errors = Compiler::default().compile(Source::text("much.idl", text)).expect_err("too much");
        let codes: Vec<&str> = errors.iter().map(|error| error.code).collect();
        assert_eq!(codes, ["too-large"], "{piece}");
    }
}

#[test]
fn what_cannot_be_included_is_said() {
    insta::assert_snapshot!(
        "not_found",
        errors(&[
            (
                "a/main.idl",
                "#include \"x.idl\"\n#include <beside.idl>\n#include <absent/x.idl>\ntypedef FromX T;"
            ),
            ("a/beside.idl", ""),
        ])
    );
    let nothing = files(&[]).compile_files(["absent.idl"]).expect_err("no file");
    insta::assert_snapshot!("no_file", nothing.render(false));
}

#[test]
fn a_missing_file_hides_no_other_error() {
    let text = "#include <absent.idl>\n#include <gone.idl>\n\
        interface Account { void pay(in Money m, in Absent::Thing t, in strng s, in Money n); };\n\
        struct Bank { Acount a; CORBA::Any b; };\n\
        const octet FULL = 256;";
    let found = files(&[("main.idl", text)]).compile_files(["main.idl"]).expect_err("errors");
    let messages: Vec<&str> = found.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "there is no file `absent.idl`",
            "there is no file `gone.idl`",
            "`strng` is not declared",
            "`Acount` is not declared",
            "256 does not fit into `octet`",
        ]
    );
    let first = found.iter().next().expect("an error");
    assert_eq!(
        first.notes.last().map(String::as_str),
        Some("names that it may declare: `Money`, `Absent::Thing`, `CORBA::Any`")
    );
    // Where something was left out of the text itself, a missing name is no news.
    let broken = "#include <absent.idl>\nstruct Acount { long };\nstruct Bank { Acont a; };";
    let found = files(&[("main.idl", broken)]).compile_files(["main.idl"]).expect_err("errors");
    assert_eq!(found.len(), 2, "{found}");
}

#[test]
fn circles_and_bombs_of_files_end_in_one_error() {
    insta::assert_snapshot!(
        "circle",
        errors(&[
            ("a.idl", "struct A { long x; };\n#include \"b.idl\""),
            ("b.idl", "#include \"c.idl\"\nstruct B { Nope x; };"),
            ("c.idl", "#include \"b.idl\""),
        ])
    );
    let twice = "#if __INCLUDE_LEVEL__ < 60\n#include \"a.idl\"\n#include \"a.idl\"\n#endif\n";
    insta::assert_snapshot!("many_files", errors(&[("a.idl", twice)]));
    let large = format!("{twice}//{}", "x".repeat(1 << 20));
    insta::assert_snapshot!("large_files", errors(&[("a.idl", &large)]));
    let mut deep: Vec<(String, String)> =
        (0..80).map(|n| (format!("{n}.idl"), format!("#include \"{}.idl\"", n + 1))).collect();
    deep.push(("80.idl".into(), String::new()));
    let deep: Vec<(&str, &str)> = deep.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    insta::assert_snapshot!("deep", errors(&deep));
}

#[test]
fn an_open_condition_or_comment_ends_with_its_file() {
    insta::assert_snapshot!(
        "open_ends",
        errors(&[
            (
                "main.idl",
                "#include \"a.idl\"\n#endif\nstruct M { long x; };\n#include \"b.idl\"\n#define F(x) x\n#include \"c.idl\"\n1);"
            ),
            ("a.idl", "#if 1\nstruct A { long x; };"),
            ("b.idl", "struct B { long x; }; /* and"),
            ("c.idl", "const long C = F("),
        ])
    );
}

#[test]
fn files_that_never_end_are_not_read() {
    let error = Compiler::default().files(Disk::new()).compile_files(["/dev/zero"]).expect_err("a device");
    assert!(error.render(false).contains("not a regular file"), "{}", error.render(false));
    let error = Compiler::default().files(Disk::new()).compile_files(["/"]).expect_err("a folder");
    assert!(error.render(false).contains("is a directory"), "{}", error.render(false));
}

#[test]
fn pragmas_of_vendors_are_kept() {
    let model = good(compile(&[
        (
            "main.idl",
            "#pragma keylist A x\n#include \"a.idl\"\n#  pragma   vendor \\\n  don't  care\nstruct A { long x; };",
        ),
        ("a.idl", "#pragma hh #include <x>"),
    ]));
    let texts: Vec<&str> = model.pragmas().iter().map(|pragma| pragma.text.as_str()).collect();
    assert_eq!(texts, ["keylist A x", "hh #include <x>", "vendor   don't  care"]);
    assert_eq!(model.sources().position(model.pragmas()[1].span).to_string(), "a.idl:1:1");
}

#[test]
fn a_shift_and_two_brackets_are_told_apart_behind_macros() {
    let model = good(compile(&[(
        "main.idl",
        "#define SHIFT(x, y) x >> y\n#define G >\nconst long A = SHIFT(8, 1);\ntypedef sequence<sequence<long>> T;\ntypedef sequence<sequence<long G G U;",
    )]));
    assert!(model.find("U").is_some());
    assert!(compile(&[("main.idl", "#define G >\nconst long A = 8 G G 1;")]).is_err());
}

#[test]
fn names_that_clash_where_nothing_is_generated_are_no_errors() {
    let model = good(compile(&[
        ("main.idl", "#include \"a.idl\"\nmodule M { struct foo_bar { clash c; }; };"),
        (
            "a.idl",
            "module M { struct fooBar { long a_b; long aB; }; struct x_y { long x; }; struct xY { long x; }; };\ntypedef M::fooBar clash;",
        ),
    ]));
    let changed = |options: &Options| {
        let emitted = emit(&model, options).unwrap_or_else(|errors| panic!("{errors}"));
        emitted.warnings.iter().map(|warning| warning.message.clone()).collect::<Vec<_>>()
    };
    let path = || "::other".parse().expect("a path");
    let external = vec![("::".to_owned(), path())];
    assert_eq!(changed(&Options { external, ..Options::default() }), [""; 0]);
    assert_eq!(changed(&Options::default()).len(), 3);
}

#[test]
fn comments_stay_in_their_file() {
    let model = good(compile(&[
        (
            "main.idl",
            "/** The licence. */\n#include \"a.idl\"\n/** Of B. */\nstruct B { long x; };\n#define C_TYPE struct C { long x; };\n/** Of C. */\nC_TYPE",
        ),
        ("a.idl", "struct A { long x; };\n/** The end. */"),
    ]));
    let docs = |name: &str| model.def(model.find(name).expect(name)).docs.text();
    assert_eq!(["A", "B", "C"].map(docs), ["", "Of B.", "Of C."]);
}

#[test]
fn a_file_where_a_folder_is_wanted_is_no_folder() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no_folder");
    std::fs::create_dir_all(folder.join("later")).expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("a file");
    write("main.idl", "#include <x.idl>\nstruct M { X x; };");
    write("file", "");
    write("later/x.idl", "struct X { long x; };");
    let compiler = Compiler::default().files(Disk::at(&folder)).include("file").include("later");
    let model = good(compiler.compile_files(["main.idl"]));
    assert_eq!(model.sources().paths(), [folder.join("main.idl"), folder.join("later/x.idl")]);
}

#[test]
fn line_marks_are_counted_as_files() {
    let text = "# 1 \"x\" 1\n".repeat(20_000);
    let errors = idl_compiler::compile(Source::text("<stdin>", text)).expect_err("too many");
    assert_eq!(errors.iter().map(|error| error.code).collect::<Vec<_>>(), ["too-large"]);
}
