//! The messages of `idlc` for each text of the compiler's UI tests, as text and as JSON. Each kind of error
//! that an IDL compiler must report has such a text.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const UI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../idl-compiler/tests/ui");

/// A text that has no `.stderr` but gives no error says nothing.
struct Text {
    path: PathBuf,
    name: String,
    /// What finds its errors: checking, or making Rust.
    command: &'static str,
    strict: bool,
    expected: String,
}

impl Text {
    fn is_good(&self) -> bool {
        self.name.ends_with("_ok.idl")
    }
}

fn texts() -> Vec<Text> {
    let list = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let checked = list(UI.into()).map(|path| (path, "check"));
    let mut texts: Vec<Text> = checked
        .chain(list(Path::new(UI).join("rust")).map(|path| (path, "rust")))
        .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "idl"))
        .map(|(path, command)| Text {
            command,
            name: path.file_name().unwrap().to_str().unwrap().to_owned(),
            strict: std::fs::read(&path).unwrap().starts_with(b"// strict"),
            expected: std::fs::read_to_string(path.with_extension("stderr")).unwrap_or_default(),
            path,
        })
        .collect();
    texts.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(texts.len() > 100, "the UI tests are all found");
    texts
}

struct Run {
    code: i32,
    out: String,
    err: String,
}

fn idlc(folder: &Path, args: &[&str]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_idlc"))
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap();
    Run { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// Severity, code, line and column of a message.
type Finding = (String, String, Option<(u64, u64)>);

/// What a rendered text says: `error[code]: ...`, and below it ` --> file:line:column`.
fn rendered(text: &str) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for line in text.lines() {
        let title = ["error", "warning"].iter().find_map(|severity| {
            let code = line.strip_prefix(severity)?.strip_prefix('[')?.split_once(']')?.0;
            Some((severity.to_string(), code.to_owned(), None))
        });
        findings.extend(title);
        if let (Some((.., place @ None)), Some((_, at))) = (findings.last_mut(), line.split_once("--> ")) {
            let mut numbers = at.rsplit(':').map(|number| number.parse().unwrap());
            let column = numbers.next().unwrap();
            *place = Some((numbers.next().unwrap(), column));
        }
    }
    findings
}

fn json(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn finding(message: &Value) -> Finding {
    let word = |key: &str| message[key].as_str().unwrap().to_owned();
    let place = message["spans"].as_array().unwrap().first().map(|span| {
        assert_eq!(span["primary"], true, "{message}");
        (span["line"].as_u64().unwrap(), span["column"].as_u64().unwrap())
    });
    (word("severity"), word("code"), place)
}

#[test]
fn each_text_gives_its_messages_in_every_form() {
    for text in texts() {
        // Alone in a folder: what other files declare would be a hint.
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(&text.path, folder.path().join(&text.name)).unwrap();
        let mut args = vec![text.command, &text.name];
        if text.command == "rust" {
            args.extend(["-o", "made.rs"]);
        }
        args.extend(text.strict.then_some("--strict-names"));
        let code = i32::from(!text.is_good());
        let run = idlc(folder.path(), &args);
        assert_eq!((run.code, run.out.as_str()), (code, ""), "{}", text.name);
        assert_eq!(run.err, text.expected, "{}", text.name);
        let wanted = rendered(&text.expected);
        let errors = wanted.iter().filter(|(severity, ..)| severity == "error").count();
        assert_eq!(errors == 0, text.is_good(), "{}", text.name);

        args.extend(["--message-format", "json"]);
        let run = idlc(folder.path(), &args);
        assert_eq!((run.code, run.out.as_str()), (code, ""), "{}", text.name);
        let messages = json(&run.err);
        assert_eq!(messages.iter().map(finding).collect::<Vec<_>>(), wanted, "{}", text.name);
        let all: String =
            messages.iter().map(|message| format!("{}\n\n", message["rendered"].as_str().unwrap())).collect();
        assert_eq!(all, text.expected, "{}", text.name);
        messages.iter().for_each(has_its_shape);

        *args.last_mut().unwrap() = "short";
        let run = idlc(folder.path(), &args);
        assert_eq!((run.code, run.out.as_str()), (code, ""), "{}", text.name);
        let lines: Vec<String> = messages.iter().map(|message| short(&text.name, message)).collect();
        assert_eq!(run.err.lines().collect::<Vec<_>>(), lines, "{}", text.name);
    }
}

/// A message as a line, made of its JSON.
fn short(name: &str, message: &Value) -> String {
    let (severity, code, place) = finding(message);
    let place = place.map_or(String::new(), |(line, column)| format!("{name}:{line}:{column}: "));
    format!("{place}{severity}[{code}]: {}", message["message"].as_str().unwrap())
}

/// The keys that the documentation promises, with values of the right kinds, and no others.
fn has_its_shape(message: &Value) {
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let wanted = ["code", "helps", "message", "notes", "rendered", "severity", "spans"];
    assert_eq!(keys(message), wanted, "{message}");
    assert!(["error", "warning"].contains(&message["severity"].as_str().unwrap()), "{message}");
    for list in ["notes", "helps"] {
        assert!(message[list].as_array().unwrap().iter().all(Value::is_string), "{message}");
    }
    for (index, span) in message["spans"].as_array().unwrap().iter().enumerate() {
        let wanted = [
            "column",
            "end_column",
            "end_line",
            "expanded_from",
            "file",
            "included_from",
            "label",
            "line",
            "primary",
        ];
        assert_eq!(keys(span), wanted, "{span}");
        let number = |key: &str| span[key].as_u64().filter(|number| *number > 0).unwrap();
        assert!((number("line"), number("column")) <= (number("end_line"), number("end_column")), "{span}");
        assert!(span["label"].is_null() || span["label"].as_str().is_some_and(|text| !text.is_empty()));
        assert_eq!(span["primary"], index == 0, "{span}");
    }
}

#[test]
fn json_says_where_includes_and_macros_led() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("main.idl", "#include \"part.idl\"\n#define MEMBER(t) t x\nstruct T { MEMBER(Nope2); };\n");
    write("part.idl", "struct S { long\n    é; Nope x; };\n");
    write("clash.idl", "struct S { long x; };\nmodule M { };\nstruct S { long x; };\n");
    let run = idlc(folder.path(), &["check", "--message-format=json", "main.idl", "clash.idl", "absent.idl"]);
    assert_eq!((run.code, run.out.as_str()), (3, ""));
    let messages: Vec<Value> = json(&run.err)
        .into_iter()
        .map(|mut message| {
            message["rendered"].take();
            message
        })
        .collect();
    insta::assert_snapshot!("json", serde_json::to_string_pretty(&messages).unwrap());
}

#[test]
fn every_command_says_all_it_has_to_say_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("bad.idl", "typedef Nope T;\n");
    write("good.idl", "#warning Old.\nstruct S { long x; };\n");
    write("native.idl", "struct _self { long x; }; struct _Self { long x; };\n");
    let run = |args: &[&str]| {
        let run = idlc(folder.path(), &[args, &["--message-format", "json"]].concat());
        let codes = |message: &Value| {
            has_its_shape(message);
            message["code"].as_str().unwrap().to_owned()
        };
        (run.code, json(&run.err).iter().map(codes).collect::<Vec<_>>())
    };
    let told = |code: i32, codes: &[&str]| (code, codes.iter().map(|code| code.to_string()).collect());
    for command in [&["rust"][..], &["deps"], &["model", "--json"]] {
        assert_eq!(run(&[command, &["bad.idl"]].concat()), told(1, &["not-found"]), "{command:?}");
        assert_eq!(run(&[command, &["good.idl"]].concat()), told(0, &["warning-line"]), "{command:?}");
        let quiet = [command, &["--no-warnings", "good.idl"]].concat();
        assert_eq!(run(&quiet), told(0, &[]), "{command:?}");
        let absent = [command, &["absent.idl"]].concat();
        assert_eq!(run(&absent), told(3, &["cannot-read"]), "{command:?}");
        let nowhere = [command, &["--no-warnings", "good.idl", "-o", "no/such/file"]].concat();
        assert_eq!(run(&nowhere), told(3, &["io"]), "{command:?}");
    }
    let options = ["rust", "--no-warnings", "good.idl", "--rename", "A=b", "--derive", "X=Y"];
    assert_eq!(run(&options), told(2, &["options", "options"]));
    assert_eq!(run(&["check", "native.idl"]), told(1, &["case-collision"]));
}

/// The categories of errors that an IDL compiler must report: name, the text with such an error, and the
/// error's code.
const CATEGORIES: &[(&str, &str, &str)] = &[
    // Syntax
    ("malformed definition", "syntax_item", "syntax"),
    ("malformed interface", "syntax_interface", "syntax"),
    ("malformed type", "syntax_types", "syntax"),
    ("malformed value type", "value_syntax", "syntax"),
    ("unexpected end", "unexpected_end", "syntax"),
    ("scope without an end", "unclosed_scope", "syntax"),
    ("stray token", "stray_character", "stray-character"),
    ("comma behind the last enumerator", "syntax_types", "syntax"),
    ("missing `;` behind `}`", "syntax_item", "syntax"),
    ("empty module, struct, union, enum", "empty", "empty"),
    ("nested too deep", "too_deep", "too-deep"),
    // Lexical
    ("bad number, too large an integer", "bad_number", "bad-literal"),
    ("bad character or string: octal above 377, `\\u` in narrow text, NUL", "bad_text", "bad-literal"),
    ("unknown escape sequence", "bad_text", "unknown-escape"),
    ("text without an end", "bad_text", "unterminated"),
    ("comment without an end", "unterminated_comment", "unterminated"),
    ("identifier with two leading underscores", "bad_identifier", "bad-identifier"),
    // Names
    ("redefinition", "redefinition", "redefinition"),
    ("names that differ only in case", "case_collision", "case-collision"),
    ("use spelled in other case", "case_mismatch", "case-mismatch"),
    ("collision with a keyword", "keyword_collision", "keyword-collision"),
    ("used, then defined", "use_then_define", "use-then-define"),
    ("name of the scope around", "enclosing_scope_name", "enclosing-scope-name"),
    ("not found", "not_found", "not-found"),
    ("not a scope", "not_a_scope", "not-a-scope"),
    ("not a type", "not_a_type", "not-a-type"),
    ("not a constant", "not_a_constant", "not-a-constant"),
    ("not an exception", "not_an_exception", "not-an-exception"),
    ("not an interface", "not_an_interface", "not-an-interface"),
    ("not a value type", "value_inheritance", "not-a-value"),
    ("ambiguous", "ambiguous", "ambiguous"),
    ("forward declaration never defined, or defined in another scope", "never_defined", "never-defined"),
    ("forward declaration of another kind", "forward_kind", "forward-kind"),
    ("forward declaration with another prefix", "repository_id", "repository-id"),
    // Inheritance
    ("from what is not defined yet", "incomplete", "incomplete"),
    ("duplicate base", "inheritance", "duplicate-base"),
    ("inherited operations clash", "inheritance", "inheritance-clash"),
    ("inherited operation redefined", "inheritance", "inherited-redefinition"),
    ("truncatable misused", "truncatable", "truncatable"),
    ("several concrete bases", "value_inheritance", "value-inheritance"),
    ("several supported interfaces, or incompatible with the base's", "supports", "supports"),
    ("state of an abstract value type", "value_inheritance", "abstract-value"),
    // Types
    ("contains itself", "recursive", "recursive"),
    ("incomplete type used", "incomplete", "incomplete"),
    ("exception or void as a type", "not_a_type", "not-a-type"),
    ("union discriminator", "union_discriminator", "bad-discriminator"),
    ("duplicate label, second default", "union_labels", "duplicate-label"),
    ("label of another type", "union_labels", "type-mismatch"),
    ("label out of range", "union_labels", "out-of-range"),
    ("default that nothing selects", "union_labels", "default-unreachable"),
    ("anonymous type", "anonymous_type", "anonymous-type"),
    ("box of a value", "box_of_value", "box-of-value"),
    ("bound that is not positive", "bad_bound", "bad-bound"),
    ("limits of fixed", "bad_fixed", "bad-fixed"),
    ("abstract interface with a base that is not", "flavour_bases", "not-abstract"),
    ("interface with a local base that is not local", "flavour_bases", "local-base"),
    ("local type in a signature of a remote interface", "local_type", "local-type"),
    ("native type as member", "native_member", "native-member"),
    // Operations
    ("oneway with result, out, inout, raises", "oneway", "oneway"),
    ("raises what is no exception", "not_an_exception", "not-an-exception"),
    ("raises what is not declared", "duplicate_raises", "not-found"),
    ("raises the same twice", "duplicate_raises", "duplicate-raises"),
    ("raises of attributes", "attribute_raises", "attribute-raises"),
    ("context strings", "context", "syntax"),
    ("context strings that name no property", "bad_context", "bad-context"),
    ("duplicate parameter", "redefinition", "redefinition"),
    // Constants
    ("overflow, sign", "integer_range", "out-of-range"),
    ("value or text too large for its type", "out_of_range", "out-of-range"),
    ("type mismatch, enumerator of another enum", "type_mismatch", "type-mismatch"),
    ("type that no constant has", "not_a_constant_type", "not-a-constant-type"),
    ("division by zero", "division_by_zero", "division-by-zero"),
    ("shift range", "bad_shift", "bad-shift"),
    ("precision loss", "precision_loss", "precision-loss"),
    ("fixed-point constants", "fixed_constants", "out-of-range"),
    // Pragmas
    ("bad version, prefix without quotes", "pragma", "bad-pragma"),
    ("id set twice, version behind id, wrong kind, unknown scope", "repository_id", "repository-id"),
    // Files
    ("#error", "preprocessor", "error-line"),
    ("include not found", "preprocessor", "include"),
    ("include depth", "include_depth", "include-depth"),
    ("#if without an end", "preprocessor", "conditional"),
    // Annotations
    ("annotation where it has no meaning", "annotations", "bad-annotation"),
];

#[test]
fn every_category_of_the_language_has_a_text() {
    let texts = texts();
    for (category, name, code) in CATEGORIES {
        let text = texts.iter().find(|text| text.name == format!("{name}.idl"));
        let text = text.unwrap_or_else(|| panic!("{category}: there is no {name}.idl"));
        let has = rendered(&text.expected).iter().any(|(_, found, _)| found == code);
        assert!(has, "{category}: {name}.idl has no [{code}]");
    }
    for text in texts.iter().filter(|text| !text.is_good()) {
        let twin = text.name.replace(".idl", "_ok.idl");
        assert!(texts.iter().any(|other| other.name == twin), "{} has no good twin", text.name);
    }
}
