//! The `idl!` macro of the zorb ORB, which calls the [`idl_compiler`]. Use it as `zorb::idl!`.

mod input;

use idl_compiler::emit::{self, OptionProblem};
use idl_compiler::{Compiler, Disk, Model, Source, is_standard_file};
use proc_macro2::TokenStream;
use quote::quote;

use input::{Idl, Input};

/// Generates Rust types, references and servant traits from OMG IDL.
///
/// The IDL is written in the macro, in a string or in files. Relative paths start at the directory of the
/// crate's `Cargo.toml`. The macro can be called in a module or in a function, which then contains the Rust
/// items for the declarations at the top level of the IDL. A string can contain IDL that Rust's lexer
/// rejects. `docs/IDL-MAPPING.md` describes the mapping of each construct.
///
/// ```text
/// idl! { module Bank { interface Account { void deposit(in double amount); }; }; }
/// idl!(r#"const wstring GREETING = L"hello";"#);      // a string with `;` is IDL
/// idl!("idl/bank.idl");                               // any other string is a path
/// idl!("idl/bank.idl", "idl/shop.idl", include = ["idl", "vendor/idl"], define = ["LIMIT=5"]);
/// idl!("<CosEventComm.idl>", "idl/bank.idl");         // angle brackets: a standard file of the compiler
/// idl!(file = "idl/bank.idl", rename("Bank::Account::set_owner" = "assign_owner"));
/// idl!("idl/bank.idl", extern("::Common" = ::common::common));  // Rust path for included IDL
/// idl! { non_nil("Bank::*"); module Bank { /* ... */ }; }   // options, a semicolon, IDL
/// ```
///
/// Options:
///
/// | option | meaning |
/// |---|---|
/// | `file = "path"` | the IDL is in this file |
/// | `include = ["folder", ...]` | search path of `#include`, relative to the directory of `Cargo.toml` |
/// | `define = ["NAME=VALUE", ...]` | macros of the preprocessor |
/// | `extern("::M" = ::path, ...)` | the Rust path of an included module or definition, for which no code is generated |
/// | `include_policy = extern` | included definitions are not generated; the default is `compile` |
/// | `rename("M::I::op" = "name", ...)` | other Rust names for definitions, members (`M::S::member`), enumerators and parameters (`M::I::op::param`) |
/// | `non_nil("M::*", ...)` | references that are never nil: `IRef` in place of `Option<IRef>` |
/// | `derive(PartialOrd, serde::Serialize, "M::*" = Ord, ...)` | additional derives of all structs, exceptions, unions, enums and other data types, or of the named ones |
/// | `ami`, `ami("M::I", "M::*", ...)` | asynchronous calls (`sendc_` methods) and traits for their reply handlers, for all interfaces or for these |
/// | `default_bodies`, `default_bodies("M::I", "M::I::op", ...)` | methods that servants need not implement, all or these: they raise `NO_IMPLEMENT` |
/// | `interpretive`, `interpretive("M::*", ...)` | all types, or these, are marshalled by an interpreter instead of generated code; for an interface, this applies to the values in its calls |
/// | `adaptive("M::*", ..., uses = 100)` | these types, or all if none is named, are marshalled by an interpreter for this number of uses, and by generated code afterwards |
/// | `no_warnings` | suppresses warnings of the IDL |
/// | `uses = "name"` | `name()` returns the use counts of all adaptive types |
/// | `crate = ::path` | path of the crate `zorb` |
///
/// # Errors
/// All errors in the IDL are reported together, as compile errors at their tokens.
///
/// # Warnings
/// Warnings about the IDL appear as rustc's warnings about uses of a deprecated constant `IDL_WARNING`,
/// because stable Rust offers macros no other warnings. Warnings that other IDL compilers may reject the IDL
/// appear only for IDL in files, because those compilers cannot read IDL in Rust. `#[allow(deprecated)]`
/// before a module with the macro hides warnings, as does the option `no_warnings`.
#[proc_macro]
pub fn idl(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand(input.into()).unwrap_or_else(|errors| errors).into()
}

/// Expands the macro. Errors are tokens too: calls of `compile_error!`.
fn expand(tokens: TokenStream) -> Result<TokenStream, TokenStream> {
    let input = Input::parse(tokens).map_err(|error| error.to_compile_error())?;
    let base = std::env::var_os("CARGO_MANIFEST_DIR").map(std::path::PathBuf::from).unwrap_or_default();
    let mut compiler = Compiler::default().files(Disk::at(&base));
    for folder in &input.include {
        compiler = compiler.include(folder);
    }
    for define in &input.define {
        compiler = compiler.define(define);
    }
    let model = match &input.idl {
        Idl::Tokens(tokens) => compiler.compile(Source::tokens(tokens.clone())),
        Idl::Text(literal) => match Source::literal(literal) {
            Some(source) => compiler.compile(source),
            None => return Err(error_at(literal.span(), "IDL text must be a string literal")),
        },
        Idl::Files(files) => {
            let errors: TokenStream =
                files.iter().filter_map(|(literal, path)| read_error(&base, literal.span(), path)).collect();
            if !errors.is_empty() {
                return Err(errors);
            }
            compiler.compile_files(files.iter().map(|(_, path)| path))
        }
    };
    let model = model.map_err(|errors| errors.to_compile_errors())?;
    let problems = input.options.check(&model);
    if !problems.is_empty() {
        return Err(problems.into_iter().map(|problem| option_error(&input, problem)).collect());
    }
    let emitted = emit::emit(&model, &input.options).map_err(|errors| errors.to_compile_errors())?;
    let rebuild_triggers = rebuild_triggers(&model);
    // Other IDL compilers read only files, so warnings about portability are useless for other IDL.
    let with_portability = matches!(input.idl, Idl::Files(_));
    let warnings = [model.warnings(), &emitted.warnings]
        .map(|warnings| (!input.no_warnings).then(|| warnings.to_warnings(with_portability)));
    let output = emitted.tokens;
    Ok(quote!(#output #rebuild_triggers #(#warnings)*))
}

fn read_error(base: &std::path::Path, span: proc_macro2::Span, path: &str) -> Option<TokenStream> {
    if is_standard_file(path.as_ref()) {
        return None;
    }
    let error = std::fs::metadata(base.join(path)).err()?;
    let hint = "relative paths start at the directory of Cargo.toml; a string is IDL if it contains `;`, or else a path";
    Some(error_at(span, &format!("cannot read `{path}`: {error}\nnote: {hint}")))
}

/// Returns tokens that make cargo compile the crate again when a file that was read changes.
fn rebuild_triggers(model: &Model) -> TokenStream {
    let paths = model.sources().paths().into_iter().map(|path| path.to_string_lossy().into_owned());
    quote!(#(const _: &[::core::primitive::u8] = ::core::include_bytes!(#paths);)*)
}

/// Returns the error about an invalid option, located at its name or value.
fn option_error(input: &Input, problem: OptionProblem) -> TokenStream {
    let (options, spans) = (&input.options, &input.spans);
    let text = || problem.describe(options).1;
    let unmatched = |spans: &[proc_macro2::Span], index: usize, name: Option<&String>, kinds: &str| {
        let name = name.map_or("", String::as_str);
        (spans.get(index).copied(), format!("`{name}` names no {kinds}"))
    };
    const TYPES: &str = "struct, exception, union or enum";
    let (span, text) = match problem {
        OptionProblem::UnknownName(index) => {
            let name = options.rename.get(index).map_or("", |(name, _)| name);
            let text = format!("`{name}` names nothing in this IDL that has a Rust name");
            (spans.rename.get(index).map(|(idl, _)| *idl), text)
        }
        OptionProblem::NotAnIdentifier(index) => (spans.rename.get(index).map(|(_, rust)| *rust), text()),
        OptionProblem::UnmatchedExternal(index) => (spans.external.get(index).copied(), text()),
        OptionProblem::UnmatchedDerive(index) => {
            let kinds = "type that can derive traits";
            unmatched(&spans.derive, index, options.derive.get(index).map(|(name, _)| name), kinds)
        }
        OptionProblem::UnmatchedDefaultBody(index) => {
            let kinds = "interface, operation or attribute";
            unmatched(&spans.default_bodies, index, options.default_bodies.get(index), kinds)
        }
        OptionProblem::UnmatchedAmi(index) => {
            unmatched(&spans.ami, index, options.ami.get(index), "interface for remote objects")
        }
        OptionProblem::UnmatchedInterpretive(index) => {
            let kinds = "struct, exception, union, enum or interface";
            unmatched(&spans.interpretive, index, options.interpretive.get(index), kinds)
        }
        OptionProblem::UnmatchedAdaptive(index) => {
            unmatched(&spans.adaptive, index, options.adaptive.get(index).map(|(name, _)| name), TYPES)
        }
        OptionProblem::ZeroUses(index) => {
            (spans.adaptive.get(index).copied(), "`uses` must be at least 1".to_owned())
        }
        OptionProblem::InvalidUseCountsFn => (spans.uses, text()),
        OptionProblem::RelativeRuntime => (
            spans.runtime,
            "the path of the crate must not start with `self` or `super`: use `::` or `crate`".to_owned(),
        ),
    };
    error_at(span.unwrap_or(proc_macro2::Span::call_site()), &text)
}

fn error_at(span: proc_macro2::Span, text: &str) -> TokenStream {
    syn::Error::new(span, text).to_compile_error()
}
