//! `idlc skeleton`: initial servants.

use idl_compiler::emit::{self, Options, Skeleton};
use idl_compiler::{Diagnostics, Model};

/// Returns the text of a skeleton, formatted: a servant of each interface, in which every method raises
/// `NO_IMPLEMENT`. `from` names the IDL in the first line.
///
/// # Errors
/// Those of [`emit::skeleton`].
pub fn skeleton(
    model: &Model,
    options: &Options,
    wanted: &Skeleton,
    from: &str,
) -> Result<String, Diagnostics> {
    let tokens = emit::skeleton(model, options, wanted)?;
    let text = match syn::parse2::<syn::File>(tokens.clone()) {
        Ok(file) => file.items.into_iter().map(item).collect::<Vec<_>>().join("\n"),
        // Invalid Rust would be a bug of this program. It is printed, so that the bug becomes visible.
        Err(_) => tokens.to_string(),
    };
    let head = format!("// Servants of the interfaces in {from}, made by `idlc skeleton`.");
    Ok(format!("{head}\n// Each method answers NO_IMPLEMENT until it is written.\n\n{text}"))
}

/// Formats an item, with an empty line between its methods.
fn item(item: syn::Item) -> String {
    let text = prettyplease::unparse(&syn::File { shebang: None, attrs: Vec::new(), items: vec![item] });
    let mut spaced = String::with_capacity(text.len());
    let mut before = "";
    for line in text.lines() {
        if before == "    }" && line != "}" {
            spaced.push('\n');
        }
        spaced.push_str(line);
        spaced.push('\n');
        before = line;
    }
    spaced
}

/// Returns the message for a skeleton without interfaces.
pub(crate) fn nothing(interfaces: &[String]) -> String {
    match interfaces {
        [] => "no file given defines an interface of which there can be objects: name those of included files by --interface"
            .to_owned(),
        names => format!("--interface: no interface of which there can be objects is named `{}`", names.join("`, `")),
    }
}
