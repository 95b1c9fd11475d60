//! Error messages for JSON that does not fit its IDL type. They list the names of members or enumerators.

use serde_json::Value;
use zorb::dynamic::{DynError, DynErrorKind, Step};
use zorb::{TcKind, TypeCode};

const MAX_LISTED: usize = 40;

enum ExpectedType {
    /// An object with these members, such as arguments by name.
    Members(Vec<(String, TypeCode)>),
    /// A value of this type, which is not an alias.
    Value(TypeCode),
}

pub(crate) fn describe_value_error(code: &TypeCode, json: &str, error: &DynError) -> String {
    describe(ExpectedType::Value(code.unaliased()), json, error)
}

pub(crate) fn describe_members_error(members: &[(&str, &TypeCode)], json: &str, error: &DynError) -> String {
    let all = members.iter().map(|(name, code)| ((*name).to_owned(), (*code).clone()));
    describe(ExpectedType::Members(all.collect()), json, error)
}

fn describe(root: ExpectedType, json: &str, error: &DynError) -> String {
    let steps = error.path().steps();
    let expected = steps.iter().try_fold(root, |expected, step| expected.step_into(step));
    let Some(expected) = expected else { return error.to_string() };
    let found = value_at(json, steps);
    if found.as_ref().is_some_and(|found| found.get("$type").is_some()) {
        // The JSON names a derived type, which may have further members.
        return error.to_string();
    }
    let is_enum = matches!(&expected, ExpectedType::Value(code) if code.kind() == TcKind::Enum);
    let list = |names| name_list(names, MAX_LISTED);
    let description = match error.kind() {
        DynErrorKind::NoSuchMember(name) if is_enum => {
            format!("`{name}` is not an enumerator; the enumerators are {}", list(expected.names()))
        }
        DynErrorKind::TypeMismatch { .. } | DynErrorKind::InvalidValue(_) if is_enum => {
            format!("{}; the enumerators are {}", error.kind(), list(expected.names()))
        }
        DynErrorKind::NoSuchMember(name) => {
            format!("there is no member `{name}`; the members are {}", list(expected.names()))
        }
        DynErrorKind::MissingMember(_) => match expected.missing_members(found.as_ref()) {
            missing if missing.is_empty() => error.kind().to_string(),
            missing => format!("missing members: {}", list(missing)),
        },
        _ => return error.to_string(),
    };
    match steps {
        [] => description,
        _ => format!("{}: {description}", error.path()),
    }
}

impl ExpectedType {
    /// Returns the expected type after one more step, or `None` if it depends on the JSON.
    fn step_into(self, step: &Step) -> Option<Self> {
        let code = match (self, step) {
            (Self::Members(all), Step::Member(name)) => {
                all.into_iter().find(|(other, _)| **other == **name)?.1
            }
            (Self::Value(code), Step::Member(name)) => match code.kind() {
                TcKind::Union if **name == *"$case" => code.discriminator_type().ok()?,
                // A map with string keys may be a JSON object, so the step is the key of an entry.
                TcKind::Sequence => code.content_type().ok()?.unaliased().member_type(1).ok()?,
                _ => all_members(&code).into_iter().find(|(other, _)| **other == **name)?.1,
            },
            (Self::Value(code), Step::Index(_)) => code.content_type().ok()?,
            _ => return None,
        };
        Some(Self::Value(code.unaliased()))
    }

    fn members(&self) -> Vec<(String, TypeCode)> {
        match self {
            Self::Members(members) => members.clone(),
            Self::Value(code) => all_members(code),
        }
    }

    fn names(&self) -> Vec<String> {
        match self {
            Self::Value(code) if code.kind() == TcKind::Enum => {
                let count = code.member_count().unwrap_or(0);
                (0..count).filter_map(|index| Some(code.member_name(index).ok()?.to_owned())).collect()
            }
            _ => self.members().into_iter().map(|(name, _)| format!("`{name}`")).collect(),
        }
    }

    /// Returns the members that are missing in the JSON, with their types.
    fn missing_members(&self, json: Option<&Value>) -> Vec<String> {
        let members = self.members().into_iter().enumerate();
        let missing = members.filter(|(index, (name, _))| match json {
            Some(Value::Object(object)) => !object.contains_key(name),
            Some(Value::Array(array)) => *index >= array.len(),
            _ => false,
        });
        missing.map(|(_, (name, code))| format!("`{name}` ({})", super::type_name(&code))).collect()
    }
}

/// Returns the members of a struct, exception, union or value type, including its base types.
pub(super) fn all_members(code: &TypeCode) -> Vec<(String, TypeCode)> {
    let mut all = match code.concrete_base_type() {
        Ok(Some(base)) => all_members(&base.unaliased()),
        _ => Vec::new(),
    };
    let is_enum = code.kind() == TcKind::Enum;
    let count = if is_enum { 0 } else { code.member_count().unwrap_or(0) };
    all.extend(
        (0..count).filter_map(|index| {
            Some((code.member_name(index).ok()?.to_owned(), code.member_type(index).ok()?))
        }),
    );
    all
}

fn value_at(json: &str, steps: &[Step]) -> Option<Value> {
    let mut value: Value = serde_json::from_str(json).ok()?;
    for step in steps {
        value = match step {
            Step::Member(name) => value.get_mut(&**name)?.take(),
            Step::Index(index) => value.get_mut(*index)?.take(),
            Step::Content | Step::Node(_) => return None,
        };
    }
    Some(value)
}

pub(super) fn name_list(names: Vec<String>, max_names: usize) -> String {
    match names.len().checked_sub(max_names) {
        _ if names.is_empty() => "none".to_owned(),
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names.get(..max_names).unwrap_or_default().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use zorb::dynamic::{Dynamic, Idl};

    use super::*;

    fn error_text(name: &str, json: &str) -> String {
        let idl = "enum Colour { RED, GREEN, BLUE };
            struct Point { double x; double y; double z; };
            struct Line { Point from; sequence<Point> via; Colour colour; };
            union Shape switch (Colour) { case RED: Point at; case BLUE: Line along; };
            map<string, Colour> Colours;";
        let idl = idl
            .replace("sequence<Point> via", "Points via")
            .replace("struct Line", "typedef sequence<Point> Points; struct Line");
        let idl = idl.replace("map<string, Colour> Colours;", "typedef map<string, Colour> Colours;");
        let code = Idl::parse(&idl).unwrap().type_code(name).unwrap();
        let error = Dynamic::from_json(&code, json).unwrap_err();
        describe_value_error(&code, json, &error)
    }

    #[test]
    fn enumerators_are_listed() {
        assert_eq!(
            error_text("Colour", r#""PINK""#),
            "`PINK` is not an enumerator; the enumerators are RED, GREEN, BLUE"
        );
        let inside = error_text("Line", r#"{"from": {"x": 1, "y": 2, "z": 3}, "via": [], "colour": "PINK"}"#);
        assert_eq!(inside, "colour: `PINK` is not an enumerator; the enumerators are RED, GREEN, BLUE");
        let ordinal = error_text("Colour", "3");
        assert!(ordinal.ends_with("; the enumerators are RED, GREEN, BLUE"), "{ordinal}");
        let flag = error_text("Colour", "true");
        assert!(flag.ends_with("; the enumerators are RED, GREEN, BLUE"), "{flag}");
        let case = error_text("Shape", r#"{"$case": "PINK"}"#);
        assert_eq!(case, "$case: `PINK` is not an enumerator; the enumerators are RED, GREEN, BLUE");
        let entry = error_text("Colours", r#"{"sky": "BLUE", "rose": "PINK"}"#);
        assert_eq!(entry, "rose: `PINK` is not an enumerator; the enumerators are RED, GREEN, BLUE");
    }

    #[test]
    fn all_missing_members_are_listed() {
        let missing = error_text("Point", r#"{"y": 1}"#);
        assert_eq!(missing, "missing members: `x` (double), `z` (double)");
        let inside =
            error_text("Line", r#"{"from": {"x": 1, "y": 2, "z": 3}, "via": [[1, 2, 3], {"z": 1}]}"#);
        assert_eq!(inside, "via[1]: missing members: `x` (double), `y` (double)");
        let short = error_text("Line", r#"{"from": [1]}"#);
        assert!(short.ends_with("`y` (double), `z` (double)"), "{short}");
    }

    #[test]
    fn the_members_are_listed_if_one_is_unknown() {
        assert_eq!(
            error_text("Point", r#"{"w": 1}"#),
            "there is no member `w`; the members are `x`, `y`, `z`"
        );
        assert_eq!(
            error_text("Shape", r#"{"where": 1}"#),
            "there is no member `where`; the members are `at`, `along`"
        );
        // Errors about a wrong type of a known member are not changed.
        assert!(error_text("Point", r#"{"x": "much"}"#).starts_with("x: "));
    }
}
