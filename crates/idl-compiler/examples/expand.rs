//! Prints the Rust that an IDL file becomes: `cargo run -p idl-compiler --example expand -- file.idl`.

use std::process::ExitCode;

use idl_compiler::emit::{Options, emit};
use idl_compiler::{Compiler, Disk};

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
    let compiler = Compiler::default().files(Disk::new());
    let model = compiler.compile_files([path]).map_err(|errors| errors.render(true))?;
    if !model.warnings().is_empty() {
        eprintln!("{}", model.warnings().render(true));
    }
    let tokens = emit(&model, &Options::default()).map_err(|errors| errors.render(true))?;
    let file = syn::parse2(tokens).map_err(|error| format!("the generated code does not parse: {error}"))?;
    Ok(prettyplease::unparse(&file))
}
