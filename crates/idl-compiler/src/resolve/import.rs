//! `import`: only definitions of the text and of files that it includes can be imported. For an import, the
//! lexer includes the file that is probably meant ([`crate::lex`]).

use std::collections::HashSet;

use super::scope::{Entity, ScopeId};
use super::symbols::Symbols;
use crate::ast::{Import, Name, StringArg};
use crate::diagnostic::Diagnostic;

pub(super) fn import(symbols: &mut Symbols<'_>, import: Import) {
    match import {
        Import::Name(name) => import_name(symbols, &name),
        Import::Text(text) => symbols.implied.imports.push(text),
    }
}

/// Checks that the name is that of a scope. It is resolved from file level, with or without a leading `::`.
fn import_name(symbols: &mut Symbols<'_>, name: &Name) {
    let mut scope = Some(ScopeId::FILE);
    for (index, part) in name.parts.iter().enumerate() {
        let inside = scope.and_then(|scope| symbols.declared(scope, &part.text).map(|found| (scope, found)));
        let Some((scope_of_part, found)) = inside else {
            // `CORBA` is predeclared.
            if index > 0 || part.text != "CORBA" {
                unknown_import(symbols, name);
            }
            return;
        };
        if found == Entity::Bad {
            return;
        }
        let spelled = symbols.scope(scope_of_part).name(&part.text.to_ascii_lowercase());
        if let Some(entry) = spelled.filter(|entry| entry.name != part.text).cloned() {
            let message = format!("`{}` is spelled differently from `{}`", part.text, entry.name);
            let error = Diagnostic::error("case-mismatch", part.span, message);
            symbols.report(error.and(entry.span, format!("declared here as `{}`", entry.name)));
            return;
        }
        scope = symbols.scope_of(found);
        if scope.is_none() && index + 1 == name.parts.len() {
            let error = symbols.wrong_kind(found, name, "not-a-scope", "a scope");
            symbols.report(error.note("only modules, interfaces and other scopes can be imported"));
        }
    }
}

fn unknown_import(symbols: &mut Symbols<'_>, name: &Name) {
    let message = format!("`{}` is imported, but is not declared before", name.text());
    let error = Diagnostic::error("unknown-import", name.span, message);
    let first = name.parts.first().map_or("", |part| part.text.as_str());
    symbols.report_unless_incomplete(error.help(format!(
        "include the file that declares it, or call it `{first}.idl` and name the folder that contains it: `-I FOLDER`, `include = [\"FOLDER\"]` in the macro, `.include(\"FOLDER\")` in the build script"
    )));
}

/// Checks imported repository ids and files against the whole text, at its end.
pub(super) fn check_imported_texts(symbols: &mut Symbols<'_>) {
    let texts = std::mem::take(&mut symbols.implied.imports);
    if texts.is_empty() {
        return;
    }
    let ids: HashSet<&str> = symbols.model.defs.iter().map(|def| def.repository_id.as_str()).collect();
    let files: HashSet<&str> = symbols.model.sources.names().map(file_name).collect();
    let unknown = texts.iter().filter(|text| match is_file(text) {
        true => !files.contains(file_name(&text.text)),
        false => !ids.contains(text.text.as_str()),
    });
    let errors: Vec<Diagnostic> = unknown.map(unknown_text).collect();
    errors.into_iter().for_each(|error| symbols.report_unless_incomplete(error));
}

/// Returns whether the text is a file name. A repository id contains a `:`.
fn is_file(text: &StringArg) -> bool {
    !text.text.contains(':')
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn unknown_text(text: &StringArg) -> Diagnostic {
    let name = text.text.escape_debug();
    let (message, help) = match is_file(text) {
        true => {
            (format!("the imported file \"{name}\" is not included"), format!("write `#include \"{name}\"`"))
        }
        false => {
            (format!("no definition has the imported id \"{name}\""), "include its declaration".to_owned())
        }
    };
    Diagnostic::error("unknown-import", text.span, message).help(help)
}
