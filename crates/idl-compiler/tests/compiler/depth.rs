//! Deeply nested input: a small thread has enough stack for the compiler, and for the code that walks a
//! model.

use idl_compiler::emit::{Options, emit};
use idl_compiler::{Source, compile};

/// Numbers of levels: typical, large but allowed, and too many. The last one is reduced to what fits into a
/// text of [`LONGEST`] bytes.
const LEVELS: [usize; 4] = [10, 60, 1_000, 1_000_000];

/// Half of the stack of threads of `std` and tokio. Tests are not optimized, so the frames of nested
/// modules and unions are several times as large as in a release build.
const STACK: usize = 1 << 20;

/// Maximum length of a text, in bytes.
const LONGEST: usize = 128 << 10;

/// A name; a prefix; the text that opens a level, with the level's number in place of `#`; the text of the
/// innermost level; the text that closes a level; a suffix.
const NESTS: [(&str, &str, &str, &str, &str, &str); 16] = [
    ("parentheses", "const long c = ", "(", "1", ")", ";"),
    ("signs", "const long c = ", "-(", "1", ")", ";"),
    ("operators", "const long c = ", "1|2^3&4<<0+5*(", "1", ")", ";"),
    ("sums", "const long c = ", "1+(", "1", ")", ";"),
    ("bounds", "typedef sequence<long, ", "(", "1", ")", "> T;"),
    ("constants of floats", "const double c = ", "-(1.0+", "1.0", ")", ";"),
    ("constants of fixed", "const fixed c = ", "-(1d+", "1d", ")", ";"),
    ("sequences", "typedef ", "sequence<", "long", ">", " T;"),
    ("maps", "typedef ", "map<long, ", "long", ">", " T;"),
    ("modules", "", "module M# { ", "const long c = 1;", " };", ""),
    ("template modules", "", "module M#<typename T> { ", "const long c = 1;", " };", "const long d = 1;"),
    ("structs", "", "struct S# { ", "long x;", "} m;", "typedef long T;"),
    ("unions", "", "union U# switch (long) { case 1: ", "long", " m; }", ";"),
    ("braces", "interface I ", "{", "", "}", ";"),
    ("conditions", "", "\n#if 1\n", "const long c = 1;", "\n#endif\n", ""),
    ("numbers of a condition", "\n#if ", "(", "1", ")", "\nconst long c = 1;\n#endif"),
];

/// Definitions of which each names the one before.
const CHAINS: [(&str, &str, &str); 12] = [
    ("typedefs", "typedef long T0;", "typedef T@ T#;"),
    ("sequences", "typedef long T0;", "typedef sequence<T@> T#;"),
    ("arrays", "typedef long T0;", "typedef T@ T#[1];"),
    ("members", "struct T0 { long x; };", "struct T# { T@ x; };"),
    ("cases", "struct T0 { long x; };", "union T# switch (long) { case 1: T@ x; };"),
    // Work that doubles with each level would not end.
    ("members twice", "struct T0 { long x; };", "struct T# { T@ x; T@ y; };"),
    ("arrays twice", "struct T0 { long x; };", "struct T# { T@ x[1]; T@ y[1]; };"),
    ("sequences twice", "struct T0 { string x; };", "struct T# { sequence<T@> x; sequence<T@> y; };"),
    ("cases twice", "struct T0 { long x; };", "union T# switch (long) { case 1: T@ x; case 2: T@ y; };"),
    ("interfaces", "interface T0 { void f0(); };", "interface T# : T@ { void f#(); };"),
    ("value types", "valuetype T0 { public long x0; };", "valuetype T# : T@ { public long x#; };"),
    ("constants", "const long T0 = 1;", "const long T# = T@;"),
];

fn on_a_small_stack(name: &str, f: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(name.into()).stack_size(STACK);
        thread.spawn_scoped(scope, f).unwrap().join().unwrap();
    });
}

/// A model and the code that is made of it, or errors that can be shown.
fn compiled(name: &str, text: &str) -> bool {
    let mut good = false;
    on_a_small_stack(name, || match compile(Source::text("deep.idl", text)) {
        Ok(model) => {
            let code = emit(&model, &Options::default()).map(|rust| rust.tokens.to_string());
            good = !code.unwrap().is_empty();
        }
        Err(errors) => {
            let shown = errors.render(false);
            assert!(!shown.is_empty() && shown.len() < 100 * text.len() + 100_000, "{name}: {}", shown.len());
        }
    });
    good
}

#[test]
fn nested_text_compiles_or_is_refused_within_a_small_stack() {
    for levels in LEVELS {
        for (name, before, open, inner, close, after) in NESTS {
            let levels = levels.min(LONGEST / (open.len() + close.len()));
            let mut text = before.to_owned();
            if levels <= 1_000 {
                (0..levels).for_each(|level| text.push_str(&open.replace('#', &level.to_string())));
            } else {
                text.push_str(&open.repeat(levels));
            }
            text.push_str(inner);
            text.push_str(&close.repeat(levels));
            text.push_str(after);
            let good = compiled(&format!("{name}, {levels}"), &text);
            assert!(!good || levels <= 64 || name == "conditions", "{name}, {levels}");
        }
    }
}

#[test]
fn chains_of_definitions_compile_or_are_refused_within_a_small_stack() {
    // A sequence and its alias are two levels.
    for levels in [10, 30, 200] {
        for (name, first, next) in CHAINS {
            let mut text = first.to_owned();
            for level in 1..levels {
                text.push_str(&next.replace('#', &level.to_string()).replace('@', &(level - 1).to_string()));
            }
            let good = compiled(&format!("chain of {name}, {levels}"), &text);
            assert_eq!(good, levels < 64 || name == "constants", "{name}, {levels}");
        }
    }
}

#[test]
fn instances_of_template_modules_compile_or_are_refused_within_a_small_stack() {
    // Each level of an instance is one of its module, and the body of the last nests further.
    for (levels, inside) in [(10, 10), (30, 30), (58, 2), (30, 60), (200, 10)] {
        let opened: String = (0..inside).map(|level| format!("struct S{level} {{ ")).collect();
        let mut text = format!(
            "module M0<typename T> {{ {opened} T thing; {}; }};",
            "} m;".repeat(inside).trim_end_matches(" m;")
        );
        for level in 1..levels {
            text += &format!("module M{level}<typename T> {{ module M{}<T> N{level}; }};", level - 1);
        }
        text += &format!("module M{}<long> All;", levels - 1);
        let good = compiled(&format!("instances, {levels} and {inside}"), &text);
        assert_eq!(good, levels + inside <= 60, "{levels} and {inside}");
    }
}
