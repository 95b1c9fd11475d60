//! All kinds of findings: the possible values of [`crate::Diagnostic::code`].

use super::Severity;

/// A kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The name, in kebab case.
    pub code: &'static str,
    /// The highest severity of these findings in IDL files. In some contexts, it may be lower.
    pub worst: Severity,
    /// The stage of the compiler that reports findings of this kind.
    pub stage: Stage,
    /// What is wrong in the IDL.
    pub meaning: &'static str,
}

/// A stage of the compiler, or a group of checks in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// Opening files, and the end of a compilation.
    Input,
    /// The preprocessor.
    Preprocessor,
    /// Lexer and parser.
    Syntax,
    /// Names and scopes.
    Names,
    /// Types, interfaces, value types and their bases.
    Types,
    /// Operations and attributes.
    Operations,
    /// Constant expressions.
    Constants,
    /// Annotations, pragmas and repository ids.
    Annotations,
    /// Problems of the Rust code that is generated from the IDL. `idlc check` does not report them.
    Rust,
}

impl Kind {
    /// Returns all kinds, each once.
    pub fn all() -> &'static [Kind] {
        ALL
    }

    /// Returns the kind with this code.
    pub fn of(code: &str) -> Option<&'static Kind> {
        ALL.iter().find(|kind| kind.code == code)
    }
}

const fn error(stage: Stage, code: &'static str, meaning: &'static str) -> Kind {
    Kind { code, worst: Severity::Error, stage, meaning }
}

const fn warning(stage: Stage, code: &'static str, meaning: &'static str) -> Kind {
    Kind { code, worst: Severity::Warning, stage, meaning }
}

use Stage::{Annotations, Constants, Input, Names, Operations, Preprocessor, Rust, Syntax, Types};

const ALL: &[Kind] = &[
    error(Input, "cannot-read", "a file to compile that cannot be read"),
    error(Input, "more-errors", "the number of errors after the first 200, which are not shown"),
    error(Input, "too-large", "files, tokens, macros or arrays beyond the compiler's limits"),
    error(Preprocessor, "include", "`#include` of a file that does not exist, or without a file name"),
    error(Preprocessor, "include-depth", "files that include each other, or includes nested too deeply"),
    error(Preprocessor, "error-line", "`#error`"),
    warning(Preprocessor, "warning-line", "`#warning`"),
    error(
        Preprocessor,
        "unknown-directive",
        "an unknown preprocessor directive; any directive except `#pragma` among Rust tokens",
    ),
    warning(Preprocessor, "extra-tokens", "text after a directive that takes none"),
    error(Preprocessor, "conditional", "`#if`, `#else` and `#endif` that do not match"),
    error(Preprocessor, "bad-condition", "an expression of `#if` that has no value"),
    error(Preprocessor, "bad-macro", "a malformed `#define`"),
    error(Preprocessor, "bad-paste", "`##` between parts that do not form one token"),
    error(Preprocessor, "macro-arguments", "a wrong number of arguments of a macro"),
    warning(Preprocessor, "macro-redefined", "a second, different definition of a macro"),
    error(Preprocessor, "bad-line", "a malformed `#line`"),
    error(Syntax, "syntax", "a text that does not match the grammar"),
    error(Syntax, "stray-character", "a character that has no meaning in IDL"),
    error(
        Syntax,
        "bad-identifier",
        "an identifier with characters other than letters, digits and `_`, or with two leading `_`",
    ),
    error(Syntax, "bad-literal", "a number, character or string literal that is malformed or too large"),
    warning(Syntax, "unknown-escape", "an escape sequence that IDL does not have"),
    error(Syntax, "unterminated", "a string literal, character literal or comment without an end"),
    error(Syntax, "empty", "a module, port type, union, enum, bitset or bitmask without contents"),
    error(Syntax, "too-deep", "definitions, types, expressions or macro calls that are nested too deeply"),
    error(Syntax, "anonymous-type", "a type that needs a name (a typedef) to be used at this place"),
    error(
        Names,
        "template-module",
        "an instance of something that is not a template module, or of a template module inside itself",
    ),
    error(Names, "template-argument", "a wrong kind or number of arguments of a template module"),
    error(Names, "not-found", "a name that is not declared"),
    error(Names, "not-a-scope", "`A::B` where `A` does not contain names"),
    error(Names, "not-a-type", "a name that is not a type, where a type is required"),
    error(Names, "not-a-constant", "a name that is not a constant, where a constant is required"),
    error(Names, "not-an-exception", "a name that is not an exception, where an exception is required"),
    error(Names, "not-an-interface", "a name that is not an interface, where an interface is required"),
    error(Names, "not-a-value", "a name that is not a value type, where a value type is required"),
    error(Names, "not-a-base", "a base of a different kind than the definition that inherits from it"),
    error(Names, "not-a-component", "a name that is not a component, where a component is required"),
    error(Names, "not-a-connector", "a name that is not a connector, where a connector is required"),
    error(Names, "not-a-home", "a name that is not a home, where a home is required"),
    error(Names, "not-an-event", "a name that is not an event type, where an event type is required"),
    error(Names, "not-a-port-type", "a name that is not a port type, where a port type is required"),
    error(Names, "unknown-import", "`import` of a scope or file that does not exist"),
    error(Names, "ambiguous", "a name that several bases declare"),
    error(Names, "redefinition", "a name that is already declared in its scope"),
    error(Names, "case-collision", "names of one scope that differ only in case"),
    error(Names, "case-mismatch", "a name whose case differs from its declaration"),
    error(Names, "keyword-collision", "a name that differs from a keyword only in case"),
    error(
        Names,
        "use-then-define",
        "a name that is declared in a scope after it was used there for something else",
    ),
    error(Names, "enclosing-scope-name", "a declaration with the name of the directly enclosing scope"),
    error(Names, "forward-kind", "a forward declaration of another kind than the definition"),
    error(Names, "never-defined", "a forward declaration without a definition in its scope"),
    error(Types, "incomplete", "a type or base that is not defined yet"),
    error(Types, "recursive", "a type that contains itself other than in a sequence or value type"),
    error(Types, "bad-bound", "a bound or array size that is not from 1 to 4294967295"),
    error(Types, "bad-fixed", "a number of digits or a scale that `fixed` cannot have"),
    error(Types, "bad-key", "a map with a key type whose values cannot be compared"),
    error(Types, "bad-bits", "a bitset or bitmask with too many bits or malformed fields"),
    error(Types, "bad-discriminator", "a type that cannot be the discriminator of a union"),
    error(Types, "duplicate-label", "a second `default`, or the same label twice"),
    error(Types, "default-unreachable", "`default` in a union whose labels list all values"),
    error(Types, "duplicate-base", "a base that is listed twice"),
    error(Types, "inheritance-clash", "operations of the same name inherited from two bases"),
    error(
        Types,
        "inherited-redefinition",
        "a declaration with the name of an inherited operation, attribute or member",
    ),
    error(Types, "not-abstract", "an abstract interface with a base that is not abstract"),
    error(Types, "local-base", "an interface that is not local, but has a local base"),
    error(Types, "local-type", "a local type in a type or operation that is used across processes"),
    error(Types, "native-member", "a native type in a type that is marshalled"),
    error(Types, "box-of-value", "a value box that holds a value"),
    error(Types, "abstract-value", "an abstract value type with state or factories"),
    error(Types, "value-inheritance", "several bases with state, or one that is not listed first"),
    error(Types, "supports", "supported interfaces that contradict each other"),
    error(Types, "truncatable", "`truncatable` where no part of the value can be omitted"),
    error(Types, "primary-key", "a primary key whose type the component model does not allow"),
    error(Types, "home-inheritance", "a home that manages a component unrelated to that of its base"),
    error(Types, "too-many-ports", "port types that together expand to more ports than the compiler's limit"),
    error(Operations, "oneway", "a oneway operation with results or exceptions"),
    warning(Operations, "duplicate-raises", "an exception that is listed twice"),
    error(Operations, "attribute-raises", "a `raises` or similar clause that the attribute cannot have"),
    error(Operations, "bad-context", "a context string that names no property"),
    error(Constants, "out-of-range", "a value outside the range of its type"),
    error(Constants, "type-mismatch", "a value of a different type than required"),
    error(Constants, "not-a-constant-type", "a type that constants cannot have"),
    error(Constants, "division-by-zero", "a division by zero"),
    error(Constants, "bad-shift", "a shift by less than 0 or more than 63 bits"),
    warning(
        Constants,
        "precision-loss",
        "digits that are lost because the type of the constant cannot hold them",
    ),
    error(
        Annotations,
        "bad-annotation",
        "an annotation with wrong arguments, or at a place where it has no meaning",
    ),
    warning(Annotations, "unknown-annotation", "an annotation that is neither standard nor declared"),
    error(Annotations, "zero-copy", "a `@zero_copy` struct whose layout in memory differs from CDR"),
    error(Annotations, "bad-pragma", "a malformed `#pragma`"),
    warning(
        Annotations,
        "unknown-pragma",
        "a `#pragma` whose name resembles one of IDL; among Rust tokens, an unknown `#pragma` whose end is not known (an error)",
    ),
    error(Annotations, "repository-id", "a repository id, version or prefix that contradicts another"),
    error(
        Rust,
        "no-extern",
        "an included definition without generated code or `extern` path, or a native type without an `extern` type",
    ),
    error(Rust, "unsupported", "IDL that has no mapping to Rust"),
    error(Rust, "rust-name", "a `@rust_name` that is not a Rust identifier"),
    error(
        Rust,
        "rust-name-clash",
        "IDL names with the same Rust name: an error if the user chose the later one; otherwise the compiler changes it",
    ),
];
