//! The module `Components` of the CORBA Component Model. It is predeclared in every text that uses a
//! component construct or names something of the module, unless the text opens a module of this name itself.
//!
//! The module is IDL. It is read after the text, as a file that no `#include` names, and only the definitions
//! that the text needs are kept.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::ast::{Item, ItemKind};
use crate::diagnostic::Collector;
use crate::lex;
use crate::parse::{self, Parsed};
use crate::source::Sources;
use crate::work;

/// The definitions, separated by empty lines. `CORBA::RepositoryId` is written as `string`, `CORBA::OctetSeq`
/// as its definition, and `CORBA::IRObject` of the interface repository as `Object`. Their encodings are the
/// same.
const DEFINITIONS: &str = include_str!("components.idl");

/// The file's name in messages.
const NAME: &str = "Components.idl";

/// Inserts the definitions of `Components` that the text needs before it.
pub(crate) fn add(parsed: &mut Parsed, sources: &mut Sources, out: &mut Collector) {
    let opens =
        |item: &Item| matches!(&item.kind, ItemKind::Module { name, .. } if name.text == "Components");
    let mut wanted: HashSet<&str> = parsed.components.iter().copied().collect();
    if !parsed.declares_components {
        wanted.extend(parsed.named_components.iter().map(String::as_str));
    }
    if wanted.is_empty() || parsed.items.iter().any(opens) {
        return;
    }
    let Some(text) = text(wanted) else { return };
    let tokens = lex::lex_predeclared(NAME.to_owned(), text, sources, out).tokens;
    work::tokens(tokens.len());
    let mut items = parse::parse(tokens, false, out).items;
    items.append(&mut parsed.items);
    parsed.items = items;
}

/// Returns the definitions of these names and of all their dependencies; `None` if there are none.
fn text(mut wanted: HashSet<&str>) -> Option<String> {
    let definitions: Vec<(&str, &str)> =
        DEFINITIONS.split("\n\n").filter_map(|text| Some((declared(text)?, text.trim_end()))).collect();
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, (name, _)) in definitions.iter().enumerate() {
        places.entry(name).or_default().push(index);
    }
    let (mut taken, mut todo): (BTreeSet<usize>, Vec<&str>) = (BTreeSet::new(), wanted.drain().collect());
    while let Some(name) = todo.pop() {
        for index in places.get(name).into_iter().flatten() {
            if let (true, Some((_, text))) = (taken.insert(*index), definitions.get(*index)) {
                todo.extend(words(text));
            }
        }
    }
    let texts = taken.iter().filter_map(|index| definitions.get(*index)).map(|(_, text)| *text);
    let body = texts.collect::<Vec<_>>().join("\n\n");
    (!body.is_empty()).then(|| {
        format!(
            "#pragma prefix \"omg.org\"\n/// The OMG's component model.\nmodule Components {{\n{body}\n}};\n"
        )
    })
}

/// Returns the name that a definition declares.
fn declared(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| !line.starts_with("///"))?;
    let mut words = words(line);
    match words.next()? {
        "typedef" => words.last(),
        "abstract" => words.nth(1),
        _ => words.next(),
    }
}

/// Returns the words of a text that can be names.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{DEFINITIONS, declared, text};
    use crate::{Compiler, Source};

    #[test]
    fn all_of_it_is_right_by_the_strictest_rules() {
        let all: HashSet<&str> = DEFINITIONS.split("\n\n").filter_map(declared).collect();
        assert!(all.len() > 40, "{all:?}");
        let text = text(all).expect("a text");
        let model = Compiler::default().strict_names(true).compile(Source::text("Components.idl", text));
        let model = model.unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        assert!(model.warnings().is_empty(), "{}", model.warnings().render(false));
        let object = model.find("Components::CCMObject").expect("the base of components");
        assert_eq!(model.def(object).repository_id, "IDL:omg.org/Components/CCMObject:1.0");
        assert_eq!(model.all_operations(object).count(), 4 + 5 + 11 + 6);
    }

    #[test]
    fn only_what_is_needed_is_taken() {
        let names = |wanted: &[&'static str]| {
            let text = text(wanted.iter().copied().collect()).unwrap_or_default();
            let taken = text
                .split("\n\n")
                .flat_map(str::lines)
                .filter(|line| !line.starts_with(['/', ' ', '}', '#']));
            taken.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(names(&["Nothing"]), [""; 0]);
        assert_eq!(
            names(&["EventConsumerBase"]),
            [
                "module Components {",
                "exception BadEventType { string expected_event_type; };",
                "abstract valuetype EventBase { };",
                "interface EventConsumerBase {"
            ]
        );
    }
}
