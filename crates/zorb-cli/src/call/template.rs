//! `--template`: a skeleton of arguments, as JSON in the order of the IDL.

use std::fmt::Write;

use zorb::dynamic::Dynamic;
use zorb::{TcKind, TypeCode};

/// Maximum nesting of types in a skeleton. Deeper values are left empty.
const LEVELS: usize = 12;
/// Maximum nesting of values in JSON.
const DEEPEST: usize = 64;
/// Maximum size of a skeleton in bytes.
const LONGEST: usize = 1 << 20;

/// Returns a JSON object with a value for each of these members: zeros, empty strings, the first enumerator,
/// sequences of one element.
///
/// # Errors
/// A member has a type without JSON form, or the skeleton would exceed 1 MiB.
pub(super) fn of<'a>(members: impl Iterator<Item = (&'a str, &'a TypeCode)>) -> anyhow::Result<String> {
    let mut skeleton = Skeleton { text: String::new(), inside: Vec::new() };
    let all: Vec<(String, TypeCode)> = members.map(|(name, code)| (name.to_owned(), code.clone())).collect();
    skeleton.object(None, &all, 0)?;
    Ok(skeleton.text)
}

struct Skeleton {
    text: String,
    /// The repository ids of the enclosing types.
    inside: Vec<String>,
}

impl Skeleton {
    fn object(
        &mut self,
        case: Option<String>,
        members: &[(String, TypeCode)],
        level: usize,
    ) -> anyhow::Result<()> {
        anyhow::ensure!(self.text.len() <= LONGEST, "the skeleton is longer than 1 MiB");
        if members.is_empty() && case.is_none() {
            self.text.push_str("{}");
            return Ok(());
        }
        self.text.push('{');
        if let Some(case) = &case {
            let _ = write!(self.text, "\n{:1$}\"$case\": {case}", "", 2 * (level + 1));
        }
        for (at, (name, code)) in members.iter().enumerate() {
            let comma = if at > 0 || case.is_some() { "," } else { "" };
            let _ =
                write!(self.text, "{comma}\n{:2$}{}: ", "", serde_json::to_string(name)?, 2 * (level + 1));
            self.value(code, level + 1)?;
        }
        let _ = write!(self.text, "\n{:1$}}}", "", 2 * level);
        Ok(())
    }

    fn value(&mut self, code: &TypeCode, level: usize) -> anyhow::Result<()> {
        anyhow::ensure!(level <= DEEPEST, "the arguments are nested over {DEEPEST} deep, which no JSON is");
        anyhow::ensure!(self.text.len() <= LONGEST, "the skeleton is longer than 1 MiB");
        let code = code.unaliased();
        let id = code.id().unwrap_or_default().to_owned();
        match code.kind() {
            TcKind::Struct | TcKind::Except => {
                self.inside.push(id);
                self.object(None, &members(&code), level)?;
                self.inside.pop();
            }
            TcKind::Union => {
                self.inside.push(id);
                let (case, member) = first_case(&code)?;
                self.object(Some(case), &member, level)?;
                self.inside.pop();
            }
            TcKind::Sequence if !is_of_octets(&code) => {
                let element = code.content_type()?;
                // Recursion into a type that contains itself, or that is nested too deep, ends here.
                let repeated =
                    element.unaliased().id().is_ok_and(|id| self.inside.iter().any(|one| one == id));
                if repeated || level >= LEVELS || is_entry(&element) {
                    self.text.push_str("[]");
                } else {
                    self.elements(&element, 1, level)?;
                }
            }
            TcKind::Array if !is_of_octets(&code) => {
                self.elements(&code.content_type()?, code.length()?, level)?
            }
            TcKind::Any => self.text.push_str(r#"{"$type": "long", "value": 0}"#),
            _ => self.text.push_str(&plain(&code)?),
        }
        Ok(())
    }

    fn elements(&mut self, element: &TypeCode, count: u32, level: usize) -> anyhow::Result<()> {
        self.text.push('[');
        for at in 0..count {
            if at > 0 {
                self.text.push_str(", ");
            }
            self.value(element, level)?;
        }
        self.text.push(']');
        Ok(())
    }
}

/// Returns the default value of a type, as JSON.
fn plain(code: &TypeCode) -> anyhow::Result<String> {
    Ok(Dynamic::default_of(code)?.to_json()?)
}

fn members(code: &TypeCode) -> Vec<(String, TypeCode)> {
    let count = code.member_count().unwrap_or(0);
    (0..count)
        .filter_map(|at| Some((code.member_name(at).ok()?.to_owned(), code.member_type(at).ok()?)))
        .collect()
}

/// Returns the label of a union's first member, as JSON, and the member.
fn first_case(code: &TypeCode) -> anyhow::Result<(String, Vec<(String, TypeCode)>)> {
    #[derive(serde::Deserialize)]
    struct Case {
        #[serde(rename = "$case")]
        case: serde_json::Value,
    }
    let Case { case } = serde_json::from_str(&plain(code)?)?;
    Ok((case.to_string(), members(code).into_iter().take(1).collect()))
}

fn is_of_octets(code: &TypeCode) -> bool {
    code.content_type().is_ok_and(|element| element.unaliased().kind() == TcKind::Octet)
}

/// Returns whether an element is an entry of a map: an unnamed pair.
fn is_entry(element: &TypeCode) -> bool {
    let element = element.unaliased();
    element.kind() == TcKind::Struct && element.id().is_ok_and(str::is_empty)
}

#[cfg(test)]
mod tests {
    use zorb::dynamic::Idl;

    use super::*;

    #[test]
    fn a_skeleton_of_each_type_is_taken_as_a_value_of_it() {
        let idl = "enum Colour { RED, GREEN };
            struct Point { double x; float y; };
            typedef sequence<Point> Points;
            typedef sequence<octet> Bytes;
            typedef long Matrix[2][3];
            struct Tree; typedef sequence<Tree> Trees; struct Tree { string name; Trees under; };
            union Shape switch (Colour) { case RED: Point at; case GREEN: long side; };
            union Choice switch (boolean) { case TRUE: string yes; };
            valuetype Node { public long number; public Node next; };
            interface Thing {};
            typedef fixed<5,2> Money;
            typedef map<string, long> Counts;
            struct All { Colour colour; Points points; Bytes bytes; Matrix matrix; Tree tree; Shape shape; Choice choice;
                Node node; Thing thing; Money money; any anything; wstring wide; wchar letter; char small; long long big;
                boolean flag; octet one; unsigned short port; long double precise; Counts counts; CORBA::TypeCode code; };";
        let idl = Idl::parse(&format!("#include <orb.idl>\n{idl}"))
            .or_else(|_| Idl::parse(&idl.replace("CORBA::TypeCode code;", "")))
            .unwrap();
        let all = idl.type_code("All").unwrap();
        let json = of([("all", &all)].into_iter()).unwrap();
        let read = Dynamic::members_from_json(&[("all", &all)], &Default::default(), &json);
        assert!(read.is_ok(), "{}\n{json}", read.unwrap_err());
        let text = json.replace('\n', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            r#""colour": "RED""#,
            r#""points": [{ "x": 0.0, "y": 0.0 }]"#,
            r#""matrix": [[0, 0, 0], [0, 0, 0]]"#,
            r#""tree": { "name": "", "under": [] }"#,
            r#""shape": { "$case": "RED", "at": { "x": 0.0, "y": 0.0 } }"#,
            r#""money": "0.00""#,
            r#""thing": null"#,
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn no_arguments_are_an_empty_object() {
        assert_eq!(of(std::iter::empty()).unwrap(), "{}");
    }

    #[test]
    fn arrays_that_are_too_long_to_show_are_refused() {
        let idl = Idl::parse("typedef long Wide[1000][1000];").unwrap();
        let wide = idl.type_code("Wide").unwrap();
        assert!(of([("wide", &wide)].into_iter()).unwrap_err().to_string().contains("longer than 1 MiB"));
    }
}
