//! The module `Components` of the CORBA Component Model. It is predeclared in every text that uses a
//! component construct or a name of the module, unless the text declares a module `Components` itself.
//!
//! The module is written in IDL. The compiler parses only the definitions that the text needs, after the
//! text.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::ast::{Item, ItemKind};
use crate::diagnostic::Collector;
use crate::lex;
use crate::parse::{self, Parsed};
use crate::source::Sources;
use crate::work;

/// The definitions, separated by empty lines. Types of `CORBA` are replaced by types with the same encoding:
/// `RepositoryId` by `string`, `OctetSeq` by `sequence<octet>`, and `IRObject` by `Object`.
const DEFINITIONS: &str = include_str!("components.idl");

const FILE_NAME: &str = "Components.idl";

/// Inserts those definitions of `Components` that the text needs, before the text's own definitions.
pub(crate) fn add(parsed: &mut Parsed, sources: &mut Sources, out: &mut Collector) {
    let is_components =
        |item: &Item| matches!(&item.kind, ItemKind::Module { name, .. } if name.text == "Components");
    let mut needed: HashSet<&str> = parsed.needed_component_names.iter().copied().collect();
    if !parsed.declares_components {
        needed.extend(parsed.components_names.iter().map(String::as_str));
    }
    if needed.is_empty() || parsed.items.iter().any(is_components) {
        return;
    }
    let Some(text) = module_text(needed) else { return };
    let tokens = lex::lex_predeclared(FILE_NAME.to_owned(), text, sources, out).tokens;
    work::count_tokens(tokens.len());
    let mut items = parse::parse(tokens, false, out).items;
    items.append(&mut parsed.items);
    parsed.items = items;
}

/// Returns a module with these definitions and all their dependencies, or `None` if no name is known.
fn module_text(names: HashSet<&str>) -> Option<String> {
    let definitions: Vec<(&str, &str)> =
        DEFINITIONS.split("\n\n").filter_map(|text| Some((declared_name(text)?, text.trim_end()))).collect();
    let mut indices: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, (name, _)) in definitions.iter().enumerate() {
        indices.entry(name).or_default().push(index);
    }
    let mut pending: Vec<&str> = names.into_iter().collect();
    let mut included = BTreeSet::new();
    while let Some(name) = pending.pop() {
        for index in indices.get(name).into_iter().flatten() {
            if let (true, Some((_, text))) = (included.insert(*index), definitions.get(*index)) {
                pending.extend(words(text));
            }
        }
    }
    let texts: Vec<&str> = included.iter().filter_map(|index| Some(definitions.get(*index)?.1)).collect();
    let body = texts.join("\n\n");
    (!body.is_empty()).then(|| {
        format!(
            "#pragma prefix \"omg.org\"\n/// The OMG's component model.\nmodule Components {{\n{body}\n}};\n"
        )
    })
}

fn declared_name(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| !line.starts_with("///"))?;
    let mut words = words(line);
    match words.next()? {
        "typedef" => words.last(),
        "abstract" => words.nth(1),
        _ => words.next(),
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{DEFINITIONS, declared_name, module_text};
    use crate::{Compiler, Source};

    #[test]
    fn all_definitions_compile_with_strict_names() {
        let all: HashSet<&str> = DEFINITIONS.split("\n\n").filter_map(declared_name).collect();
        assert!(all.len() > 40, "{all:?}");
        let text = module_text(all).expect("definitions");
        let model = Compiler::default().strict_names(true).compile(Source::text("Components.idl", text));
        let model = model.unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        assert!(model.warnings().is_empty(), "{}", model.warnings().render(false));
        let object = model.find("Components::CCMObject").expect("the base of components");
        assert_eq!(model.def(object).repository_id, "IDL:omg.org/Components/CCMObject:1.0");
        assert_eq!(model.all_operations(object).count(), 4 + 5 + 11 + 6);
    }

    #[test]
    fn only_needed_definitions_and_their_dependencies_are_inserted() {
        let first_lines = |needed: &[&'static str]| {
            let text = module_text(needed.iter().copied().collect()).unwrap_or_default();
            let lines = text
                .split("\n\n")
                .flat_map(str::lines)
                .filter(|line| !line.starts_with(['/', ' ', '}', '#']));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(first_lines(&["Nothing"]), [""; 0]);
        assert_eq!(
            first_lines(&["EventConsumerBase"]),
            [
                "module Components {",
                "exception BadEventType { string expected_event_type; };",
                "abstract valuetype EventBase { };",
                "interface EventConsumerBase {"
            ]
        );
    }
}
