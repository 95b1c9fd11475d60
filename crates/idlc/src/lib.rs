//! `idlc`: checks and formats OMG IDL, and shows the resulting Rust, model and list of files. The library is
//! for programs that include these commands.

mod args;
mod breaking;
mod deps;
mod format;
mod messages;
mod model;
mod options;
mod skeleton;
mod tree;

use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use idl_compiler::emit::{self, OptionProblem, Options, Skeleton};
use idl_compiler::{Compiler, Diagnostics, Disk, Model, Source};

use args::Command;
use messages::Messages;
use options::Input;

pub use args::{Args, examples};
pub use options::{Colour, MessageFormat};
pub use skeleton::skeleton;

/// Runs the command line. Results go to standard output, messages to standard error.
///
/// The exit code is 0 on success, 1 if the IDL has errors or is not formatted, 2 if the options have errors,
/// and 3 if input or output failed.
pub fn run(args: &Args) -> ExitCode {
    match perform(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.show(&Messages::new(args.message_format, args.colour));
            ExitCode::from(failure.code())
        }
    }
}

/// The reason why a command failed.
enum Failure {
    /// The IDL has errors, or is not formatted; already reported.
    Idl,
    /// A change breaks something; already reported.
    Breaks,
    /// A file cannot be read; already reported.
    Unread,
    /// Options that do not apply to the IDL.
    Options(Vec<String>),
    /// An error of input or output.
    Io(String),
}

impl Failure {
    /// Returns the exit code. Higher codes mean that the cause is less related to the IDL.
    fn code(&self) -> u8 {
        match self {
            Failure::Idl | Failure::Breaks => 1,
            Failure::Options(_) => 2,
            Failure::Unread | Failure::Io(_) => 3,
        }
    }

    fn show(&self, messages: &Messages) {
        let (code, lines) = match self {
            Failure::Idl | Failure::Breaks | Failure::Unread => return,
            Failure::Options(lines) => ("options", lines.as_slice()),
            Failure::Io(line) => ("io", std::slice::from_ref(line)),
        };
        for line in lines {
            messages.error(code, line);
        }
    }
}

fn perform(args: &Args) -> Result<(), Failure> {
    let messages = &Messages::new(args.message_format, args.colour);
    match &args.command {
        Command::Check { input } => {
            // Each file is checked by itself, and all of them even if one has errors.
            let mut worst: Result<(), Failure> = Ok(());
            for file in &input.files {
                let Err(failure) = compile(input, std::slice::from_ref(file), messages) else { continue };
                worst = match worst {
                    Err(worse) if worse.code() >= failure.code() => {
                        failure.show(messages);
                        Err(worse)
                    }
                    other => {
                        let _ = other.inspect_err(|less| less.show(messages));
                        Err(failure)
                    }
                };
            }
            worst
        }
        Command::Rust { input, output, mapping } => {
            let model = compile(input, &input.files, messages)?;
            let options = mapping.options().map_err(|wrong| Failure::Options(vec![wrong]))?;
            let text = generated(&model, &options, messages, !input.no_warnings)?;
            write(output.as_deref(), &text)
        }
        Command::Skeleton { input, mapping, module, interfaces, output } => {
            let model = compile(input, &input.files, messages)?;
            let wrong = |wrong| Failure::Options(vec![wrong]);
            let options = mapping.options().map_err(wrong)?;
            let module = module.as_deref().map(args::path).transpose().map_err(wrong)?;
            let wanted = Skeleton { module, interfaces: interfaces.clone() };
            check_options(&model, &options)?;
            if emit::served_interfaces(&model, interfaces).is_empty() {
                return Err(wrong(skeleton::nothing(interfaces)));
            }
            let names: Vec<String> = input.files.iter().map(|file| file.display().to_string()).collect();
            let text = skeleton(&model, &options, &wanted, &names.join(", ")).map_err(|errors| {
                messages.show(&errors);
                Failure::Idl
            })?;
            write(output.as_deref(), &text)
        }
        Command::Model { input, output, json } => {
            let model = compile(input, &input.files, messages)?;
            let text = if *json || args.json {
                let json = serde_json::to_string_pretty(&model::json(&model))
                    .map_err(|error| Failure::Io(error.to_string()))?;
                messages::escaped_json(&json) + "\n"
            } else {
                tree::tree(&model)
            };
            write(output.as_deref(), &text)
        }
        Command::Deps { input, output, make, target } => {
            let first = input.files.first().map(PathBuf::as_path);
            if *make && target.is_none() && first.is_some_and(is_standard_input) {
                let wrong = "`--make` of standard input: say what the rule makes with --target".to_owned();
                return Err(Failure::Options(vec![wrong]));
            }
            // The list of files is known even if the IDL has errors. A build must run again when one of them
            // changes.
            let result = read(input, &input.files)?;
            let sources = match &result {
                Ok(model) => model.sources(),
                Err(errors) => errors.sources(),
            };
            let paths = sources.paths();
            let text = match make {
                true => deps::make(target.as_deref(), first, &paths),
                false => deps::list(&paths),
            };
            write(output.as_deref(), &text)?;
            checked(input, result, messages).map(|_| ())
        }
        Command::Breaking(args) => match breaking::run(args, messages) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::Breaks),
            // An exit code of 1 is reserved for breaking changes.
            Err(Failure::Idl | Failure::Unread) => Err(Failure::Options(Vec::new())),
            Err(Failure::Io(line)) => Err(Failure::Options(vec![line])),
            Err(other) => Err(other),
        },
        Command::Fmt { files, check } => format::files(files, *check),
    }
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Compiles files, or standard input, as one text. Messages go to standard error.
fn compile(input: &Input, files: &[PathBuf], messages: &Messages) -> Result<Model, Failure> {
    checked(input, read(input, files)?, messages)
}

/// Compiles without printing messages.
fn read(input: &Input, files: &[PathBuf]) -> Result<Result<Model, Diagnostics>, Failure> {
    let mut compiler = Compiler::default().files(Disk::new()).strict_names(input.strict_names);
    for folder in &input.include {
        compiler = compiler.include(folder);
    }
    for define in &input.define {
        compiler = compiler.define(define);
    }
    for name in &input.undefine {
        compiler = compiler.undefine(name);
    }
    Ok(match files {
        [only] if is_standard_input(only) => {
            let mut octets = Vec::new();
            let limit = 64 << 20;
            io::stdin()
                .take(limit + 1)
                .read_to_end(&mut octets)
                .map_err(|error| Failure::Io(format!("cannot read standard input: {error}")))?;
            if octets.len() as u64 > limit {
                return Err(Failure::Io("standard input is larger than 64 MiB".to_owned()));
            }
            compiler.compile(Source::octets("<stdin>", octets))
        }
        files if files.iter().any(|file| is_standard_input(file)) => {
            return Err(Failure::Options(vec!["`-` stands alone: standard input is one text".to_owned()]));
        }
        files => compiler.compile_files(files),
    })
}

/// Prints the messages of a compilation.
fn checked(input: &Input, result: Result<Model, Diagnostics>, messages: &Messages) -> Result<Model, Failure> {
    let model = result.map_err(|errors| {
        let errors = if input.no_warnings { errors.without_warnings() } else { errors };
        messages.show(&errors);
        let unread = errors.iter().any(|error| error.code == "cannot-read");
        if unread { Failure::Unread } else { Failure::Idl }
    })?;
    if !input.no_warnings {
        messages.show(model.warnings());
    }
    Ok(model)
}

/// Returns the Rust of a model, formatted.
fn generated(model: &Model, options: &Options, messages: &Messages, warn: bool) -> Result<String, Failure> {
    check_options(model, options)?;
    let emitted = emit::emit(model, options).map_err(|errors| {
        messages.show(&errors);
        Failure::Idl
    })?;
    if warn {
        messages.show(&emitted.warnings);
    }
    let file = syn::parse2(emitted.tokens).map_err(|error| {
        Failure::Io(format!("the generated code is no Rust, which is a mistake of idlc: {error}"))
    })?;
    Ok(prettyplease::unparse(&file))
}

/// Checks that the options apply to the model.
fn check_options(model: &Model, options: &Options) -> Result<(), Failure> {
    let problems: Vec<String> =
        options.check(model).into_iter().map(|problem| explained(options, problem)).collect();
    if problems.is_empty() { Ok(()) } else { Err(Failure::Options(problems)) }
}

fn explained(options: &Options, problem: OptionProblem) -> String {
    let rename = |index: usize| options.rename.get(index).cloned().unwrap_or_default();
    match problem {
        OptionProblem::UnknownName(index) => {
            format!("--rename: `{}` names nothing in this IDL that has a Rust name", rename(index).0)
        }
        OptionProblem::NotAnIdentifier(index) => {
            format!("--rename: `{}` is not an identifier", rename(index).1)
        }
        OptionProblem::NothingExternal(index) => {
            let idl = options.external.get(index).map_or("", |(idl, _)| idl);
            format!("--extern: no included file defines `{idl}`")
        }
        OptionProblem::NothingDerives(index) => {
            let idl = options.derive.get(index).map_or("", |(idl, _)| idl);
            format!("--derive: `{idl}` names no struct, exception, union or enum")
        }
        OptionProblem::NoBodies(index) => {
            let idl = options.default_bodies.get(index).map_or("", String::as_str);
            format!("--default-bodies: `{idl}` names no interface, operation or attribute")
        }
        OptionProblem::NoHandler(index) => {
            let idl = options.ami.get(index).map_or("", String::as_str);
            format!("--ami: `{idl}` names no interface whose objects can be elsewhere")
        }
        OptionProblem::NothingInterpreted(index) => {
            let idl = options.interpretive.get(index).map_or("", String::as_str);
            format!("--interpretive: `{idl}` names no struct, exception, union, enum or interface")
        }
        OptionProblem::NothingAdapts(index) => {
            let idl = options.adaptive.get(index).map_or("", |(idl, _)| idl);
            format!("--adaptive: `{idl}` names no struct, exception, union or enum")
        }
        OptionProblem::NoUses(_) => "--adaptive: the number of uses is 1 or more".to_owned(),
        OptionProblem::UsesName => {
            format!("--uses: `{}` is not an identifier", options.uses.as_deref().unwrap_or_default())
        }
        OptionProblem::RelativeRuntime => {
            "--crate: the path of the crate starts with `::` or `crate`".to_owned()
        }
    }
}

/// Writes to a file or to standard output. It is not an error if the reader closes standard output early.
fn write(path: Option<&Path>, text: &str) -> Result<(), Failure> {
    match path {
        Some(path) => idl_compiler::write_whole(path, text)
            .map_err(|error| Failure::Io(format!("cannot write {}: {error}", path.display()))),
        None => match io::stdout().lock().write_all(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::Io(format!("cannot write to standard output: {error}")))
            }
            _ => Ok(()),
        },
    }
}

impl Colour {
    /// Returns whether messages are coloured: as configured, or in automatic mode if a terminal reads them
    /// and `NO_COLOR` is not set.
    fn wanted(self) -> bool {
        match self {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                let unset = |name: &str| std::env::var_os(name).is_none_or(|value| value.is_empty());
                io::stderr().is_terminal() && unset("NO_COLOR")
            }
        }
    }
}
