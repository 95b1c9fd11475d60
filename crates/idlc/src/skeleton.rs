//! `idlc skeleton`: servants whose methods are not implemented yet.

use idl_compiler::emit::{self, Options, SkeletonOptions};
use idl_compiler::{Diagnostics, Model};

/// Returns the formatted code of a servant for each interface. All methods raise `NO_IMPLEMENT`. `from` is
/// the name of the IDL for the comment in the first line.
///
/// # Errors
/// The errors of [`emit::skeleton`].
pub fn skeleton(
    model: &Model,
    options: &Options,
    skeleton_options: &SkeletonOptions,
    from: &str,
) -> Result<String, Diagnostics> {
    let tokens = emit::skeleton(model, options, skeleton_options)?;
    let text = match syn::parse2::<syn::File>(tokens.clone()) {
        Ok(file) => file.items.into_iter().map(format_item).collect::<Vec<_>>().join("\n"),
        // This is a bug in this program. The invalid code is returned, so that the bug is visible.
        Err(_) => tokens.to_string(),
    };
    let head = format!("// Servants of the interfaces in {from}, made by `idlc skeleton`.");
    Ok(format!("{head}\n// Each method raises NO_IMPLEMENT until you implement it.\n\n{text}"))
}

/// Formats an item, with empty lines between its methods.
fn format_item(item: syn::Item) -> String {
    let text = prettyplease::unparse(&syn::File { shebang: None, attrs: Vec::new(), items: vec![item] });
    let mut spaced = String::with_capacity(text.len());
    let mut previous = "";
    for line in text.lines() {
        if previous == "    }" && line != "}" {
            spaced.push('\n');
        }
        spaced.push_str(line);
        spaced.push('\n');
        previous = line;
    }
    spaced
}

pub(crate) fn no_interface_message(interfaces: &[String]) -> String {
    match interfaces {
        [] => "the given files do not define an interface for remote objects; use --interface for interfaces in included files"
            .to_owned(),
        names => format!("--interface: there is no interface for remote objects with the name `{}`", names.join("`, `")),
    }
}
