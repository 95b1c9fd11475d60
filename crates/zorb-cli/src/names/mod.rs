//! `zorb names`: lists and changes the names of a naming service of any ORB.

#[cfg(feature = "etcd")]
mod etcd;
mod lines;
mod list;
mod list_limits;
mod serve;
mod status;
mod tree;
mod watch;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cos_naming::zorb_naming::balanced_context::BindForError;
use serde_json::json;
use zorb::cos_naming::{Naming, NamingContextRef, NamingError, parse_name, print_name};
use zorb::prelude::*;

pub(crate) use serve::ServeArgs;

use list_limits::ListLimits;

use crate::client::{ClientOptions, block_on};
use crate::failure::{UsageError, Verdict, with_hint};
use crate::options::LazyArgs;
use crate::output::{Node, Output};
use crate::target;

const EXAMPLES: &str = "\
Examples:
  zorb names tree                              all names of the service on this machine, port 2809
  zorb names --service corbaloc::1.2@host:2809/NameService list bank
  zorb names bind bank/accounts/mine account.ior --parents
  zorb ping $(zorb names resolve bank/accounts/mine)
  zorb names watch bank --interval 500ms       prints changes below bank
  zorb names serve                             runs a naming service

A name looks like a/b.kind/c: `/` separates its components, and a dot separates id and kind. A backslash escapes these characters.";

/// Options of `zorb names`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct NamesArgs {
    /// The naming service: a URL or reference of a naming context, or a file that contains one (default:
    /// --init-ref NameService=URL if given, otherwise port 2809 of this machine)
    #[arg(long, value_name = "REFERENCE", global = true)]
    service: Option<String>,
    #[command(flatten)]
    client: ClientOptions,
    #[command(subcommand)]
    command: NamesCommand,
}

#[derive(Debug, Subcommand)]
enum NamesCommand {
    /// Lists the names in a context
    List {
        /// The context (default: the root context)
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Also print the type and address of each object
        #[arg(short, long)]
        long: bool,
        #[command(flatten)]
        limits: ListLimits,
    },
    /// Prints all names below a context
    Tree {
        /// The context (default: the root context)
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// The maximum number of levels of nested contexts
        #[arg(long, value_name = "LEVELS", default_value_t = 16)]
        depth: u32,
        #[command(flatten)]
        limits: ListLimits,
    },
    /// Prints the reference that is bound to a name
    Resolve {
        /// The name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Binds a name to an object
    Bind {
        /// The name
        #[arg(value_name = "NAME")]
        name: String,
        /// The object: IOR:, corbaloc: or file:, a file that contains a reference, or - for standard input
        #[arg(value_name = "REFERENCE")]
        target: String,
        /// Replace the object that is currently bound to the name
        #[arg(long)]
        replace: bool,
        /// Create the missing contexts in the name
        #[arg(long)]
        parents: bool,
        /// The object is a naming context, which becomes a part of the name tree
        #[arg(long)]
        context: bool,
        /// The number of seconds after which the name is unbound, unless the command is repeated. This
        /// requires a naming service of zorb that stores its names in etcd
        #[arg(long = "for", value_name = "SECONDS", conflicts_with_all = ["replace", "context"])]
        seconds: Option<u32>,
    },
    /// Creates a context, and the missing contexts in its name
    Make {
        /// The name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Unbinds a name; the object itself is not changed
    Unbind {
        /// The name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Prints changes of names until Ctrl-C: bound, unbound, rebound. Works with any service, by polling it
    Watch(watch::WatchArgs),
    /// Reports whether the names of a naming service of zorb are current, or may be outdated
    Status,
    /// Runs a naming service until Ctrl-C, by default at port 2809 and with its names in a file
    Serve(LazyArgs<Box<ServeArgs>>),
    /// Recreates a damaged file of names, and keeps a copy of the damaged file
    Repair {
        /// The damaged file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

pub(crate) fn run(args: &NamesArgs, output: &Output) -> anyhow::Result<Verdict> {
    match &args.command {
        NamesCommand::Serve(_) | NamesCommand::Repair { .. } => args.reject_service_options()?,
        _ => {}
    }
    match &args.command {
        NamesCommand::Serve(LazyArgs(args)) => return serve::run(args, output),
        NamesCommand::Repair { file } => return serve::repair(file, output),
        _ => {}
    }
    block_on(async {
        let orb = args.client.orb(None).await?;
        let result = run_client(&orb, args, output).await;
        orb.shutdown().await;
        result
    })
}

impl NamesArgs {
    /// Returns an error if an option for calls is given to a command that does not call a naming service.
    fn reject_service_options(&self) -> Result<(), UsageError> {
        if self.service.is_none() && self.client.is_default() {
            return Ok(());
        }
        let text = "--service and the options for connections cannot be used here: this command does not call a naming service";
        Err(UsageError(text.to_owned()))
    }
}

async fn run_client(orb: &Orb, args: &NamesArgs, output: &Output) -> anyhow::Result<Verdict> {
    let names = resolve_service(orb, args.service.as_deref()).await?;
    match &args.command {
        NamesCommand::List { name, long, limits } => {
            let context = resolve_context(&names, name.as_deref()).await?;
            return list::run(&context, *long, limits.begin(), output).await;
        }
        NamesCommand::Tree { name, depth, limits } => {
            let context = resolve_context(&names, name.as_deref()).await?;
            return tree::run(context, *depth, limits.begin(), output).await;
        }
        NamesCommand::Resolve { name } => {
            let object: ObjectRef = names.resolve(name).await?;
            let (reference, type_id) = (object.to_string(), object.repository_id());
            let resolved = json!({ "reference": reference, "type_id": type_id });
            output.show(&resolved, |_| vec![Node::new("", reference)])?;
        }
        NamesCommand::Bind { name, target, replace, parents, context, seconds } => {
            let url = target::read(target)?.to_string();
            if let (true, Some(parent)) = (*parents, parent_of(name)) {
                names.make_contexts(parent).await?;
            }
            let options = BindOptions { replace: *replace, is_context: *context, seconds: *seconds };
            let result = bind(orb, &names, name, &url, options).await;
            result.map_err(add_parents_hint)?;
        }
        NamesCommand::Make { name } => drop(names.make_contexts(name).await?),
        NamesCommand::Unbind { name } => names.unbind(name).await?,
        NamesCommand::Watch(watch) => {
            let context = resolve_context(&names, watch.name.as_deref()).await?;
            return watch::run(&context, watch, args.client.timeout, output).await;
        }
        NamesCommand::Status => {
            let status = status::Status::query(&names).await?;
            output.show(&status, status::Status::nodes)?;
            return Ok(if status.current { Verdict::Good } else { Verdict::Bad });
        }
        // `run` has already executed these commands.
        NamesCommand::Serve(_) | NamesCommand::Repair { .. } => {}
    }
    Ok(Verdict::Good)
}

/// Converts an exception of `bind_for` to the error type of the other operations.
fn naming_error(name: &str, error: BindForError) -> NamingError {
    let name = name.to_owned();
    match error {
        BindForError::NotFound(error) => {
            NamingError::NotFound { name, why: error.why, rest: print_name(&error.rest_of_name) }
        }
        BindForError::CannotProceed(error) => {
            let rest = print_name(&error.rest_of_name);
            NamingError::CannotProceed { name, rest, context: error.cxt }
        }
        BindForError::InvalidName(_) => NamingError::InvalidName(name),
        BindForError::AlreadyBound(_) => NamingError::AlreadyBound(name),
        BindForError::System(error) => NamingError::System(error),
    }
}

/// The options `--replace`, `--context` and `--for` of `zorb names bind`.
struct BindOptions {
    replace: bool,
    is_context: bool,
    seconds: Option<u32>,
}

async fn bind(orb: &Orb, names: &Naming, name: &str, url: &str, options: BindOptions) -> anyhow::Result<()> {
    let BindOptions { replace, is_context, seconds } = options;
    if let Some(seconds) = seconds {
        let bound: ObjectRef = orb.resolve_unchecked(url).await?;
        let context = status::as_balanced_context(names).await?;
        let result = context.bind_for(&parse_name(name)?, bound, seconds).await;
        return Ok(result.map_err(|error| naming_error(name, error))?);
    }
    if is_context {
        let bound: NamingContextRef = orb.resolve(url).await?;
        if replace {
            names.rebind_context(name, &bound).await?;
        } else {
            names.bind_context(name, &bound).await?;
        }
    } else {
        let bound: ObjectRef = orb.resolve_unchecked(url).await?;
        if replace { names.rebind(name, &bound).await? } else { names.bind(name, &bound).await? }
    }
    Ok(())
}

fn add_parents_hint(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref().and_then(NamingError::missing_context) {
        Some(_) => with_hint(error, "--parents creates the missing contexts"),
        None => error,
    }
}

async fn resolve_service(orb: &Orb, service: Option<&str>) -> anyhow::Result<Naming> {
    let found = match service {
        Some(text) => Naming::new(orb.resolve(&target::read(text)?.to_string()).await?),
        None => orb
            .naming()
            .await
            .map_err(|error| with_hint(error, "--service selects another naming service"))?,
    };
    Ok(found)
}

async fn resolve_context(names: &Naming, name: Option<&str>) -> anyhow::Result<Naming> {
    Ok(match name {
        None | Some("") => names.clone(),
        Some(name) => names.enter(name).await?,
    })
}

/// Returns a name without its last component, or `None` if it has only one component.
fn parent_of(name: &str) -> Option<&str> {
    let bytes = name.as_bytes();
    let is_separator = |position: &usize| {
        let before = bytes.get(..*position).unwrap_or_default();
        let escapes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
        bytes.get(*position) == Some(&b'/') && escapes % 2 == 0
    };
    (0..bytes.len()).rev().find(is_separator).and_then(|end| name.get(..end))
}

#[cfg(test)]
mod tests {
    use super::parent_of;

    #[test]
    fn the_parent_of_a_name_lacks_only_the_last_component() {
        assert_eq!(parent_of("a/b.c/d"), Some("a/b.c"));
        assert_eq!(parent_of("a"), None);
        assert_eq!(parent_of(r"a\/b"), None);
        assert_eq!(parent_of(r"a\\/b"), Some(r"a\\"));
        assert_eq!(parent_of(r"x/a\/b"), Some("x"));
    }
}
