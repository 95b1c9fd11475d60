//! `zorb names`: the content of a naming service of any ORB.

mod bounds;
#[cfg(feature = "etcd")]
mod etcd;
mod lines;
mod list;
mod serve;
mod status;
mod tree;
mod watch;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cos_naming::zorb_naming::balanced_context::BindForError;
use serde::Serialize;
use zorb::cos_naming::{Naming, NamingContextRef, NamingError, parse_name, print_name};
use zorb::prelude::*;

pub(crate) use serve::ServeArgs;

use bounds::Bounds;

use crate::client::{Client, block_on};
use crate::failure::{Usage, hinted};
use crate::options::Later;
use crate::output::{Node, Output};
use crate::{Verdict, target};

const EXAMPLES: &str = "\
Examples:
  zorb names tree                              all names of the service on this machine, port 2809
  zorb names --service corbaloc::1.2@host:2809/NameService list bank
  zorb names bind bank/accounts/mine account.ior --parents
  zorb ping $(zorb names resolve bank/accounts/mine)
  zorb names watch bank --interval 500ms       changes below bank, as they come
  zorb names serve                             is a naming service

A name is a/b.kind/c: `/` separates its parts, a dot the kind, and a backslash stands before those that are meant as they are.";

/// Options of `zorb names`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct NamesArgs {
    /// The naming service: a URL or reference of a naming context, or a file with one (default: --init-ref
    /// NameService=URL, else the service on this machine at port 2809)
    #[arg(long, value_name = "REFERENCE", global = true)]
    service: Option<String>,
    #[command(flatten)]
    client: Client,
    #[command(subcommand)]
    command: NamesCommand,
}

#[derive(Debug, Subcommand)]
enum NamesCommand {
    /// Lists what is bound in a context
    List {
        /// The context; without it the first one
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Also say what each object is, and where
        #[arg(short, long)]
        long: bool,
        #[command(flatten)]
        bounds: Bounds,
    },
    /// Prints all names below a context
    Tree {
        /// The context; without it the first one
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Contexts within each other that are entered
        #[arg(long, value_name = "LEVELS", default_value_t = 16)]
        depth: u32,
        #[command(flatten)]
        bounds: Bounds,
    },
    /// Prints the reference that has a name
    Resolve {
        /// The name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Gives an object a name
    Bind {
        /// The name
        #[arg(value_name = "NAME")]
        name: String,
        /// IOR:, corbaloc:, file:, a file that holds one, or - for standard input
        #[arg(value_name = "REFERENCE")]
        target: String,
        /// In place of the object that has the name
        #[arg(long)]
        replace: bool,
        /// Make contexts on the way that are not there
        #[arg(long)]
        parents: bool,
        /// The object is a context: names lead on through it
        #[arg(long)]
        context: bool,
        /// The time after which the name is free again, unless the command is repeated before. Supported by
        /// services of zorb that keep their names in etcd
        #[arg(long = "for", value_name = "SECONDS", conflicts_with_all = ["replace", "context"])]
        seconds: Option<u32>,
    },
    /// Makes a context, and those on the way to it
    Make {
        /// The name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Takes a name away; what it was bound to stays what it is
    Unbind {
        /// The name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Prints changes of names until Ctrl-C: bound, unbound, bound to something else. Works with any service,
    /// which is polled
    Watch(watch::WatchArgs),
    /// Reports whether a service of zorb knows the latest of its names; if its store is unavailable, it reads
    /// its own copy
    Status,
    /// Is a naming service, until Ctrl-C: port 2809 of this machine, and a file that keeps the names
    Serve(Later<Box<ServeArgs>>),
    /// Saves what can be read of a damaged file of names; the damaged one stays beside it
    Repair {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// Runs the command.
///
/// # Errors
/// There is no naming service, it reports an error, or output fails.
pub(crate) fn run(args: &NamesArgs, output: &Output) -> anyhow::Result<Verdict> {
    match &args.command {
        NamesCommand::Serve(_) | NamesCommand::Repair { .. } => args.ask_no_service()?,
        _ => {}
    }
    match &args.command {
        NamesCommand::Serve(Later(args)) => return serve::run(args, output),
        NamesCommand::Repair { file } => return serve::repair(file, output),
        _ => {}
    }
    block_on(async {
        let orb = args.client.orb().await?;
        let done = on(&orb, args, output).await;
        orb.shutdown().await;
        done
    })
}

impl NamesArgs {
    /// Checks that no options for a naming service are given.
    ///
    /// # Errors
    /// There are such options, although the command uses no service.
    fn ask_no_service(&self) -> Result<(), Usage> {
        if self.service.is_none() && self.client.is_default() {
            return Ok(());
        }
        let text = "--service and the options of connections have no meaning here: this command asks no naming service";
        Err(Usage(text.to_owned()))
    }
}

async fn on(orb: &Orb, args: &NamesArgs, output: &Output) -> anyhow::Result<Verdict> {
    let names = service(orb, args.service.as_deref()).await?;
    match &args.command {
        NamesCommand::List { name, long, bounds } => {
            let inside = inside(&names, name.as_deref()).await?;
            return list::run(&inside, *long, bounds.start(), output).await;
        }
        NamesCommand::Tree { name, depth, bounds } => {
            let inside = inside(&names, name.as_deref()).await?;
            return tree::run(inside, *depth, bounds.start(), output).await;
        }
        NamesCommand::Resolve { name } => {
            let object: ObjectRef = names.resolve(name).await?;
            let found = Found { reference: object.to_string(), type_id: object.repository_id().to_owned() };
            output.show(&found, |found| vec![Node::new("", &found.reference)])?;
        }
        NamesCommand::Bind { name, target, replace, parents, context, seconds } => {
            let url = target::read(target)?.to_string();
            if let (true, Some(parent)) = (*parents, parent(name)) {
                names.make_contexts(parent).await?;
            }
            let done = bind(orb, &names, name, &url, (*replace, *context, *seconds)).await;
            done.map_err(without_parents)?;
        }
        NamesCommand::Make { name } => drop(names.make_contexts(name).await?),
        NamesCommand::Unbind { name } => names.unbind(name).await?,
        NamesCommand::Watch(watch) => {
            let inside = inside(&names, watch.name.as_deref()).await?;
            return watch::run(&inside, watch, args.client.timeout, output).await;
        }
        NamesCommand::Status => {
            let status = status::Status::of(&names).await?;
            output.show(&status, status::Status::nodes)?;
            return Ok(if status.current { Verdict::Good } else { Verdict::Bad });
        }
        // These commands use no service.
        NamesCommand::Serve(_) | NamesCommand::Repair { .. } => {}
    }
    Ok(Verdict::Good)
}

/// Converts the exceptions of `bind_for`, using the name.
fn raised(name: &str, error: BindForError) -> NamingError {
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

/// Binds a name: replacing an existing binding or not, as a context or an object, and optionally for a number
/// of seconds.
async fn bind(
    orb: &Orb,
    names: &Naming,
    name: &str,
    url: &str,
    (replace, context, seconds): (bool, bool, Option<u32>),
) -> anyhow::Result<()> {
    if let Some(seconds) = seconds {
        let bound: ObjectRef = orb.resolve_unchecked(url).await?;
        let done = status::balanced(names).await?.bind_for(&parse_name(name)?, bound, seconds).await;
        return Ok(done.map_err(|error| raised(name, error))?);
    }
    if context {
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

/// Adds a hint about the option that creates missing contexts, if one is missing.
fn without_parents(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref().and_then(NamingError::missing_context) {
        Some(_) => hinted(error, "--parents makes the contexts on the way"),
        None => error,
    }
}

async fn service(orb: &Orb, service: Option<&str>) -> anyhow::Result<Naming> {
    let found = match service {
        Some(text) => Naming::new(orb.resolve(&target::read(text)?.to_string()).await?),
        None => {
            orb.naming().await.map_err(|error| hinted(error, "--service says where a naming service is"))?
        }
    };
    Ok(found)
}

async fn inside(names: &Naming, name: Option<&str>) -> anyhow::Result<Naming> {
    Ok(match name {
        None | Some("") => names.clone(),
        Some(name) => names.enter(name).await?,
    })
}

/// Returns a name without its last part. Escaped separators do not count.
fn parent(name: &str) -> Option<&str> {
    let octets = name.as_bytes();
    let separator = |at: &usize| {
        let before = octets.get(..*at).unwrap_or_default();
        let escapes = before.iter().rev().take_while(|octet| **octet == b'\\').count();
        octets.get(*at) == Some(&b'/') && escapes % 2 == 0
    };
    (0..octets.len()).rev().find(separator).and_then(|at| name.get(..at))
}

#[derive(Debug, Serialize)]
struct Found {
    reference: String,
    type_id: String,
}

#[cfg(test)]
mod tests {
    use super::parent;

    #[test]
    fn the_parent_of_a_name_is_all_but_its_last_part() {
        assert_eq!(parent("a/b.c/d"), Some("a/b.c"));
        assert_eq!(parent("a"), None);
        assert_eq!(parent(r"a\/b"), None);
        assert_eq!(parent(r"a\\/b"), Some(r"a\\"));
        assert_eq!(parent(r"x/a\/b"), Some("x"));
    }
}
