//! The `idl!` macro of the zorb ORB: a thin shell around [`idl_compiler`]. Use it as `zorb::idl!`.

mod input;

use idl_compiler::emit::{self, OptionProblem};
use idl_compiler::{Source, compile};
use proc_macro2::TokenStream;
use quote::quote;

use input::{Idl, Input};

/// Rust types, references and servant traits from OMG IDL.
///
/// The IDL stands in the macro, in a string or in a file; relative paths start at the directory of the crate's
/// `Cargo.toml`. What the IDL declares at file level is re-exported where the macro stands, in a module or in a
/// function. `docs/IDL-MAPPING.md` says what each construct becomes.
///
/// ```text
/// idl! { module Bank { interface Account { void deposit(in double amount); }; }; }
/// idl!(r#"const wstring GREETING = L"hello";"#);      // text that Rust's lexer refuses; a string with `;` is text,
/// idl!("idl/bank.idl");                               // any other a path
/// idl!(file = "idl/bank.idl", rename("Bank::Account::set_owner" = "assign_owner"));
/// idl! { non_nil("Bank::*"); module Bank { /* ... */ }; }   // options, a semicolon, IDL
/// ```
///
/// Options:
///
/// | option | meaning |
/// |---|---|
/// | `file = "path"` | the IDL is in this file |
/// | `rename("M::I::op" = "name", ...)` | Rust names in place of the converted ones; members, enumerators and parameters are named through what they belong to |
/// | `non_nil("M::*", ...)` | places where references are never nil: `IRef` in place of `Option<IRef>` |
/// | `crate = ::path` | where the crate `zorb` is |
///
/// # Errors
/// Everything that is wrong with the IDL is a compile error at its token, all of them at once.
#[proc_macro]
pub fn idl(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand(input.into()).unwrap_or_else(|errors| errors).into()
}

/// The output, or the errors as tokens.
fn expand(tokens: TokenStream) -> Result<TokenStream, TokenStream> {
    let input = Input::parse(tokens).map_err(|error| error.to_compile_error())?;
    let (source, rebuild) = match &input.idl {
        Idl::Tokens(tokens) => (Source::tokens(tokens.clone()), TokenStream::new()),
        Idl::Text(literal) => match Source::literal(literal) {
            Some(source) => (source, TokenStream::new()),
            None => return Err(error_at(literal.span(), "IDL text stands in a string")),
        },
        Idl::File(literal, path) => read(literal.span(), path)?,
    };
    let model = compile(source).map_err(|errors| errors.to_compile_errors())?;
    let problems = input.options.check(&model);
    if !problems.is_empty() {
        return Err(problems.into_iter().map(|problem| option_error(&input, problem)).collect());
    }
    let output = emit::emit(&model, &input.options).map_err(|errors| errors.to_compile_errors())?;
    Ok(quote!(#output #rebuild))
}

/// The content of a file, and tokens that make the compiler look at the file again when it changes.
fn read(span: proc_macro2::Span, path: &str) -> Result<(Source, TokenStream), TokenStream> {
    let base = std::env::var_os("CARGO_MANIFEST_DIR").map(std::path::PathBuf::from).unwrap_or_default();
    let full = base.join(path);
    let octets = std::fs::read(&full).map_err(|error| {
        let hint =
            "paths start at the directory of Cargo.toml; a string with a `;` in it is IDL, any other a path";
        error_at(span, &format!("cannot read `{path}`: {error}\nnote: {hint}"))
    })?;
    let text = full.to_string_lossy();
    let rebuild = quote!(
        const _: &[::core::primitive::u8] = ::core::include_bytes!(#text);
    );
    Ok((Source::octets(path, octets), rebuild))
}

fn option_error(input: &Input, problem: OptionProblem) -> TokenStream {
    let entry = |index: usize| input.options.rename.get(index).cloned().unwrap_or_default();
    let (index, text) = match problem {
        OptionProblem::UnknownName(index) => {
            (index, format!("`{}` names nothing in this IDL that has a Rust name", entry(index).0))
        }
        OptionProblem::NotAnIdentifier(index) => {
            (index, format!("`{}` is not an identifier", entry(index).1))
        }
    };
    let spans = input.rename_spans.get(index).copied();
    let span = match (problem, spans) {
        (OptionProblem::UnknownName(_), Some((idl, _))) => idl,
        (OptionProblem::NotAnIdentifier(_), Some((_, rust))) => rust,
        (_, None) => proc_macro2::Span::call_site(),
    };
    error_at(span, &text)
}

fn error_at(span: proc_macro2::Span, text: &str) -> TokenStream {
    syn::Error::new(span, text).to_compile_error()
}
