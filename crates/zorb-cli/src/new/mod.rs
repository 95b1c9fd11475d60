//! `zorb new`: creates a cargo project with a server and a client for an IDL file.

mod templates;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use idl_compiler::emit::{Options, ServantNames, SkeletonOptions, servant_names};
use idl_compiler::{Compiler, Disk, Model};

use crate::failure::Verdict;

#[derive(Debug, clap::Args)]
pub(crate) struct NewArgs {
    /// The name of the project and of its folder
    #[arg(value_name = "NAME", value_parser = parse_name)]
    name: String,
    /// The IDL file, which is copied together with the files that it includes
    #[arg(long, value_name = "FILE")]
    idl: PathBuf,
    /// A folder that is searched by `#include`; may be repeated
    #[arg(short = 'I', long, value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// A folder with the sources of zorb, on which the project depends instead of the published crate
    #[arg(long, value_name = "FOLDER")]
    zorb_path: Option<PathBuf>,
    /// The folder in which the project is created
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    into: PathBuf,
}

/// Parses a package name that cargo accepts.
fn parse_name(text: &str) -> Result<String, String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_word) {
        return Ok(text.to_owned());
    }
    Err("a name must start with a letter, and contain only letters, digits, `-` and `_`".to_owned())
}

struct ProjectFile {
    path: PathBuf,
    content: Vec<u8>,
}

pub(crate) fn run(args: &NewArgs) -> anyhow::Result<Verdict> {
    let folder = args.into.join(&args.name);
    if fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{} is not empty; use another name, or remove the folder", folder.display());
    }
    let files = match project_files(args)? {
        Ok(files) => files,
        Err(errors) => {
            let _ = writeln!(io::stderr(), "{errors}");
            return Ok(Verdict::Bad);
        }
    };
    for file in &files {
        let path = folder.join(&file.path);
        let parent = path.parent().unwrap_or(&folder);
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot create the folder {}", parent.display()))?;
        fs::write(&path, &file.content).with_context(|| format!("cannot write {}", path.display()))?;
    }
    // A closed standard output is not an error, because the project has been created.
    let _ = writeln!(
        io::stdout(),
        "created {folder}\n  cd {folder} && cargo run --bin server\n  write the servants in src/servants.rs",
        folder = folder.display()
    );
    Ok(Verdict::Good)
}

/// Returns the files of the project. The inner error is the text of the errors in the IDL.
fn project_files(args: &NewArgs) -> anyhow::Result<Result<Vec<ProjectFile>, String>> {
    let mut compiler = Compiler::default().files(Disk::new());
    for folder in &args.include {
        compiler = compiler.include(folder);
    }
    let model = match compiler.compile_files([&args.idl]) {
        Ok(model) => model,
        Err(errors) => return Ok(Err(errors.to_string())),
    };
    let idl_files = copied_idl_files(&model, args)?;
    let Some(main) = idl_files.first().map(|file| file.path.display().to_string().replace('\\', "/")) else {
        bail!("{} cannot be read", args.idl.display());
    };
    let options = Options::default();
    let skeleton = SkeletonOptions { module: "crate::idl".parse().ok(), interfaces: Vec::new() };
    let generated = servant_names(&model, &options, &skeleton)
        .and_then(|names| Ok((names, idlc::skeleton(&model, &options, &skeleton, &main)?)));
    let (servants, skeleton) = match generated {
        Ok(generated) => generated,
        Err(errors) => return Ok(Err(errors.to_string())),
    };
    if servants.iter().all(|servant| servant.is_local) {
        return Ok(Err(format!("{} does not define an interface for remote objects", args.idl.display())));
    }
    let zorb = match &args.zorb_path {
        None => format!("\"{}\"", env!("CARGO_PKG_VERSION")),
        Some(path) => {
            let path = path
                .canonicalize()
                .with_context(|| format!("the folder {} does not exist", path.display()))?;
            format!("{{ path = \"{}\" }}", path.display().to_string().escape_default())
        }
    };
    let project =
        templates::Project { name: &args.name, idl_path: &main, zorb_dependency: &zorb, servants: &servants };
    let text = |path: &str, content: String| ProjectFile { path: path.into(), content: content.into_bytes() };
    let mut files = vec![
        text("Cargo.toml", project.manifest()),
        text("README.md", project.readme()),
        text(".gitignore", "/target\n".to_owned()),
        text("src/lib.rs", project.library()),
        text("src/servants.rs", skeleton),
        text("src/bin/server.rs", project.server()),
        text("src/bin/client.rs", project.client()),
    ];
    files.extend(idl_files);
    Ok(Ok(files))
}

/// Returns copies of all IDL files that were read, for the folder `idl`. The first is that of `--idl`.
///
/// Each file keeps its path relative to the folder of the first file, or to a folder that `#include`
/// searches. Therefore all `#include` lines remain valid.
fn copied_idl_files(model: &Model, args: &NewArgs) -> anyhow::Result<Vec<ProjectFile>> {
    let own_folder = args.idl.parent().map(Path::to_owned).unwrap_or_default();
    let folders: Vec<PathBuf> = std::iter::once(own_folder).chain(args.include.iter().cloned()).collect();
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folders: Vec<PathBuf> = folders
        .iter()
        .map(
            |folder| {
                if folder.as_os_str().is_empty() { canonical(Path::new(".")) } else { canonical(folder) }
            },
        )
        .collect();
    let mut files = Vec::new();
    for path in model.sources().paths() {
        let path = canonical(path);
        let relative_paths = folders.iter().filter_map(|folder| path.strip_prefix(folder).ok());
        let shortest = relative_paths.min_by_key(|relative| relative.components().count());
        let relative =
            shortest.map(Path::to_owned).or_else(|| path.file_name().map(PathBuf::from)).unwrap_or_default();
        let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        files.push(ProjectFile { path: Path::new("idl").join(relative), content });
    }
    Ok(files)
}

/// Returns the name under which the server activates an object.
fn object_name(servant: &ServantNames) -> &str {
    servant.servant.strip_suffix("Impl").unwrap_or(&servant.servant)
}
