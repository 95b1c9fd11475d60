//! Malicious input. Each input ends in an error that says what is wrong. It costs memory and work in
//! proportion to its size, or up to a documented limit. The allocator counts both; nothing is timed.

use std::collections::BTreeSet;

use allocation_counter::{AllocationInfo, measure};
use idl_compiler::{Compiler, Diagnostics, Memory, Severity, Source};

/// What is said about a text, and what it cost to find that and to show it.
fn answer(compiler: &Compiler, text: &[u8]) -> (Option<Diagnostics>, AllocationInfo) {
    let mut errors = None;
    let cost = measure(|| {
        errors = compiler.compile(Source::from_bytes("bad.idl", text.to_vec())).err();
        if let Some(errors) = &errors {
            std::hint::black_box(errors.render(false).len());
        }
    });
    (errors, cost)
}

/// A kind of bad input, in any size.
struct Bad {
    name: &'static str,
    /// Builds a text of about this many bytes.
    text: fn(usize) -> Vec<u8>,
    /// The codes of the expected errors, in order and each once. Empty if the text is legal at any length.
    codes: &'static [&'static str],
}

fn times(part: &str, size: usize) -> String {
    part.repeat(size / part.len())
}

/// Pseudo-random bytes, the same in each run.
fn noise(size: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(size).collect()
}

const GOOD: &str =
    "module M { struct S { long a; sequence<string<5>, 3> b; }; interface I { S f(in S given); }; };\n";

/// All of them; each grows with its size.
const BAD: &[Bad] = &[
    // Unbalanced.
    Bad { name: "closing braces", text: |n| "}".repeat(n).into(), codes: &["syntax"] },
    Bad { name: "opening braces", text: |n| "{".repeat(n).into(), codes: &["syntax"] },
    Bad { name: "opened modules", text: |n| times("module M { ", n).into(), codes: &["too-deep"] },
    Bad {
        name: "more closed than opened",
        text: |n| times("module M { typedef long T; }; };\n", n).into(),
        codes: &["syntax"],
    },
    Bad {
        name: "opened comment",
        text: |n| format!("{GOOD}/*{}", "* ".repeat(n / 2)).into(),
        codes: &["unterminated"],
    },
    Bad {
        name: "opened text",
        text: |n| format!("const string S = \"{}", "x".repeat(n)).into(),
        codes: &["unterminated"],
    },
    Bad { name: "opened conditions", text: |n| times("#if 1\n", n).into(), codes: &["conditional"] },
    Bad { name: "closed conditions", text: |n| times("#endif\n", n).into(), codes: &["conditional"] },
    // Cut.
    Bad {
        name: "cut",
        text: |n| format!("/* {} */ module M {{ struct T {{ long", "x".repeat(n)).into(),
        codes: &["syntax"],
    },
    // Binary.
    Bad { name: "noise", text: noise, codes: &["bad-identifier", "bad-literal", "stray-character"] },
    Bad { name: "NUL", text: |n| vec![0; n], codes: &["stray-character"] },
    Bad { name: "octets above 127", text: |n| vec![0xff; n], codes: &["bad-identifier", "syntax"] },
    // One endless line.
    Bad { name: "errors in one line", text: |n| times("typedef Nope T; ", n).into(), codes: &["not-found"] },
    Bad { name: "one name", text: |n| format!("typedef {} T;", "x".repeat(n)).into(), codes: &["not-found"] },
    Bad {
        name: "one number",
        text: |n| format!("const long X = {};", "9".repeat(n)).into(),
        codes: &["bad-literal"],
    },
    Bad {
        name: "one fixed-point number",
        text: |n| format!("const fixed X = {}.5d;", "9".repeat(n)).into(),
        codes: &["bad-literal"],
    },
    Bad {
        name: "one exponent",
        text: |n| format!("const double X = 1e{};", "9".repeat(n)).into(),
        codes: &["bad-literal"],
    },
    Bad {
        name: "one scoped name",
        text: |n| format!("typedef A{} T;", times("::A", n)).into(),
        codes: &["not-found"],
    },
    Bad {
        name: "one directive",
        text: |n| format!("#{}", "x".repeat(n)).into(),
        codes: &["unknown-directive"],
    },
    // Deep.
    Bad {
        name: "deep modules",
        text: |n| format!("{}const long X = 1;{}", times("module M { ", n), times("}; ", n)).into(),
        codes: &["too-deep"],
    },
    Bad {
        name: "deep sequences",
        text: |n| format!("typedef {}long{} T;", times("sequence<", n), ">".repeat(n / 9)).into(),
        codes: &["too-deep"],
    },
    Bad {
        name: "deep structs",
        text: |n| format!("{}long x;{}", times("struct S { ", n), times("} s; ", n)).into(),
        codes: &["too-deep"],
    },
    Bad {
        name: "deep expression",
        text: |n| format!("const long X = {}1{};", "(".repeat(n), ")".repeat(n)).into(),
        codes: &["too-deep"],
    },
    Bad {
        name: "deep signs",
        text: |n| format!("const long X = {}1;", "-".repeat(n)).into(),
        codes: &["too-deep"],
    },
    Bad {
        name: "deep condition",
        text: |n| format!("#if {}1{}\n#endif\n", "(".repeat(n), ")".repeat(n)).into(),
        codes: &["bad-condition"],
    },
    Bad { name: "deep annotations", text: |n| times("@a(", n).into(), codes: &["syntax"] },
    Bad {
        name: "types built on each other",
        text: |n| lines(n, "typedef long T0;", |i| format!("struct T{i} {{ T{} a; }};", i - 1)),
        codes: &["too-deep"],
    },
    Bad {
        name: "bases of bases",
        text: |n| lines(n, "interface I0 { };", |i| format!("interface I{i} : I{} {{ }};", i - 1)),
        codes: &["too-deep"],
    },
    // Macros that bring each other, or themselves.
    Bad {
        name: "macros of macros",
        text: |n| {
            lines(n, "#define M0 Nope", |i| format!("#define M{i} M{} M{}", i - 1, i - 1))
                .into_iter()
                .chain(*b"typedef M30 T;")
                .collect()
        },
        codes: &["too-large"],
    },
    // Huge values.
    Bad {
        name: "huge shifts",
        text: |n| lines(n, "", |i| format!("const long X{i} = 1 << 99999999;")),
        codes: &["bad-shift"],
    },
    Bad {
        name: "huge bounds",
        text: |n| lines(n, "", |i| format!("typedef sequence<long, 99999999999> X{i};")),
        codes: &["out-of-range"],
    },
    Bad {
        name: "huge arrays",
        text: |n| lines(n, "", |i| format!("typedef long X{i}[65536][65536];")),
        codes: &["too-large"],
    },
    Bad {
        name: "many dimensions",
        text: |n| format!("typedef long X{};", times("[2]", n)).into(),
        codes: &["too-large"],
    },
];

/// A first line, and so many more that the text has about this size.
fn lines(size: usize, first: &str, line: impl Fn(usize) -> String) -> Vec<u8> {
    let mut text = format!("{first}\n");
    for number in 1.. {
        if text.len() >= size {
            break;
        }
        text.push_str(&line(number));
        text.push('\n');
    }
    text.into()
}

/// Maximum memory of a compilation, in bytes, that does not grow with its text: 200 messages with their
/// excerpts.
const HELD: u64 = 4 << 20;
/// Maximum memory for each byte of the text: the text itself, a token per byte, and the results of these
/// tokens.
const HELD_EACH: u64 = 400;
/// Memory of 2^20 tokens from macros, the maximum number that macros may produce.
const HELD_BY_MACROS: u64 = 96 << 20;

/// The kinds of errors among some findings.
fn codes(errors: &Diagnostics) -> BTreeSet<&'static str> {
    let errors =
        errors.iter().filter(|error| error.severity == Severity::Error && error.code != "more-errors");
    errors.map(|error| error.code).collect()
}

#[test]
fn every_bad_input_is_a_bounded_error() {
    let mut wrong = Vec::new();
    for bad in BAD {
        let bomb = if bad.name.contains("macros") { HELD_BY_MACROS } else { 0 };
        let mut spent = Vec::new();
        for size in [100, 1 << 10, 1 << 14, 1 << 16] {
            let text = (bad.text)(size);
            let (errors, cost) = answer(&Compiler::default(), &text);
            let held = bomb + HELD + HELD_EACH * text.len() as u64;
            if cost.bytes_max > held {
                wrong.push(format!("{}: holds {} octets for {}", bad.name, cost.bytes_max, text.len()));
            }
            let messages = errors.as_ref().map_or(0, Diagnostics::len);
            if messages > 401 {
                wrong.push(format!("{}: {messages} messages", bad.name));
            }
            let codes: Vec<&str> = errors.iter().flat_map(codes).collect();
            if size >= 1 << 14 && codes != bad.codes {
                wrong.push(format!("{}: {codes:?}", bad.name));
            }
            spent.push((text.len() as u64, cost));
        }
        // From one size to the next work grows as the text does; the first 200 messages come earlier.
        if let [.., (less, before), (more, after)] = *spent.as_slice() {
            for (what, before, after) in [
                ("octets", before.bytes_total, after.bytes_total),
                ("allocations", before.count_total, after.count_total),
            ] {
                if after > before * more / less * 3 / 2 {
                    wrong
                        .push(format!("{}: {before} {what} for {less} octets, {after} for {more}", bad.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_text_may_end_anywhere() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ui/whole_language_ok.idl");
    let text = std::fs::read(path).expect("a readable file");
    assert!(text.len() > 1000, "it has the whole language");
    let mut bad = 0;
    for end in (0..text.len()).step_by(7) {
        let cut = &text[..end];
        let (errors, cost) = answer(&Compiler::default(), cut);
        assert!(cost.bytes_max < HELD + HELD_EACH * end as u64, "{} octets for {end}", cost.bytes_max);
        let Some(errors) = errors else { continue };
        bad += 1;
        // What is missing at the end is all that is wrong.
        let count = errors.iter().filter(|error| error.severity == Severity::Error).count();
        assert!((1..=3).contains(&count), "cut at {end}: {}", errors.render(false));
    }
    assert!(bad > text.len() / 14, "most ends are none: {bad}");
}

#[test]
fn files_that_include_each_other_are_a_bounded_error() {
    let padding = format!("//{}\n", "x".repeat(1 << 20));
    for (name, text, code) in [
        ("a circle", "#include \"b.idl\"\nstruct S { long x; };\n".to_owned(), "include-depth"),
        (
            "a tree",
            "#if __INCLUDE_LEVEL__ < 60\n#include \"a.idl\"\n#include \"a.idl\"\n#endif\n".to_owned(),
            "too-large",
        ),
        (
            "a tree of large files",
            format!("#if __INCLUDE_LEVEL__ < 60\n#include \"a.idl\"\n#include \"b.idl\"\n#endif\n{padding}"),
            "too-large",
        ),
    ] {
        let files = Memory::from_iter([("a.idl", text.clone()), ("b.idl", text.replace("b.idl", "a.idl"))]);
        let compiler = Compiler::default().files(files);
        let mut found = None;
        let cost = measure(|| found = compiler.compile_files(["a.idl"]).err());
        let found = found.expect("errors");
        assert_eq!(codes(&found).into_iter().collect::<Vec<_>>(), [code], "{name}");
        let held = HELD_FILES + 8 * text.len() as u64;
        assert!(cost.bytes_max < held, "{name}: {} octets", cost.bytes_max);
    }
}

/// What the notes of 10,000 openings take.
const HELD_FILES: u64 = 8 << 20;

#[test]
fn errors_beyond_those_that_are_shown_are_counted() {
    let text: String = (0..1_000).map(|n| format!("typedef Nope{n} T{n};\n")).collect();
    let errors = idl_compiler::compile(Source::text("many.idl", text)).expect_err("errors");
    assert_eq!(errors.len(), 201);
    let last = errors.iter().last().expect("the last");
    insta::assert_snapshot!("many_errors", errors.render_one(last, false));
}
