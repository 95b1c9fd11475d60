//! `idlc breaking`: reports changes between two versions of an IDL that break clients and servers.

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
    /// The IDL as it was
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The IDL as it is; files that they include are compared as well
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Which changes are reported
    #[arg(long, value_name = "CLASS", default_value = "wire")]
    class: Wanted,
    /// Do not report this rule
    #[arg(long, value_name = "RULE", value_parser = rule)]
    allow: Vec<String>,
    /// Print a JSON object, for programs
    #[arg(long)]
    json: bool,
    /// A folder in which `#include` looks, for both
    #[arg(short = 'I', long, value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// A folder in which `#include` of the old IDL looks, before those of both
    #[arg(long, value_name = "FOLDER")]
    old_include: Vec<PathBuf>,
    /// Define a macro, for both; without a value it is 1
    #[arg(short = 'D', long, value_name = "NAME[=VALUE]")]
    define: Vec<String>,
}

/// Which rules are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Wanted {
    /// What old and new peers do not understand of each other
    Wire,
    /// What stops Rust for the old IDL from compiling, and nothing else
    Rust,
    /// Both
    All,
}

impl Wanted {
    fn has(self, class: Class) -> bool {
        match self {
            Wanted::Wire => class == Class::Wire,
            Wanted::Rust => class == Class::Rust,
            Wanted::All => true,
        }
    }
}

/// Parses the id of a rule.
fn rule(text: &str) -> Result<String, String> {
    match rules::RULES.iter().any(|rule| rule.id == text) {
        true => Ok(text.to_owned()),
        false => Err(format!("there is no rule `{text}`: `idlc breaking --help` lists them")),
    }
}

/// Compares two files. Returns `Ok(true)` if there are no breaking changes of the requested class.
pub(crate) fn run(args: &BreakingArgs, messages: &Messages) -> Result<bool, Failure> {
    let old_include = args.old_include.iter().chain(&args.include).cloned().collect();
    let old = model(args, &args.old, old_include, messages)?;
    let new = model(args, &args.new, args.include.clone(), messages)?;
    let mut changes = compare::changes(&old, &new);
    changes.retain(|change| {
        args.class.has(change.rule.class) && !args.allow.iter().any(|allowed| allowed == change.rule.id)
    });
    let text = match args.json {
        true => format!("{:#}\n", as_json(&changes)),
        false => as_text(&changes),
    };
    write(None, &text)?;
    if !args.json && changes.is_empty() && std::io::stdout().is_terminal() {
        write(None, "nothing breaks\n")?;
    }
    Ok(changes.is_empty())
}

fn model(
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

/// Formats one line per change, and one explanation at the first change of each rule.
fn as_text(changes: &[Change]) -> String {
    let mut explained: Vec<&str> = Vec::new();
    let mut text = String::new();
    for change in changes {
        let (place, class, id) = (change.place(), change.rule.class.name(), change.rule.id);
        text.push_str(&format!("{place}: {class}[{id}]: {}\n", change.message));
        if !explained.contains(&id) {
            explained.push(id);
            text.push_str(&format!("  = {}\n", change.rule.why));
        }
    }
    text
}

fn as_json(changes: &[Change]) -> Value {
    let changes: Vec<Value> = changes
        .iter()
        .map(|change| {
            json!({
                "rule": change.rule.id,
                "class": change.rule.class.name(),
                "name": change.name,
                "message": change.message,
                "why": change.rule.why,
                "old": change.old,
                "new": change.new,
            })
        })
        .collect();
    json!({ "changes": changes })
}
