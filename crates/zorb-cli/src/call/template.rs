//! `--template`: a template of the arguments as JSON.

use std::fmt::Write;

use zorb::dynamic::Dynamic;
use zorb::{TcKind, TypeCode};

use super::fit::all_members;

/// The depth from which sequences are written without elements.
const MAX_SEQUENCE_DEPTH: usize = 12;
const MAX_DEPTH: usize = 64;
const MAX_BYTES: usize = 1 << 20;

/// Returns a JSON object with an example value for each member, such as zero or an empty string.
pub(super) fn arguments_template<'a>(
    members: impl Iterator<Item = (&'a str, &'a TypeCode)>,
) -> anyhow::Result<String> {
    let mut writer = TemplateWriter { text: String::new(), enclosing_ids: Vec::new() };
    let all: Vec<(String, TypeCode)> = members.map(|(name, code)| (name.to_owned(), code.clone())).collect();
    writer.object(None, &all, 0)?;
    Ok(writer.text)
}

struct TemplateWriter {
    text: String,
    enclosing_ids: Vec<String>,
}

impl TemplateWriter {
    /// Writes an object. For a union, `case` is the label as JSON.
    fn object(
        &mut self,
        case: Option<String>,
        members: &[(String, TypeCode)],
        level: usize,
    ) -> anyhow::Result<()> {
        anyhow::ensure!(self.text.len() <= MAX_BYTES, "the template is longer than 1 MiB");
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
        anyhow::ensure!(level <= MAX_DEPTH, "the arguments are nested more than {MAX_DEPTH} levels deep");
        anyhow::ensure!(self.text.len() <= MAX_BYTES, "the template is longer than 1 MiB");
        let code = code.unaliased();
        let id = code.id().unwrap_or_default().to_owned();
        match code.kind() {
            TcKind::Struct | TcKind::Except => {
                self.enclosing_ids.push(id);
                self.object(None, &all_members(&code), level)?;
                self.enclosing_ids.pop();
            }
            TcKind::Union => {
                self.enclosing_ids.push(id);
                let (case, member) = first_case(&code)?;
                self.object(Some(case), &member, level)?;
                self.enclosing_ids.pop();
            }
            TcKind::Sequence if !has_octet_elements(&code) => {
                let element = code.content_type()?;
                // A type that contains itself gets an empty sequence, so that the recursion ends.
                let is_recursive =
                    element.unaliased().id().is_ok_and(|id| self.enclosing_ids.iter().any(|one| one == id));
                if is_recursive || level >= MAX_SEQUENCE_DEPTH || is_map_entry(&element) {
                    self.text.push_str("[]");
                } else {
                    self.elements(&element, 1, level)?;
                }
            }
            TcKind::Array if !has_octet_elements(&code) => {
                self.elements(&code.content_type()?, code.length()?, level)?
            }
            TcKind::Any => self.text.push_str(r#"{"$type": "long", "value": 0}"#),
            _ => self.text.push_str(&default_value(&code)?),
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

fn default_value(code: &TypeCode) -> anyhow::Result<String> {
    Ok(Dynamic::default_of(code)?.to_json()?)
}

/// Returns the label of a union's first member, as JSON, and the member.
fn first_case(code: &TypeCode) -> anyhow::Result<(String, Vec<(String, TypeCode)>)> {
    #[derive(serde::Deserialize)]
    struct Case {
        #[serde(rename = "$case")]
        case: serde_json::Value,
    }
    let Case { case } = serde_json::from_str(&default_value(code)?)?;
    Ok((case.to_string(), all_members(code).into_iter().take(1).collect()))
}

fn has_octet_elements(code: &TypeCode) -> bool {
    code.content_type().is_ok_and(|element| element.unaliased().kind() == TcKind::Octet)
}

/// Returns whether a type is an entry of a map, which is a struct without a repository id.
fn is_map_entry(element: &TypeCode) -> bool {
    let element = element.unaliased();
    element.kind() == TcKind::Struct && element.id().is_ok_and(str::is_empty)
}

#[cfg(test)]
mod tests {
    use zorb::dynamic::Idl;

    use super::*;

    #[test]
    fn the_template_of_each_type_is_a_valid_value() {
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
        let json = arguments_template([("all", &all)].into_iter()).unwrap();
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
        assert_eq!(arguments_template(std::iter::empty()).unwrap(), "{}");
    }

    #[test]
    fn too_long_arrays_are_rejected() {
        let idl = Idl::parse("typedef long Wide[1000][1000];").unwrap();
        let wide = idl.type_code("Wide").unwrap();
        assert!(
            arguments_template([("wide", &wide)].into_iter())
                .unwrap_err()
                .to_string()
                .contains("longer than 1 MiB")
        );
    }
}
