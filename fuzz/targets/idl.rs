//! IDL from hostile input: as text, and as Rust tokens.
//!
//! The compiler ends with a model, or with errors that can be displayed, after a number of steps that is
//! limited by the text's size. Generated code parses as Rust.
#![no_main]

mod small_stack;

use idl_compiler::emit::{Emitted, Options, emit};
use idl_compiler::{Compiler, Source, Work};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| small_stack::run(1024, || fuzz(data)));

fn fuzz(data: &[u8]) {
    compile(Source::from_bytes("fuzz.idl", data.to_vec()));
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(tokens) = text.parse()
    {
        compile(Source::tokens(tokens));
    }
}

/// Maximum number of steps for each token and each inherited member.
const STEPS: u64 = 100;

fn compile(source: Source) {
    for strict in [false, true] {
        let before = Work::of_current_thread();
        match Compiler::default().strict_names(strict).compile(source.clone()) {
            Err(errors) => assert!(!errors.render(false).is_empty(), "an error has a text"),
            Ok(model) => match emit(&model, &Options::default()) {
                Err(errors) => assert!(!errors.render(false).is_empty(), "an error has a text"),
                Ok(Emitted { tokens, .. }) => {
                    let text = tokens.to_string();
                    if let Err(error) = syn::parse2::<syn::File>(tokens) {
                        panic!("the generated code does not parse: {error}\n{text}");
                    }
                }
            },
        }
        let work = Work::of_current_thread().since(before);
        assert!(work.steps <= STEPS * (work.tokens + work.inherited), "{work:?}");
    }
}
