//! The rules of `idlc breaking`: the reported changes, and why they break clients or servers.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// A client and a server, one with the old IDL and one with the new, cannot communicate correctly.
    Wire,
    /// Clients and servers can communicate, but Rust code for the old IDL does not compile with the new one.
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

#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) id: &'static str,
    pub(crate) class: Class,
    /// The description of the change in `help.txt`.
    #[cfg(test)]
    description: &'static str,
    /// The reason why the change breaks programs.
    pub(crate) reason: &'static str,
}

macro_rules! rules {
    ($($name:ident $id:literal $class:ident $description:literal $reason:literal)+) => {
        $(pub(crate) static $name: Rule = Rule {
            id: $id,
            class: Class::$class,
            #[cfg(test)]
            description: $description,
            reason: $reason,
        };)+

        /// All rules, in the order of the documentation.
        pub(crate) static RULES: &[&Rule] = &[$(&$name),+];
    };
}

rules! {
    TYPE_REMOVED "type-removed" Wire
        "an interface, struct, union, enum, exception or value type was removed"
        "a peer with the old IDL still sends it or calls it"
    KIND_CHANGED "kind-changed" Wire
        "a name stands for another kind of definition, or an interface is abstract or local in one IDL only"
        "the two kinds are encoded differently"
    REPOSITORY_ID "repository-id-changed" Wire
        "the repository id differs, because of a prefix, a version, a module or an explicit id"
        "objects, exceptions, values and anys are identified by repository ids"
    OPERATION_REMOVED "operation-removed" Wire
        "an operation or attribute was removed or renamed, or an attribute has become readonly"
        "a client with the old IDL gets BAD_OPERATION"
    RESULT_CHANGED "result-changed" Wire
        "the result of an operation or the type of an attribute differs"
        "the reply is decoded as another type"
    PARAMETERS_CHANGED "parameters-changed" Wire
        "an operation has more or fewer parameters, or they are in another order"
        "parameters are encoded in order, without names"
    PARAMETER_TYPE "parameter-type-changed" Wire
        "the type of a parameter differs"
        "the argument is decoded as another type"
    DIRECTION_CHANGED "direction-changed" Wire
        "the direction of a parameter (`in`, `out` or `inout`) differs"
        "requests and replies contain other values"
    ONEWAY_CHANGED "oneway-changed" Wire
        "an operation is `oneway` in one IDL only"
        "one side waits for a reply that the other does not send"
    RAISES_CHANGED "raises-changed" Wire
        "an operation or attribute raises other exceptions"
        "a client receives an exception that is not in its IDL as UNKNOWN"
    CONTEXT_CHANGED "context-changed" Wire
        "an operation has other `context` strings"
        "the context is a part of the request"
    BASE_REMOVED "base-removed" Wire
        "an interface, value type or struct has lost a base or a supported interface"
        "clients call inherited operations, and narrow to the base"
    MEMBER_ADDED "member-added" Wire
        "a struct, exception or value type has a new member"
        "members are encoded in order, and a peer with the old IDL does not expect the new one"
    MEMBER_REMOVED "member-removed" Wire
        "a member of a struct, exception or value type was removed"
        "members are encoded in order, and a peer with the old IDL expects the removed one"
    MEMBER_ORDER "member-order-changed" Wire
        "the members of a struct, exception or value type are in another order"
        "members are encoded in order, without names"
    MEMBER_TYPE "member-type-changed" Wire
        "the type of a member, or of the content of a value box, differs"
        "the member is decoded as another type"
    OPTIONAL_CHANGED "optional-changed" Wire
        "a member is `@optional` in one IDL only"
        "an optional member is encoded as a sequence with at most one element"
    BOUND_CHANGED "bound-changed" Wire
        "the bound of a string, sequence or map, or the range of a number, differs"
        "the side with the smaller bound or range rejects some values of the other side"
    TYPEDEF_CHANGED "typedef-changed" Wire
        "a typedef names another type"
        "items of this type are encoded differently"
    ENUMERATOR_REMOVED "enumerator-removed" Wire
        "an enumerator was removed"
        "the numbers of a peer with the old IDL stand for no enumerator or for another one"
    ENUMERATOR_ORDER "enumerator-order-changed" Wire
        "an enumerator has another position"
        "enumerators are encoded as their positions"
    ENUMERATOR_ADDED "enumerator-added" Wire
        "an enum has a new enumerator at its end"
        "a peer with the old IDL rejects the number of the new enumerator, but no other one"
    DISCRIMINATOR "discriminator-changed" Wire
        "the discriminator of a union has another type"
        "the discriminator is encoded before the member"
    CASE_REMOVED "case-removed" Wire
        "a case of a union was removed"
        "a peer with the old IDL still sends this case"
    CASE_ADDED "case-added" Wire
        "a union has a new case"
        "for a peer with the old IDL, the label selects the default case or no member"
    CASE_LABELS "case-labels-changed" Wire
        "a case of a union has other labels"
        "the same discriminator selects another member"
    CASE_TYPE "case-type-changed" Wire
        "the member of a case has another type"
        "the member is decoded as another type"
    VALUE_CHANGED "value-changed" Wire
        "a value type is `custom`, `abstract`, `truncatable` or an event in one IDL only"
        "the state is encoded differently, or receivers truncate it differently"
    BITS_CHANGED "bits-changed" Wire
        "a bitset or bitmask has other fields, widths, positions or another size"
        "the same bits have another meaning"
    CONSTANT_CHANGED "constant-changed" Wire
        "a constant has another value"
        "client and server use different values"
    OPERATION_ADDED "operation-added" Rust
        "an interface or value type has a new operation or attribute"
        "the servant trait requires another method, unless the option `default_bodies` gives it a body"
    OPERATION_MOVED "operation-moved" Rust
        "an operation or attribute is inherited in one IDL only"
        "the method is in another servant trait"
    BASE_ADDED "base-added" Rust
        "an interface or value type has a new base, or supports another interface"
        "servants must also implement the trait of the base"
    RENAMED "renamed" Rust
        "a definition has another name and the same repository id"
        "Rust types have the names of the IDL"
    MEMBER_RENAMED "member-renamed" Rust
        "a member, case, field or flag has another name and the same position"
        "fields and variants have the names of the IDL"
    TYPEDEF_REMOVED "typedef-removed" Rust
        "a typedef was removed"
        "Rust code that uses the name does not compile"
    CONSTANT_REMOVED "constant-removed" Rust
        "a constant was removed, or has another type"
        "Rust code that uses the constant does not compile"
    NIL_CHANGED "nil-changed" Rust
        "a reference is `@non_nil` in one IDL only"
        "the Rust type is `Option<Ref>` for one IDL and `Ref` for the other"
    STREAM_CHANGED "stream-changed" Rust
        "a parameter or result is a `@stream` in one IDL only"
        "the Rust type is a stream for one IDL and a sequence for the other"
    FACTORY_CHANGED "factory-changed" Rust
        "the factories of a value type differ"
        "the trait for the factories has other methods"
    VISIBILITY_CHANGED "visibility-changed" Rust
        "a state member is public in one IDL and private in the other"
        "a private member is not a public field"
}

/// The list of rules for `--help`. It is stored as text, so that the start of the program is fast.
pub(crate) const HELP: &str = include_str!("help.txt");

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// The maximum width of a line of the help without its indentation.
    const MAX_WIDTH: usize = 72;

    /// Returns the expected content of `help.txt`.
    fn help() -> String {
        let mut text = String::new();
        for class in [Class::Wire, Class::Rust] {
            let head = match class {
                Class::Wire => "Rules of class `wire` (old and new programs cannot communicate correctly):",
                Class::Rust => "Rules of class `rust` (Rust code for the old IDL does not compile):",
            };
            let _ = writeln!(text, "{head}");
            for rule in RULES.iter().filter(|rule| rule.class == class) {
                let _ = writeln!(text, "  {}", rule.id);
                push_wrapped(&mut text, rule.description);
                push_wrapped(&mut text, &format!("({})", rule.reason));
            }
            text.push('\n');
        }
        text.push_str(
            "New definitions are not reported.\n\nExit codes: 0 no breaking changes, 1 breaking changes, 2 errors in the command line or the IDL.",
        );
        text
    }

    fn push_wrapped(to: &mut String, text: &str) {
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
    fn the_help_contains_all_rules() {
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/breaking/help.txt"), help()).unwrap();
        } else {
            assert_eq!(HELP, help(), "use BLESS=1 to update it");
        }
    }

    #[test]
    fn the_ids_of_rules_are_unique_and_in_lower_case() {
        let mut ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
        assert!(ids.iter().all(|id| id.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
        ids.sort_unstable();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}
