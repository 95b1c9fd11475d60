//! `zorb new`: a cargo project with a server and a client of an IDL.

mod templates;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use idl_compiler::emit::{Options, ServantNames, Skeleton, servant_names};
use idl_compiler::{Compiler, Disk, Model};

use crate::Verdict;

#[derive(Debug, clap::Args)]
pub(crate) struct NewArgs {
    /// The name of the project and of its folder
    #[arg(value_name = "NAME", value_parser = name)]
    name: String,
    /// The IDL, which is copied with all that it includes
    #[arg(long, value_name = "FILE")]
    idl: PathBuf,
    /// A folder in which `#include` looks
    #[arg(short = 'I', long, value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// A clone of zorb's repository to depend on, instead of the published crate
    #[arg(long, value_name = "FOLDER")]
    zorb_path: Option<PathBuf>,
    /// Where the project is made
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    into: PathBuf,
}

/// Parses a name that cargo accepts for a package.
fn name(text: &str) -> Result<String, String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_word) {
        return Ok(text.to_owned());
    }
    Err("a name starts with a letter and has letters, digits, `-` and `_`".to_owned())
}

/// A file of the project: its path and content.
struct File {
    path: PathBuf,
    content: Vec<u8>,
}

/// Creates the project.
///
/// # Errors
/// The IDL has errors or no interface, the folder is not empty, or files cannot be written.
pub(crate) fn run(args: &NewArgs) -> anyhow::Result<Verdict> {
    let folder = args.into.join(&args.name);
    if fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{} is not empty: choose another name, or remove it", folder.display());
    }
    let files = match project(args)? {
        Ok(files) => files,
        Err(errors) => {
            let _ = writeln!(io::stderr(), "{errors}");
            return Ok(Verdict::Bad);
        }
    };
    for file in &files {
        let path = folder.join(&file.path);
        let around = path.parent().unwrap_or(&folder);
        fs::create_dir_all(around).with_context(|| format!("cannot make the folder {}", around.display()))?;
        fs::write(&path, &file.content).with_context(|| format!("cannot write {}", path.display()))?;
    }
    // A closed standard output is not a failure, because the project exists.
    let _ = writeln!(
        io::stdout(),
        "made {folder}\n  cd {folder} && cargo run --bin server\n  write the servants in src/servants.rs",
        folder = folder.display()
    );
    Ok(Verdict::Good)
}

/// Returns the files of the project, or the errors of its IDL.
fn project(args: &NewArgs) -> anyhow::Result<Result<Vec<File>, String>> {
    let mut compiler = Compiler::default().files(Disk::new());
    for folder in &args.include {
        compiler = compiler.include(folder);
    }
    let model = match compiler.compile_files([&args.idl]) {
        Ok(model) => model,
        Err(errors) => return Ok(Err(errors.to_string())),
    };
    let idl = copies(&model, args)?;
    let Some(main) = idl.first().map(|file| file.path.display().to_string().replace('\\', "/")) else {
        bail!("{} cannot be read", args.idl.display());
    };
    let options = Options::default();
    let skeleton = Skeleton { module: "crate::idl".parse().ok(), interfaces: Vec::new() };
    let made = servant_names(&model, &options, &skeleton)
        .and_then(|names| Ok((names, idlc::skeleton(&model, &options, &skeleton, &main)?)));
    let (servants, skeleton) = match made {
        Ok(made) => made,
        Err(errors) => return Ok(Err(errors.to_string())),
    };
    if servants.iter().all(|servant| servant.is_local) {
        return Ok(Err(format!(
            "{} defines no interface of which a server has objects: name another file",
            args.idl.display()
        )));
    }
    let zorb = match &args.zorb_path {
        None => format!("\"{}\"", env!("CARGO_PKG_VERSION")),
        Some(path) => {
            let path =
                path.canonicalize().with_context(|| format!("there is no folder {}", path.display()))?;
            format!("{{ path = \"{}\" }}", path.display().to_string().escape_default())
        }
    };
    let project = templates::Project { name: &args.name, idl: &main, zorb: &zorb, servants: &servants };
    let text = |path: &str, content: String| File { path: path.into(), content: content.into_bytes() };
    let mut files = vec![
        text("Cargo.toml", project.manifest()),
        text("README.md", project.readme()),
        text(".gitignore", "/target\n".to_owned()),
        text("src/lib.rs", project.library()),
        text("src/servants.rs", skeleton),
        text("src/bin/server.rs", project.server()),
        text("src/bin/client.rs", project.client()),
    ];
    files.extend(idl);
    Ok(Ok(files))
}

/// Returns the IDL files that were read as files below `idl`, the one to compile first. Includes resolve as
/// before: each file keeps its path relative to the folder of the first file, or to the folder in which
/// `#include` found it.
fn copies(model: &Model, args: &NewArgs) -> anyhow::Result<Vec<File>> {
    let beside = args.idl.parent().map(Path::to_owned).unwrap_or_default();
    let folders: Vec<PathBuf> = std::iter::once(beside).chain(args.include.iter().cloned()).collect();
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folders: Vec<PathBuf> = folders
        .iter()
        .map(|folder| if folder.as_os_str().is_empty() { whole(Path::new(".")) } else { whole(folder) })
        .collect();
    let mut files = Vec::new();
    for path in model.sources().paths() {
        let path = whole(path);
        let below = folders.iter().filter_map(|folder| path.strip_prefix(folder).ok());
        let shortest = below.min_by_key(|rest| rest.components().count());
        let rest =
            shortest.map(Path::to_owned).or_else(|| path.file_name().map(PathBuf::from)).unwrap_or_default();
        let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        files.push(File { path: Path::new("idl").join(rest), content });
    }
    Ok(files)
}

/// Returns the name of an object that the server activates.
fn object_name(servant: &ServantNames) -> &str {
    servant.servant.strip_suffix("Impl").unwrap_or(&servant.servant)
}
