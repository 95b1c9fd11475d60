//! The list of files that were read.

use std::path::Path;

/// Formats the paths, one per line.
pub(crate) fn list(paths: &[&Path]) -> String {
    paths.iter().map(|path| format!("{}\n", path.display())).collect()
}

/// Formats a rule for make in the form that C compilers write with `-MD -MP`: the target depends on every
/// file. An empty rule for each file prevents an error if the file is removed.
pub(crate) fn make_rule(target: Option<&str>, first: Option<&Path>, paths: &[&Path]) -> String {
    let default = || first.map(|path| path.with_extension("rs").display().to_string()).unwrap_or_default();
    let target = target.map_or_else(default, str::to_owned);
    let names: Vec<String> = paths.iter().map(|path| escape(&path.display().to_string())).collect();
    let mut text = format!("{}:", escape(&target));
    if !names.is_empty() {
        text.push_str(&format!(" {}", names.join(" \\\n  ")));
    }
    text.push('\n');
    for name in &names {
        text.push_str(&format!("\n{name}:\n"));
    }
    text
}

/// Escapes spaces, `#` and `$` for make.
fn escape(path: &str) -> String {
    path.replace('$', "$$").replace('#', "\\#").replace(' ', "\\ ")
}
