//! Several IDL files: includes, macros, conditionals.
//!
//! Lines `//// NAME` separate the files; the first is `a.idl`. The compiler ends with a model, or with errors
//! that can be displayed. Generated code parses as Rust, with and without included definitions.
#![no_main]

mod small_stack;

use idl_compiler::emit::{Emitted, IncludePolicy, Options, emit};
use idl_compiler::{Compiler, Diagnostics, Memory};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| small_stack::run(1024, || fuzz(data)));

fn fuzz(data: &[u8]) {
    let mut files: Vec<(String, Vec<u8>)> = vec![("a.idl".to_owned(), Vec::new())];
    for line in data.split_inclusive(|octet| *octet == b'\n') {
        match line.strip_prefix(b"//// ") {
            Some(name) => files.push((String::from_utf8_lossy(name.trim_ascii()).into_owned(), Vec::new())),
            None => {
                if let Some((_, text)) = files.last_mut() {
                    text.extend_from_slice(line);
                }
            }
        }
    }
    let names: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
    let compiler = Compiler::default().files(Memory::from_iter(files)).include("").define("OUTSIDE=1");
    for count in [1, names.len()] {
        match compiler.compile_files(&names[..count]) {
            Err(errors) => shown(&errors),
            Ok(model) => {
                shown(model.warnings());
                for include_policy in [IncludePolicy::Compile, IncludePolicy::Extern] {
                    match emit(&model, &Options { include_policy, ..Options::default() }) {
                        Err(errors) => shown(&errors),
                        Ok(Emitted { tokens, .. }) => {
                            let text = tokens.to_string();
                            if let Err(error) = syn::parse2::<syn::File>(tokens) {
                                panic!("the generated code does not parse: {error}\n{text}");
                            }
                        }
                    }
                }
            }
        }
    }
}

fn shown(messages: &Diagnostics) {
    assert_eq!(messages.is_empty(), messages.render(false).is_empty(), "a message has a text");
}
