//! The page "What a servant gets" of the guide: its tables and its code say what `zorb idl skeleton` prints.

use super::idl;

const PAGE: &str = include_str!("../../../../../docs/guide/src/servants.md");

/// What the rows of the tables name.
const NAMED: &str = "enum Colour { red, green };
bitmask Flags { READ, WRITE };
bitset Bits { bitfield<3> low; bitfield<5> high; };
struct Point { long x; long y; };
union Size switch (Colour) { case red: long cells; default: string words; };
valuetype Note { public string text; };
interface Callback { oneway void ring(in string what); };
abstract interface Shown { void show(); };
";

/// Code on one line, with white space as people write it.
fn joined(code: &str) -> String {
    let line = code.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace("< ", "<").replace(", >", ">").replace("( ", "(").replace(", )", ")")
}

/// Parts that commas separate outside of all brackets.
fn parts(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(list[start..].trim());
    parts
}

/// Each method: name, types of its parameters, result.
fn signatures(code: &str) -> Vec<(String, Vec<String>, String)> {
    let code = joined(code);
    let methods = code.split("async fn ").skip(1).map(|method| {
        let (name, rest) = method.split_once('(').unwrap();
        let (params, rest) = rest.split_once(") -> ").unwrap();
        let types = parts(params).into_iter().filter_map(|param| Some(param.split_once(": ")?.1.to_owned()));
        (name.to_owned(), types.collect(), rest.split_once(" {").unwrap().0.to_owned())
    });
    methods.collect()
}

/// The type that the typedef `T` names.
fn alias(text: &str) -> String {
    let rust = joined(&idl(&["rust"], text));
    let after = rust.split("pub type T = ").nth(1).unwrap();
    let mut depth = 0;
    // A `;` in brackets is that of an array.
    let end = after.find(|c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ';' && depth == 0
    });
    let mut ty = after[..end.unwrap()].to_owned();
    for path in [
        "::core::primitive::",
        "::zorb::__private::v1::",
        "::std::string::",
        "::std::vec::",
        "::std::boxed::",
        "::std::collections::",
        "self::",
    ] {
        ty = ty.replace(path, "");
    }
    ty
}

/// The cells that a row of a table must have.
fn cells(written: &str) -> [String; 3] {
    let (annotation, ty) = match written.strip_prefix("@non_nil ") {
        Some(ty) => ("@non_nil ", ty),
        None => ("", written),
    };
    let typedef = match ty.find('[') {
        Some(at) => Some(format!("typedef {} T{};\n", &ty[..at], &ty[at..])),
        None => ty.contains('<').then(|| format!("typedef {ty} T;\n")),
    };
    let name = if typedef.is_some() { "T" } else { ty };
    let text = format!(
        "{NAMED}{}interface I {{ {annotation}{name} f({annotation}in {name} a, {annotation}inout {name} b); }};\n",
        typedef.as_deref().unwrap_or_default()
    );
    let (_, types, result) = signatures(&idl(&["skeleton", "--interface", "I"], &text)).remove(0);
    let both = result.strip_prefix("Result<(").unwrap().strip_suffix("), SystemException>").unwrap();
    let results = parts(both);
    assert_eq!(results[0], results[1], "{written}");
    let alias = typedef.map(|_| alias(&text));
    let shown = |ty: &str| match &alias {
        Some(alias) if ty == "T" => alias.clone(),
        Some(alias) if ty == "&T" => format!("&{alias}"),
        _ => ty.to_owned(),
    };
    [shown(&types[0]), shown(&types[1]), shown(results[0])]
}

#[test]
fn tables_name_the_types_of_signatures() {
    let mut rows = 0;
    for row in PAGE.lines().filter(|line| line.starts_with("| `")) {
        let code: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let [written, given @ ..] = code.as_slice() else { panic!("{row}") };
        // Those of the last table are no types.
        if given.len() != 3 || row.matches(" | ").count() != 3 {
            continue;
        }
        assert_eq!(given, cells(written), "{row}");
        rows += 1;
    }
    assert!(rows > 35, "{rows} rows");
}

#[test]
fn code_of_the_page_has_the_signatures_of_skeletons() {
    let mut blocks = 0;
    for block in PAGE.split("```rust\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let text = block.split_once("zorb::idl! {").unwrap().1.split("\n}\n").next().unwrap();
        let mut printed = signatures(&idl(&["skeleton"], text));
        let written = signatures(block);
        printed.retain(|(name, ..)| written.iter().any(|(other, ..)| other == name));
        // An inherited method is printed for the base as well.
        for signature in &written {
            assert!(printed.contains(signature), "{signature:?} is not among {printed:#?}");
        }
        assert!(!written.is_empty());
        blocks += 1;
    }
    assert!(blocks > 5, "{blocks} blocks");
}
