//! The program as users run it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const BANK: &str = "\
#include <money.idl>
#pragma prefix \"acme.com\"
#pragma keylist Money cents
/** All about money. */
module Bank {
    const Money NONE_COUNT = 0;
    exception Broke { Money missing; };
    enum Color { RED, GREEN };
    union Paper switch (Color) { case RED: string<5> words; default: sequence<long, 3> rest; };
    struct Row { double cells[2][3]; @key Paper sheet; };
    interface Base { };
    interface Account : Base {
        readonly attribute Money balance;
        /// Takes money out.
        Money take(in Money sum, out Row found) raises (Broke);
        oneway void ping();
    };
};
";
const MONEY: &str = "#pragma once\ntypedef long long Money;\n";

struct Run {
    code: i32,
    out: String,
    err: String,
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("inc")).unwrap();
    for (name, text) in [
        ("bank.idl", BANK),
        ("inc/money.idl", MONEY),
        ("bad.idl", "struct A { Nope x; };\nstruct A { long y; };\n"),
        ("warn.idl", "#warning Old.\nstruct W { long x; };\n"),
        (
            "needs.idl",
            "#if !defined LEVEL || LEVEL < 2\n#error LEVEL is missing\n#endif\nstruct N { long x; };\n",
        ),
        ("a b.idl", "struct Blank { long x; };\n"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn idlc(folder: &Path, args: &[&str], stdin: &str) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_idlc"))
        .args(args)
        .current_dir(folder)
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // The program may end without reading.
    let _ = input.write_all(stdin.as_bytes());
    drop(input);
    let output = child.wait_with_output().unwrap();
    let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap();
    Run { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn check_is_silent_where_all_is_well() {
    let folder = folder();
    let run = idlc(folder.path(), &["check", "-I", "inc", "bank.idl", "a b.idl"], "");
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, "", ""));
}

#[test]
fn check_reports_every_file() {
    let folder = folder();
    let run = idlc(folder.path(), &["check", "bad.idl", "absent.idl", "warn.idl", "bank.idl"], "");
    assert_eq!((run.code, run.out.as_str()), (3, ""));
    insta::assert_snapshot!("check", run.err);
    let run = idlc(folder.path(), &["check", "--no-warnings", "warn.idl"], "");
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    // Beside errors as well.
    let both = "#warning soon\nstruct S { Nope n; };";
    assert!(idlc(folder.path(), &["check", "-"], both).err.contains("warning"));
    let run = idlc(folder.path(), &["check", "--no-warnings", "-"], both);
    assert!(run.err.contains("error[not-found]") && !run.err.contains("warning"), "{}", run.err);
}

#[test]
fn macros_of_the_command_line_hold() {
    let folder = folder();
    let code = |args: &[&str]| idlc(folder.path(), &[&["check", "needs.idl"], args].concat(), "").code;
    assert_eq!(code(&[]), 1);
    assert_eq!(code(&["-D", "LEVEL"]), 1);
    assert_eq!(code(&["-DLEVEL=2"]), 0);
    assert_eq!(code(&["-DLEVEL=2", "-ULEVEL"]), 1);
}

#[test]
fn standard_input_is_a_file() {
    let folder = folder();
    let good = idlc(folder.path(), &["check", "-", "-I", "inc"], BANK);
    assert_eq!((good.code, good.err.as_str()), (0, ""));
    let bad = idlc(folder.path(), &["check", "-"], "typedef Nope T;");
    assert_eq!(bad.code, 1);
    assert!(bad.err.contains("--> <stdin>:1:9"), "{}", bad.err);
    let both = idlc(folder.path(), &["rust", "-", "bank.idl"], BANK);
    assert_eq!((both.code, both.err.as_str()), (2, "error: `-` cannot be combined with other files\n"));
}

#[test]
fn rust_is_printed_for_readers() {
    let folder = folder();
    let run = idlc(folder.path(), &["rust", "-I", "inc", "bank.idl"], "");
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert!(run.out.contains("pub type Money = ::core::primitive::i64;\n"), "{}", run.out);
    assert!(run.out.contains("        pub async fn take(\n"), "{}", run.out);
    let outside =
        ["--extern", "::Money=::common::Money", "--include-policy", "extern", "--crate", "crate::orb"];
    let renamed = ["--rename", "Bank::Account::take=withdraw", "-o", "out.rs"];
    let args = [&["rust", "-I", "inc", "bank.idl"][..], &outside, &renamed].concat();
    let run = idlc(folder.path(), &args, "");
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, "", ""));
    let written = std::fs::read_to_string(folder.path().join("out.rs")).unwrap();
    assert!(written.contains("::common::Money") && !written.contains("pub type Money"), "{written}");
    assert!(
        written.contains("crate::orb::__private") && written.contains("pub async fn withdraw("),
        "{written}"
    );
}

#[test]
fn options_that_fit_nothing_are_errors() {
    let folder = folder();
    let args = ["rust", "-I", "inc", "bank.idl", "--rename", "Bank::Nope=x", "--extern", "::Bank=::bank"];
    let run = idlc(folder.path(), &args, "");
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    insta::assert_snapshot!("options", run.err);
    let args = ["--derive", "Bank::Account=Eq", "--default-bodies=Bank::Row", "--crate", "super::zorb"];
    let run = idlc(folder.path(), &[&["rust", "-I", "inc", "bank.idl"][..], &args].concat(), "");
    assert_eq!((run.code, run.out.as_str(), run.err.lines().count()), (2, "", 3), "{}", run.err);
    let args = ["--derive", "serde::Serialize", "--derive", "Bank::Row=Eq", "--default-bodies"];
    let run = idlc(folder.path(), &[&["rust", "-I", "inc", "bank.idl"][..], &args].concat(), "");
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert_eq!(run.out.matches("#[derive(serde::Serialize").count(), 4, "{}", run.out);
    assert!(run.out.contains("#[derive(serde::Serialize, ::core::cmp::Eq)]"), "{}", run.out);
    assert_eq!(run.out.matches("::no_implement()").count(), 3);
    let args = ["--interpretive", "--adaptive", "Bank::Row=5", "--uses", "row_uses"];
    let run = idlc(folder.path(), &[&["rust", "-I", "inc", "bank.idl"][..], &args].concat(), "");
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let rust: String = run.out.split_whitespace().collect();
    for part in ["Uses::new(\"Bank::Row\",5", "pubfnrow_uses()", "__private::v1::read_interpreted("] {
        assert!(rust.contains(part), "{part}\n{}", run.out);
    }
    let args = ["--interpretive=Bank", "--adaptive", "Bank::Account=5", "--adaptive", "*=0", "--uses", "1"];
    let run = idlc(folder.path(), &[&["rust", "-I", "inc", "bank.idl"][..], &args].concat(), "");
    assert_eq!((run.code, run.err.lines().count()), (2, 4), "{}", run.err);
    assert_eq!(idlc(folder.path(), &["rust", "bank.idl", "--adaptive", "Bank::Row=many"], "").code, 2);
    let run = idlc(folder.path(), &["rust", "-I", "inc", "bank.idl", "--include-policy", "extern"], "");
    assert_eq!(run.code, 1);
    insta::assert_snapshot!("extern_is_missing", run.err);
    assert_eq!(idlc(folder.path(), &["rust"], "").code, 2);
    assert_eq!(idlc(folder.path(), &["nonsense"], "").code, 2);
    let run = idlc(folder.path(), &["rust", "warn.idl", "-o", "no/such/file.rs"], "");
    assert_eq!(run.code, 3);
}

#[test]
fn the_model_is_json() {
    let folder = folder();
    let run = idlc(folder.path(), &["model", "--json", "-I", "inc", "bank.idl"], "");
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    insta::assert_snapshot!("model", run.out);
    let values = "interface I { any f(in sequence_of s, inout ValueBase v) context (\"user\", \"net*\"); };";
    let text = format!("typedef sequence<CORBA::TypeCode, 3> sequence_of;\n{values}\n");
    let run = idlc(folder.path(), &["model", "--json", "-"], &text);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    insta::assert_snapshot!("model_of_values", run.out);
    let value_types = "abstract valuetype A { void f(); };\nvaluetype B { public long x; factory make(in long x); };\n\
        custom valuetype C : B, A { private A next[2]; };\nvaluetype D : truncatable B { };\nvaluetype E string;\n";
    let run = idlc(folder.path(), &["model", "--json", "-"], value_types);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    insta::assert_snapshot!("model_of_value_types", run.out);
    let text = "abstract interface A { }; local interface L : A { native N; void f(in N x); };\n";
    let run = idlc(folder.path(), &["model", "--json", "-"], text);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    insta::assert_snapshot!("model_of_local", run.out);
    let text = "const long TWO = 2; enum E { A, @default_literal B };\n\
        @range(min = -TWO, max = 1 << TWO) typedef short T;\n\
        @mutable @topic(name = \"x\") struct S { @key @optional @max(1) double a; @default(B) E b; @min(0.5) fixed<3, 2> c; };\n\
        @data_representation(XCDR1 | XCDR2) @bit_bound(TWO) bitmask M { @position(1) high };\n\
        union U switch (@key long) { case 1: @id(1) long x; };\n\
        interface I { @oneway void f(@id(5) in T x); @unit(\"s\") attribute long t; };\n";
    let run = idlc(folder.path(), &["model", "--json", "--no-warnings", "-"], text);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    insta::assert_snapshot!("model_of_annotations", run.out);
}

#[test]
fn interfaces_say_what_declares_them() {
    let folder = folder();
    let text = "eventtype E { }; component C { consumes E e_in; }; connector W { uses Object o; }; home H manages C { };\n";
    let run = idlc(folder.path(), &["model", "--json", "-"], text);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let model: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(model["files"], serde_json::json!([]), "the module `Components` is no file");
    let definitions = model["definitions"].as_array().unwrap();
    let declared = definitions.iter().map(|def| {
        let text = |key: &str| def[key].as_str().unwrap_or("-");
        format!("{} {} {} {}", text("kind"), text("name"), text("construct"), def["included"])
    });
    assert_eq!(
        declared.collect::<Vec<_>>(),
        [
            "module Components - true",
            "eventtype E - false",
            "interface EConsumer event_consumer false",
            "interface C component false",
            "interface W connector false",
            "interface HExplicit home_explicit false",
            "interface HImplicit home_implicit false",
            "interface H home false",
        ]
    );
}

#[test]
fn every_file_that_is_read_is_listed() {
    let folder = folder();
    let run = idlc(folder.path(), &["deps", "-I", "inc", "bank.idl", "a b.idl"], "");
    assert_eq!((run.code, run.out.as_str()), (0, "bank.idl\ninc/money.idl\na b.idl\n"));
    let run = idlc(folder.path(), &["deps", "--make", "-I", "inc", "bank.idl", "a b.idl"], "");
    let rule = "bank.rs: bank.idl \\\n  inc/money.idl \\\n  a\\ b.idl\n\nbank.idl:\n\ninc/money.idl:\n\na\\ b.idl:\n";
    assert_eq!((run.code, run.out.as_str()), (0, rule));
    let run = idlc(folder.path(), &["deps", "--make", "--target", "x$.rs", "a b.idl"], "");
    assert!(run.out.starts_with("x$$.rs: a\\ b.idl\n"), "{}", run.out);
    // What was read of wrong IDL; the exit code still says that it is wrong.
    let run = idlc(folder.path(), &["deps", "-I", "inc", "-"], "#include <money.idl>\ntypedef Nope T;");
    assert_eq!((run.code, run.out.as_str()), (1, "inc/money.idl\n"));
    assert!(run.err.contains("`Nope` is not declared"), "{}", run.err);
    let run = idlc(folder.path(), &["deps", "bad.idl", "-o", "bad.d"], "");
    assert_eq!((run.code, run.out.as_str()), (1, ""));
    assert_eq!(std::fs::read_to_string(folder.path().join("bad.d")).unwrap(), "bad.idl\n");
    // Standard input has no name to make one of.
    let run = idlc(folder.path(), &["deps", "--make", "-"], "struct S { long x; };");
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("--target"), "{}", run.err);
    let run = idlc(folder.path(), &["deps", "--make", "--target", "x.rs", "-"], "struct S { long x; };");
    assert_eq!((run.code, run.out.as_str()), (0, "x.rs:\n"));
}

#[test]
fn output_is_coloured_only_on_terminals_or_on_request() {
    let folder = folder();
    assert!(!idlc(folder.path(), &["check", "bad.idl"], "").err.contains('\x1b'));
    assert!(!idlc(folder.path(), &["check", "bad.idl", "--color=never"], "").err.contains('\x1b'));
    assert!(idlc(folder.path(), &["check", "bad.idl", "--color", "always"], "").err.contains('\x1b'));
}

#[test]
fn help_has_examples() {
    let folder = folder();
    for args in [&["--help"][..], &["check", "--help"], &["rust", "--help"]] {
        let run = idlc(folder.path(), args, "");
        assert_eq!(run.code, 0);
        assert!(run.out.contains("Examples:") && run.out.contains("Exit codes:"), "{}", run.out);
    }
}

/// The IDL files of Debian's `omniorb-idl`, written over thirty years. Every file is preprocessed and parsed;
/// the only allowed errors are unsupported parts of the language.
#[test]
fn the_files_of_omniorb_need_only_what_is_not_supported_yet() {
    let root = Path::new("/usr/share/idl/omniORB");
    let mut files = Vec::new();
    for folder in [root.to_owned(), root.join("COS")] {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        files.extend(
            entries
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|e| e == "idl")),
        );
    }
    if files.is_empty() {
        eprintln!("SKIPPED: no IDL files of omniORB (package omniorb-idl)");
        return;
    }
    let mut good = 0;
    for file in files {
        let name = file.to_string_lossy().into_owned();
        let folders = ["/usr/share/idl/omniORB", "/usr/share/idl/omniORB/COS"];
        // Without it, `orb.idl` leaves the interface repository out, which some files use.
        let repository = "ENABLE_CLIENT_IR_SUPPORT";
        let [first, second] = folders;
        let args = ["check", "--no-warnings", "-D", repository, "-I", first, "-I", second, &name];
        let run = idlc(root, &args, "");
        good += usize::from(run.code == 0);
        for line in run.err.lines().filter(|line| line.starts_with("error")) {
            let known = line.starts_with("error[unsupported]")
                // The package itself does not have these, and omniidl says so too.
                || line == "error[include]: there is no file `IOP.idl`"
                || ["Environment", "Current", "PolicyType", "Policy", "ServiceDetailType", "ServiceOption"]
                    .iter()
                    .any(|name| line == format!("error[not-found]: `{name}` is not declared in `CORBA`"));
            assert!(known, "{name}: {line}");
        }
    }
    assert!(good >= 55, "{good} files compile");
}

#[test]
fn text_of_the_idl_reaches_a_terminal_escaped() {
    let idl = "struct S\u{1b}]0;x\u{7} { long a\u{202e}; };\nconst string T = \"\u{1b}[5n\u{9b}5n\";\n\
               #include \"no\u{1b}[5n\u{202e}.idl\"\n#error \u{1b}[5n\u{2066}\ninterface I { void f(in Nope\u{1b}[5n x); };\n";
    let folder = folder();
    for form in ["human", "short", "json"] {
        let said = idlc(folder.path(), &["check", "--message-format", form, "-"], idl).err;
        let left: Vec<char> = said.chars().filter(|c| c.is_control() && *c != '\n').collect();
        assert!(left.is_empty() && !said.contains(['\u{202e}', '\u{2066}']), "{form}: {left:?}\n{said}");
    }
}

#[test]
fn the_model_is_a_tree_for_people() {
    let idl = "module M { const string T = \"x\"; enum E { a, b }; typedef sequence<E, 3> Es; exception X { long why; };
        struct S { Es es; }; union U switch (E) { case a: S s; default: long l; }; native N;
        abstract interface Base {}; interface I : Base { readonly attribute S all raises (X);
        oneway void poke(in U u); S get(in long at, out Es es) raises (X); };
        valuetype V { public long v; private S s; factory make(in long v); }; };";
    let folder = folder();
    let run = idlc(folder.path(), &["model", "--no-warnings", "-"], idl);
    assert_eq!(
        run.out,
        "\
module M
  const string T = \"x\"
  enum E
    a
    b
  typedef sequence<M::E, 3> Es
  exception X
    long why
  struct S
    M::Es es
  union U switch (M::E)
    case a: M::S s
    default: long l
  native N
  abstract interface Base
  interface I : M::Base
    readonly attribute M::S all raises (M::X)
    oneway void poke(in M::U u)
    M::S get(in long at, out M::Es es) raises (M::X)
  valuetype V
    public long v
    private M::S s
    factory make(in long v)
"
    );
}

#[test]
fn a_closed_pipe_ends_a_command_quietly() {
    let folder = folder();
    for args in [&["--help"][..], &["model", "-I", "inc", "bank.idl"], &["rust", "-I", "inc", "bank.idl"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_idlc"));
        let output = command.args(args).current_dir(folder.path()).stdout(writer).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.is_empty() && output.status.success(), "{args:?}: {said}");
    }
}
