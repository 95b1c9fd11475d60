//! The work of idlc grows linearly with its text. cachegrind counts the instructions of whole runs, at one
//! size and at twice that size. Nothing is timed. Without valgrind the test is skipped with a message.
//!
//! A run under valgrind takes 1.5 s, whatever its text. Therefore the suite counts the shapes of [`COMMON`]
//! only, and `ZORB_TESTS=all` counts all of them (as in `.ci/full`).

use std::path::Path;
use std::process::{Command, Stdio};

#[path = "../../../idl-compiler/tests/compiler/common/corpus.rs"]
mod corpus;
#[path = "../../../idl-compiler/tests/compiler/common/shapes.rs"]
mod shapes;

/// A text of `n` parts of some kind, each of which might make the others dearer.
type Shape = (&'static str, &'static [&'static str], fn(usize) -> String);

fn each(n: usize, part: impl Fn(usize) -> String) -> String {
    (0..n).map(part).collect()
}

const SHAPES: &[Shape] = &[
    ("a corpus", &["check"], |n| corpus::idl(2 * n)),
    ("a model", &["model", "--json", "-o", "out"], |n| corpus::idl(n)),
    ("names of one scope, in one line", &["check"], |n| each(n, |i| format!("struct S{i} {{ long a; }}; "))),
    ("derived interfaces", &["check"], |n| {
        format!(
            "interface B {{ void f(); }};{}",
            each(n, |i| format!("interface I{i} : B {{ void g(); }};\n"))
        )
    }),
    ("cases of one union", &["check"], |n| {
        let cases = each(n, |i| format!("case {i}: long m{i};\n"));
        format!("union U switch (long) {{ {cases} }};")
    }),
    ("enumerators", &["check"], |n| format!("enum E {{ first{} }};", each(n, |i| format!(",\ne{i}")))),
    ("a sum", &["check"], |n| format!("const long C = 1{};", each(n, |_| " + 1".to_owned()))),
    ("values that hold each other", &["check"], |n| {
        let part = |i| format!("valuetype V{i} {{ public V{} next; public V0 first; }};\n", (i + 1) % n);
        format!("{}{}", each(n, |i| format!("valuetype V{i};\n")), each(n, part))
    }),
    ("structs that hold themselves", &["check"], |n| {
        each(n, |i| format!("struct S{i}; typedef sequence<S{i}> L{i}; struct S{i} {{ L{i} inner; }};\n"))
    }),
    ("repository ids", &["check"], |n| {
        each(n, |i| format!("interface I{i} {{ }};\n#pragma version I{i} 2.{i}\n"))
    }),
    ("warnings", &["check"], |n| each(n, |i| format!("module M{i} {{ struct S {{ string s; }}; }};\n"))),
    ("errors", &["check", "--message-format", "json"], |n| each(n, |i| format!("typedef Nope{i} T{i};\n"))),
    ("uses of macros", &["check"], |n| {
        format!(
            "#define PAIR(x) struct x {{ long x##1; long x##2; }};\n{}",
            each(n, |i| format!("PAIR(S{i})\n"))
        )
    }),
    ("macros", &["check"], |n| each(n, |i| format!("#define M{i} {i}\n"))),
    ("conditions", &["check"], |n| each(n, |_| "#if 1\n#endif\n".to_owned())),
    ("comments", &["check"], |n| {
        format!("{}struct S {{ long a; }};", each(n, |i| format!("/// Line {i}.\n")))
    }),
];

/// Shapes that together reach every stage of the compiler, two of them its resolver by the dearest ways.
const COMMON: &[&str] = &["a corpus", "values that hold each other", "uses of macros", "errors"];

/// The shapes to count, those among them that the compiler counts by its own steps.
fn shapes() -> Vec<Shape> {
    let all = std::env::var_os("ZORB_TESTS").is_some_and(|tests| tests == "all");
    let shared = shapes::SHAPES.iter().map(|(name, shape)| (*name, &["check"][..], *shape));
    let shapes = SHAPES.iter().copied().chain(shared);
    let shapes: Vec<_> = shapes.filter(|(name, ..)| all || COMMON.contains(name)).collect();
    assert!(shapes.len() >= COMMON.len(), "each of {COMMON:?} is a shape");
    shapes
}

/// Instructions of a run.
fn instructions(folder: &Path, args: &[&str]) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(env!("CARGO_BIN_EXE_idlc"))
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let counted = text.lines().find(|line| line.contains(" refs: ")).and_then(|line| line.rsplit(' ').next());
    let number = counted.and_then(|number| number.replace(',', "").parse().ok());
    number.unwrap_or_else(|| panic!("valgrind says {text}"))
}

fn count(args: &[&str], text: String) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("text.idl"), text).unwrap();
    instructions(folder.path(), &[args, &["text.idl"][..]].concat())
}

/// It takes more than ten seconds: callgrind executes a compiler for each text and each of its sizes.
#[test]
fn work_grows_as_the_text_does() {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("SKIPPED: no valgrind, instructions are not counted");
        return;
    }
    let start = count(&["check"], String::new());
    let grown = |(name, args, shape): &Shape| {
        let (once, twice) = (count(args, shape(SIZE)), count(args, shape(2 * SIZE)));
        println!("{name:32} {once:12} {twice:12}");
        // A tenth more than twice as much, beyond what each run costs.
        let linear = twice - start <= (once - start) * 2 * 11 / 10;
        (!linear)
            .then(|| format!("{name}: {once} instructions, {twice} for twice the text, {start} for none\n"))
    };
    // Counts do not jitter, whatever runs beside them.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (grown, shapes) = (&grown, &shapes());
    let wrong: String = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|first| {
                scope.spawn(move || {
                    shapes.iter().skip(first).step_by(threads).filter_map(grown).collect::<String>()
                })
            })
            .collect();
        parts.into_iter().map(|part| part.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{wrong}");
}

/// Parts of the smaller text: more than the messages that are shown.
const SIZE: usize = 220;
