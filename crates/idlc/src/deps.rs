//! The list of files that were read.

use std::path::Path;

/// Formats the paths, one per line.
pub(crate) fn list(paths: &[&Path]) -> String {
    paths.iter().map(|path| format!("{}\n", path.display())).collect()
}

/// Formats a rule in the form that compilers write with `-MD`: the target depends on every file, and a
/// removed file is not an error.
pub(crate) fn make(target: Option<&str>, first: Option<&Path>, paths: &[&Path]) -> String {
    let default = || first.map(|path| path.with_extension("rs").display().to_string()).unwrap_or_default();
    let target = target.map_or_else(default, str::to_owned);
    let names: Vec<String> = paths.iter().map(|path| escaped(&path.display().to_string())).collect();
    let mut text = format!("{}:", escaped(&target));
    if !names.is_empty() {
        text.push_str(&format!(" {}", names.join(" \\\n  ")));
    }
    text.push('\n');
    for name in &names {
        text.push_str(&format!("\n{name}:\n"));
    }
    text
}

/// Escapes blanks, `#` and `$` for make.
fn escaped(path: &str) -> String {
    path.replace('$', "$$").replace('#', "\\#").replace(' ', "\\ ")
}
