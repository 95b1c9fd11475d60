//! Prints the Rust that an IDL file becomes: `cargo run -p idl-compiler --example expand -- file.idl`.

use std::process::ExitCode;

use idl_compiler::emit::{Options, emit};
use idl_compiler::{Source, compile};

fn main() -> ExitCode {
    match run() {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, String> {
    let path = std::env::args().nth(1).ok_or("usage: expand FILE.idl")?;
    let octets = std::fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
    let model = compile(Source::octets(path, octets)).map_err(|errors| errors.render(true))?;
    if !model.warnings().is_empty() {
        eprintln!("{}", model.warnings().render(true));
    }
    let tokens = emit(&model, &Options::default()).map_err(|errors| errors.render(true))?;
    let file = syn::parse2(tokens).map_err(|error| format!("the generated code does not parse: {error}"))?;
    Ok(prettyplease::unparse(&file))
}
