//! The work of the compiler grows linearly: it counts its own steps, for texts of shapes that were once
//! expensive.

use idl_compiler::emit::{Options, emit};
use idl_compiler::{Source, Work, compile};

use crate::common::shapes;

/// The most steps for each token and each inherited member.
const MOST: u64 = 30;

/// The work of checking a text and writing its Rust.
fn work(text: &str) -> Work {
    let before = Work::of_current_thread();
    let model = compile(Source::text("work.idl", text)).unwrap_or_else(|errors| panic!("{errors}"));
    drop(emit(&model, &Options::default()).unwrap_or_else(|errors| panic!("{errors}")));
    Work::of_current_thread().since(before)
}

#[test]
fn steps_grow_as_tokens_do_for_each_shape() {
    let mut wrong = Vec::new();
    for (name, shape) in shapes::SHAPES {
        let (small, large) = (work(&shape(60)), work(&shape(240)));
        println!("{name:52} {small:?} {large:?}");
        let grown = large.steps * 10 > small.steps * 44;
        if grown || large.steps > MOST * (large.tokens + large.inherited) {
            wrong.push(format!("{name}: {small:?}, for four times the text {large:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The UI tests' texts, right and wrong, and the standard's own files. Together they use the whole language.
#[test]
fn no_text_is_dear() {
    let mut wrong = Vec::new();
    for directory in ["tests/ui", "idl"] {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/").to_owned() + directory;
        for file in std::fs::read_dir(directory).unwrap() {
            let path = file.unwrap().path();
            if path.extension() != Some("idl".as_ref()) {
                continue;
            }
            let text = std::fs::read(&path).unwrap();
            let before = Work::of_current_thread();
            if let Ok(model) = compile(Source::from_bytes("work.idl", text)) {
                drop(emit(&model, &Options::default()));
            }
            let work = Work::of_current_thread().since(before);
            if work.steps > MOST * (work.tokens + work.inherited) {
                wrong.push(format!("{}: {work:?}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_same_text_costs_the_same_steps() {
    let (_, shape) = shapes::SHAPES[0];
    assert_eq!(work(&shape(20)), work(&shape(20)));
}
