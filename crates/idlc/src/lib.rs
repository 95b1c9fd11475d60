//! `idlc`: checks, formats and compares OMG IDL, and generates Rust code from it. The library is for programs
//! that include these commands.

mod args;
mod breaking;
mod format;
mod messages;
mod model;
mod options;
mod skeleton;
mod tree;

use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use idl_compiler::emit::{self, OptionProblem, Options, SkeletonOptions};
use idl_compiler::{Compiler, Diagnostics, Disk, Model, Source};

use args::Command;
use messages::Messages;
use options::Input;

pub use args::{Args, examples};
pub use options::{Colour, MessageFormat};
pub use skeleton::skeleton;

/// Runs the command line. Results go to standard output, messages to standard error.
///
/// The exit code is 0 on success, 1 if the IDL has errors, is not formatted or has breaking changes, 2 if the
/// options are wrong, and 3 if input or output failed. For `breaking`, it is 2 for all errors.
pub fn run(args: &Args) -> ExitCode {
    match run_command(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print(&Messages::new(args.message_format, args.colour));
            ExitCode::from(failure.code())
        }
    }
}

enum Failure {
    /// The IDL has errors or is not formatted, which has been reported.
    Idl,
    /// There are breaking changes, which have been reported.
    Breaking,
    /// A file cannot be read, which has been reported.
    UnreadableFile,
    /// The options are wrong or do not fit the IDL. There is a message for each problem not yet reported.
    Options(Vec<String>),
    /// Input or output failed. The message has not been reported yet.
    Io(String),
}

impl Failure {
    /// Returns the exit code. If there are several failures, the highest code is used.
    fn code(&self) -> u8 {
        match self {
            Failure::Idl | Failure::Breaking => 1,
            Failure::Options(_) => 2,
            Failure::UnreadableFile | Failure::Io(_) => 3,
        }
    }

    fn print(&self, messages: &Messages) {
        let (code, lines) = match self {
            Failure::Idl | Failure::Breaking | Failure::UnreadableFile => return,
            Failure::Options(lines) => ("options", lines.as_slice()),
            Failure::Io(line) => ("io", std::slice::from_ref(line)),
        };
        for line in lines {
            messages.error(code, line);
        }
    }
}

fn run_command(args: &Args) -> Result<(), Failure> {
    let messages = &Messages::new(args.message_format, args.colour);
    match &args.command {
        Command::Check { input } => {
            // Each file is checked separately, even after errors in another one.
            let mut worst: Result<(), Failure> = Ok(());
            for file in &input.files {
                let Err(failure) = compile(input, std::slice::from_ref(file), messages) else { continue };
                worst = match worst {
                    Err(worse) if worse.code() >= failure.code() => {
                        failure.print(messages);
                        Err(worse)
                    }
                    other => {
                        let _ = other.inspect_err(|other| other.print(messages));
                        Err(failure)
                    }
                };
            }
            worst
        }
        Command::Rust { input, output, mapping } => {
            let model = compile(input, &input.files, messages)?;
            let options = mapping.options().map_err(|error| Failure::Options(vec![error]))?;
            let text = generate_rust(&model, &options, messages, !input.no_warnings)?;
            write(output.as_deref(), &text)
        }
        Command::Skeleton { input, mapping, module, interfaces, output } => {
            let model = compile(input, &input.files, messages)?;
            let option_error = |error| Failure::Options(vec![error]);
            let options = mapping.options().map_err(option_error)?;
            let module = module.as_deref().map(args::parse_path).transpose().map_err(option_error)?;
            let skeleton_options = SkeletonOptions { module, interfaces: interfaces.clone() };
            check_options(&model, &options)?;
            if emit::served_interfaces(&model, interfaces).is_empty() {
                return Err(option_error(skeleton::no_interface_message(interfaces)));
            }
            let names: Vec<String> = input.files.iter().map(|file| file.display().to_string()).collect();
            let text =
                skeleton(&model, &options, &skeleton_options, &names.join(", ")).map_err(|errors| {
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
                let error = "--make requires --target if the input is standard input".to_owned();
                return Err(Failure::Options(vec![error]));
            }
            // The files are listed even if the IDL has errors, so that a build runs again when one of them
            // changes.
            let result = compile_silently(input, &input.files)?;
            let sources = match &result {
                Ok(model) => model.sources(),
                Err(errors) => errors.sources(),
            };
            let paths = sources.paths();
            let text = match make {
                true => make_rule(target.as_deref(), first, &paths),
                false => paths.iter().map(|path| format!("{}\n", path.display())).collect(),
            };
            write(output.as_deref(), &text)?;
            report(input, result, messages).map(|_| ())
        }
        Command::Breaking(args) => match breaking::run(args, messages) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::Breaking),
            // Exit code 1 must only mean breaking changes.
            Err(Failure::Idl | Failure::UnreadableFile) => Err(Failure::Options(Vec::new())),
            Err(Failure::Io(line)) => Err(Failure::Options(vec![line])),
            Err(other) => Err(other),
        },
        Command::Fmt { files, check } => format::format_files(files, *check),
    }
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn compile(input: &Input, files: &[PathBuf], messages: &Messages) -> Result<Model, Failure> {
    report(input, compile_silently(input, files)?, messages)
}

fn compile_silently(input: &Input, files: &[PathBuf]) -> Result<Result<Model, Diagnostics>, Failure> {
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
            let mut bytes = Vec::new();
            let limit = 64 << 20;
            io::stdin()
                .take(limit + 1)
                .read_to_end(&mut bytes)
                .map_err(|error| Failure::Io(format!("cannot read standard input: {error}")))?;
            if bytes.len() as u64 > limit {
                return Err(Failure::Io("standard input is larger than 64 MiB".to_owned()));
            }
            compiler.compile(Source::from_bytes("<stdin>", bytes))
        }
        files if files.iter().any(|file| is_standard_input(file)) => {
            return Err(Failure::Options(vec!["`-` cannot be combined with other files".to_owned()]));
        }
        files => compiler.compile_files(files),
    })
}

/// Prints the messages of a compilation, and returns the model.
fn report(input: &Input, result: Result<Model, Diagnostics>, messages: &Messages) -> Result<Model, Failure> {
    let model = result.map_err(|errors| {
        let errors = if input.no_warnings { errors.without_warnings() } else { errors };
        messages.show(&errors);
        let has_unreadable_file = errors.iter().any(|error| error.code == "cannot-read");
        if has_unreadable_file { Failure::UnreadableFile } else { Failure::Idl }
    })?;
    if !input.no_warnings {
        messages.show(model.warnings());
    }
    Ok(model)
}

fn generate_rust(
    model: &Model,
    options: &Options,
    messages: &Messages,
    show_warnings: bool,
) -> Result<String, Failure> {
    check_options(model, options)?;
    let emitted = emit::emit(model, options).map_err(|errors| {
        messages.show(&errors);
        Failure::Idl
    })?;
    if show_warnings {
        messages.show(&emitted.warnings);
    }
    let file = syn::parse2(emitted.tokens).map_err(|error| {
        Failure::Io(format!("the generated code is not valid Rust; this is a bug in idlc: {error}"))
    })?;
    Ok(prettyplease::unparse(&file))
}

fn check_options(model: &Model, options: &Options) -> Result<(), Failure> {
    let message = |problem: OptionProblem| {
        let (option, message) = problem.describe(options);
        let option = match option {
            "external" => "extern",
            "default_bodies" => "default-bodies",
            "runtime" => "crate",
            other => other,
        };
        format!("--{option}: {message}")
    };
    let problems: Vec<String> = options.check(model).into_iter().map(message).collect();
    if problems.is_empty() { Ok(()) } else { Err(Failure::Options(problems)) }
}

/// Writes to a file or to standard output. It is not an error if standard output is closed.
fn write(path: Option<&Path>, text: &str) -> Result<(), Failure> {
    match path {
        Some(path) => idl_compiler::write_atomically(path, text)
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
    /// Returns whether messages are coloured. `Auto` means on a terminal, unless `NO_COLOR` is set.
    fn is_enabled(self) -> bool {
        match self {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                let is_unset = |name: &str| std::env::var_os(name).is_none_or(|value| value.is_empty());
                io::stderr().is_terminal() && is_unset("NO_COLOR")
            }
        }
    }
}

/// Formats a rule for make, as `gcc -MD -MP` does. Empty rules prevent errors if files are removed.
fn make_rule(target: Option<&str>, first: Option<&Path>, paths: &[&Path]) -> String {
    let default = || first.map(|path| path.with_extension("rs").display().to_string()).unwrap_or_default();
    let target = target.map_or_else(default, str::to_owned);
    let names: Vec<String> = paths.iter().map(|path| escaped_for_make(&path.display().to_string())).collect();
    let mut text = format!("{}:", escaped_for_make(&target));
    if !names.is_empty() {
        text.push_str(&format!(" {}", names.join(" \\\n  ")));
    }
    text.push('\n');
    for name in &names {
        text.push_str(&format!("\n{name}:\n"));
    }
    text
}

fn escaped_for_make(path: &str) -> String {
    path.replace('$', "$$").replace('#', "\\#").replace(' ', "\\ ")
}
