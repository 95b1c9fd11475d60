//! The rules of `idlc breaking`: the reported changes, and why they break clients or servers.

/// The class of a breaking change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// A client and a server, one with the old IDL and one with the new, cannot communicate correctly.
    Wire,
    /// Rust written for the old IDL does not compile with the new one, although peers can communicate.
    Rust,
}

impl Class {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Class::Wire => "wire",
            Class::Rust => "rust",
        }
    }
}

/// A kind of change.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) id: &'static str,
    pub(crate) class: Class,
    /// The change, for `help.txt`.
    #[cfg(test)]
    what: &'static str,
    /// The reason why it breaks something.
    pub(crate) why: &'static str,
}

macro_rules! rules {
    ($($name:ident $id:literal $class:ident $what:literal $why:literal)+) => {
        $(pub(crate) static $name: Rule = Rule {
            id: $id,
            class: Class::$class,
            #[cfg(test)]
            what: $what,
            why: $why,
        };)+

        /// All rules, in the order of the documentation.
        pub(crate) static RULES: &[&Rule] = &[$(&$name),+];
    };
}

rules! {
    TYPE_REMOVED "type-removed" Wire
        "an interface, struct, union, enum, exception or value type is gone"
        "a peer with the old IDL still sends it or calls it"
    KIND_CHANGED "kind-changed" Wire
        "a name stands for another kind of definition, or an interface is abstract or local in one IDL only"
        "the two kinds are encoded differently"
    REPOSITORY_ID "repository-id-changed" Wire
        "the repository id differs: a prefix, a version, a module or an id of its own"
        "objects, exceptions, values and anys are recognised by their repository ids"
    OPERATION_REMOVED "operation-removed" Wire
        "an operation or attribute is gone, renamed, or an attribute has become readonly"
        "a client with the old IDL gets BAD_OPERATION"
    RESULT_CHANGED "result-changed" Wire
        "the result of an operation or the type of an attribute differs"
        "the reply is decoded as another type"
    PARAMETERS_CHANGED "parameters-changed" Wire
        "an operation has more or fewer parameters, or in another order"
        "parameters are encoded in order, without names"
    PARAMETER_TYPE "parameter-type-changed" Wire
        "the type of a parameter differs"
        "the argument is decoded as another type"
    DIRECTION_CHANGED "direction-changed" Wire
        "a parameter is `in`, `out` or `inout` in one IDL and something else in the other"
        "requests and replies hold other values"
    ONEWAY_CHANGED "oneway-changed" Wire
        "an operation is `oneway` in one IDL only"
        "one side waits for a reply that the other does not send"
    RAISES_CHANGED "raises-changed" Wire
        "an operation or attribute raises other exceptions"
        "an exception that the IDL of the client does not list arrives as UNKNOWN"
    CONTEXT_CHANGED "context-changed" Wire
        "an operation has other `context` strings"
        "a request ends with the context, or without one"
    BASE_REMOVED "base-removed" Wire
        "an interface, value type or struct lacks a base that it had, or an interface that it supported"
        "clients call inherited operations, and narrow to the base"
    MEMBER_ADDED "member-added" Wire
        "a struct, exception or value type has a new member"
        "members are encoded in order, and a peer with the old IDL does not expect it"
    MEMBER_REMOVED "member-removed" Wire
        "a struct, exception or value type lacks a member that it had"
        "members are encoded in order, and a peer with the old IDL expects it"
    MEMBER_ORDER "member-order-changed" Wire
        "the members of a struct, exception or value type are in another order"
        "members are encoded in order, without names"
    MEMBER_TYPE "member-type-changed" Wire
        "the type of a member, or of what a value box holds, differs"
        "the member is decoded as another type"
    OPTIONAL_CHANGED "optional-changed" Wire
        "a member is `@optional` in one IDL only"
        "an optional member is encoded as a sequence of none or one"
    BOUND_CHANGED "bound-changed" Wire
        "the bound of a string, sequence or map, or the range of a number, differs"
        "the side with the narrower bound refuses what the other sends"
    TYPEDEF_CHANGED "typedef-changed" Wire
        "a typedef names another type"
        "whatever uses it is encoded differently"
    ENUMERATOR_REMOVED "enumerator-removed" Wire
        "an enum lacks an enumerator that it had"
        "a peer with the old IDL sends a number that is not in the enum, or means another enumerator"
    ENUMERATOR_ORDER "enumerator-order-changed" Wire
        "an enumerator has another position"
        "enumerators are encoded as their positions"
    ENUMERATOR_ADDED "enumerator-added" Wire
        "an enum has a new enumerator at its end"
        "a peer with the old IDL refuses its number; nothing else of the enum changes"
    DISCRIMINATOR "discriminator-changed" Wire
        "the discriminator of a union has another type"
        "it is encoded before the member"
    CASE_REMOVED "case-removed" Wire
        "a union lacks a case that it had"
        "a peer with the old IDL sends it"
    CASE_ADDED "case-added" Wire
        "a union has a new case"
        "a peer with the old IDL takes its label for the default, or for no member at all"
    CASE_LABELS "case-labels-changed" Wire
        "a case of a union has other labels"
        "the same discriminator selects another member"
    CASE_TYPE "case-type-changed" Wire
        "the member of a case has another type"
        "the member is decoded as another type"
    VALUE_CHANGED "value-changed" Wire
        "a value type is `custom`, `abstract`, `truncatable` or an event in one IDL only"
        "its state is encoded differently, or receivers cut it off differently"
    BITS_CHANGED "bits-changed" Wire
        "a bitset or bitmask has other fields, widths, positions or another size"
        "the same bits mean something else"
    CONSTANT_CHANGED "constant-changed" Wire
        "a constant has another value"
        "the sides compute with different values"
    OPERATION_ADDED "operation-added" Rust
        "an interface or value type has a new operation or attribute"
        "the servant trait requires another method, unless the option `default_bodies` gives it a body"
    OPERATION_MOVED "operation-moved" Rust
        "an operation or attribute is inherited now, or no longer"
        "the method is in another servant trait"
    BASE_ADDED "base-added" Rust
        "an interface or value type has a new base, or supports another interface"
        "servants must implement its trait, too"
    RENAMED "renamed" Rust
        "a definition has another name, with the repository id of before"
        "Rust types have the names of the IDL"
    MEMBER_RENAMED "member-renamed" Rust
        "a member, case, field or flag has another name at the same place"
        "fields and variants have the names of the IDL"
    TYPEDEF_REMOVED "typedef-removed" Rust
        "a typedef is gone"
        "Rust that uses its name does not compile"
    CONSTANT_REMOVED "constant-removed" Rust
        "a constant is gone, or has another type"
        "Rust that uses it does not compile"
    NIL_CHANGED "nil-changed" Rust
        "a reference is `@non_nil` in one IDL only"
        "the Rust type is `Option<Ref>` in one and `Ref` in the other"
    STREAM_CHANGED "stream-changed" Rust
        "a parameter or result is a `@stream` in one IDL only"
        "the Rust type is a stream in one and a sequence in the other"
    FACTORY_CHANGED "factory-changed" Rust
        "the factories of a value type differ"
        "the trait of its factories has other methods"
    VISIBILITY_CHANGED "visibility-changed" Rust
        "a state member is public in one IDL and private in the other"
        "a private member is no public field"
}

/// The rules, for `--help`. Stored as text, because every start of the program defines all of its commands.
pub(crate) const HELP: &str = include_str!("help.txt");

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// Maximum width of a line of the help, without its indentation.
    const MAX_WIDTH: usize = 72;

    /// Returns the expected content of `help.txt`.
    fn help() -> String {
        let mut text = String::new();
        for class in [Class::Wire, Class::Rust] {
            let head = match class {
                Class::Wire => "Rules of class `wire`: old and new peers do not understand each other:",
                Class::Rust => "Rules of class `rust`: they do, but Rust for the old IDL does not compile:",
            };
            let _ = writeln!(text, "{head}");
            for rule in RULES.iter().filter(|rule| rule.class == class) {
                let _ = writeln!(text, "  {}", rule.id);
                wrapped(&mut text, rule.what);
                wrapped(&mut text, &format!("({})", rule.why));
            }
            text.push('\n');
        }
        text.push_str(
            "New definitions of any kind are no change that is reported.\n\nExit codes: 0 nothing breaks, 1 something does, 2 the command line or the IDL has errors.",
        );
        text
    }

    /// Adds a text as indented lines that fit every terminal.
    fn wrapped(to: &mut String, text: &str) {
        let mut width = 0;
        for word in text.split(' ') {
            if width > 0 && width + word.len() >= MAX_WIDTH {
                to.push('\n');
                width = 0;
            }
            to.push_str(if width == 0 { "      " } else { " " });
            to.push_str(word);
            width += word.len() + 1;
        }
        to.push('\n');
    }

    #[test]
    fn the_help_has_every_rule() {
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/breaking/help.txt"), help()).unwrap();
        } else {
            assert_eq!(HELP, help(), "BLESS=1 writes it anew");
        }
    }

    #[test]
    fn rules_have_ids_of_their_own_in_lower_case() {
        let mut ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
        assert!(ids.iter().all(|id| id.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
        ids.sort_unstable();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}
