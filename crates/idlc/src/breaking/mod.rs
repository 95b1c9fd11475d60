//! `idlc breaking`: reports the changes between two versions of an IDL file that break clients and servers.

mod compare;
mod interfaces;
mod rules;
mod types;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use idl_compiler::Model;
use serde_json::{Value, json};

use crate::messages::Messages;
use crate::options::Input;
use crate::{Failure, compile, write};

use compare::Change;
use rules::Class;

pub(crate) use rules::HELP;

#[derive(Debug, clap::Args)]
pub(crate) struct BreakingArgs {
    /// The old IDL file
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The new IDL file; included files are compared too
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// The class of the reported changes
    #[arg(long, value_name = "CLASS", default_value = "wire")]
    class: ClassFilter,
    /// Do not report changes of this rule; may be repeated
    #[arg(long, value_name = "RULE", value_parser = parse_rule)]
    allow: Vec<String>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    /// A folder that `#include` of both files searches; may be repeated
    #[arg(short = 'I', long, value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// A folder that `#include` of the old file searches before the folders of `-I`; may be repeated
    #[arg(long, value_name = "FOLDER")]
    old_include: Vec<PathBuf>,
    /// Define a macro for both files, with the value 1 by default; may be repeated
    #[arg(short = 'D', long, value_name = "NAME[=VALUE]")]
    define: Vec<String>,
}

/// The class of the reported changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ClassFilter {
    /// Changes after which old and new programs cannot communicate correctly
    Wire,
    /// Other changes after which Rust code for the old IDL does not compile
    Rust,
    /// The changes of both classes
    All,
}

impl ClassFilter {
    fn includes(self, class: Class) -> bool {
        match self {
            ClassFilter::Wire => class == Class::Wire,
            ClassFilter::Rust => class == Class::Rust,
            ClassFilter::All => true,
        }
    }
}

fn parse_rule(text: &str) -> Result<String, String> {
    match rules::RULES.iter().any(|rule| rule.id == text) {
        true => Ok(text.to_owned()),
        false => Err(format!("there is no rule `{text}`; `breaking --help` lists the rules")),
    }
}

/// Compares two files. Returns `Ok(true)` if there are no breaking changes of the requested class.
pub(crate) fn run(args: &BreakingArgs, messages: &Messages) -> Result<bool, Failure> {
    let old_include = args.old_include.iter().chain(&args.include).cloned().collect();
    let old = compile_file(args, &args.old, old_include, messages)?;
    let new = compile_file(args, &args.new, args.include.clone(), messages)?;
    let mut changes = compare::changes(&old, &new);
    changes.retain(|change| {
        args.class.includes(change.rule.class) && !args.allow.iter().any(|allowed| allowed == change.rule.id)
    });
    let text = match args.json {
        true => format!("{:#}\n", as_json(&changes)),
        false => as_text(&changes),
    };
    write(None, &text)?;
    if !args.json && changes.is_empty() && std::io::stdout().is_terminal() {
        write(None, "no breaking changes\n")?;
    }
    Ok(changes.is_empty())
}

fn compile_file(
    args: &BreakingArgs,
    file: &Path,
    include: Vec<PathBuf>,
    messages: &Messages,
) -> Result<Model, Failure> {
    let input = Input {
        files: vec![file.to_owned()],
        include,
        define: args.define.clone(),
        undefine: Vec::new(),
        strict_names: false,
        no_warnings: true,
    };
    compile(&input, &input.files, messages)
}

/// Formats one line for each change. The reason of a rule follows its first change.
fn as_text(changes: &[Change]) -> String {
    let mut explained: Vec<&str> = Vec::new();
    let mut text = String::new();
    for change in changes {
        let (location, class, id) = (change.location(), change.rule.class.name(), change.rule.id);
        text.push_str(&format!("{location}: {class}[{id}]: {}\n", change.message));
        if !explained.contains(&id) {
            explained.push(id);
            text.push_str(&format!("  = {}\n", change.rule.reason));
        }
    }
    text
}

fn as_json(changes: &[Change]) -> Value {
    let change = |change: &Change| {
        json!({
            "rule": change.rule.id,
            "class": change.rule.class.name(),
            "name": change.name,
            "message": change.message,
            "why": change.rule.reason,
            "old": change.old,
            "new": change.new,
        })
    };
    let changes: Vec<Value> = changes.iter().map(change).collect();
    json!({ "changes": changes })
}
