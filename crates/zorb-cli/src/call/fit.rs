//! Errors about JSON that does not fit its type, with the expected names.

use serde_json::Value;
use zorb::dynamic::{DynError, DynErrorKind, Step};
use zorb::{TcKind, TypeCode};

/// Maximum number of names that a message lists.
const LISTED: usize = 40;

/// The location of an error in the JSON.
enum Place {
    /// In an object with these members, such as arguments by their names.
    Members(Vec<(String, TypeCode)>),
    /// In a value of this type, which is not an alias.
    Value(TypeCode),
}

/// Describes an error in the JSON of a value, with the available or missing names.
pub(crate) fn value(code: &TypeCode, json: &str, error: &DynError) -> String {
    explained(Place::Value(code.unaliased()), json, error)
}

/// Describes an error in an object with these members, with the available or missing names.
pub(crate) fn members(members: &[(&str, &TypeCode)], json: &str, error: &DynError) -> String {
    let all = members.iter().map(|(name, code)| ((*name).to_owned(), (*code).clone()));
    explained(Place::Members(all.collect()), json, error)
}

fn explained(whole: Place, json: &str, error: &DynError) -> String {
    let steps = error.path().steps();
    let place = steps.iter().try_fold(whole, |place, step| place.inside(step));
    let Some(place) = place else { return error.to_string() };
    let found = at(json, steps);
    if found.as_ref().is_some_and(|found| found.get("$type").is_some()) {
        // A value of a derived type has further members.
        return error.to_string();
    }
    let is_enum = matches!(&place, Place::Value(code) if code.kind() == TcKind::Enum);
    let said = match error.kind() {
        DynErrorKind::NoSuchMember(name) if is_enum => {
            format!("`{name}` is no enumerator; there are {}", listed(place.names()))
        }
        DynErrorKind::TypeMismatch { .. } | DynErrorKind::InvalidValue(_) if is_enum => {
            format!("{}; its enumerators are {}", error.kind(), listed(place.names()))
        }
        DynErrorKind::NoSuchMember(name) => {
            format!("there is no member `{name}`; there are {}", listed(place.names()))
        }
        DynErrorKind::MissingMember(_) => match place.missing(found.as_ref()) {
            missing if missing.is_empty() => error.kind().to_string(),
            missing => format!("members are missing: {}", listed(missing)),
        },
        _ => return error.to_string(),
    };
    match steps {
        [] => said,
        _ => format!("{}: {said}", error.path()),
    }
}

impl Place {
    /// Returns the next inner place; `None` if only the JSON determines its type.
    fn inside(self, step: &Step) -> Option<Place> {
        let code = match (self, step) {
            (Place::Members(all), Step::Member(name)) => {
                all.into_iter().find(|(other, _)| **other == **name)?.1
            }
            (Place::Value(code), Step::Member(name)) => match code.kind() {
                TcKind::Union if **name == *"$case" => code.discriminator_type().ok()?,
                // The entries of a map with strings as keys may be an object.
                TcKind::Sequence => code.content_type().ok()?.unaliased().member_type(1).ok()?,
                _ => state(&code).into_iter().find(|(other, _)| **other == **name)?.1,
            },
            (Place::Value(code), Step::Index(_)) => code.content_type().ok()?,
            _ => return None,
        };
        Some(Place::Value(code.unaliased()))
    }

    fn all(&self) -> Vec<(String, TypeCode)> {
        match self {
            Place::Members(all) => all.clone(),
            Place::Value(code) => state(code),
        }
    }

    fn names(&self) -> Vec<String> {
        match self {
            Place::Value(code) if code.kind() == TcKind::Enum => {
                let count = code.member_count().unwrap_or(0);
                (0..count).filter_map(|at| Some(code.member_name(at).ok()?.to_owned())).collect()
            }
            _ => self.all().into_iter().map(|(name, _)| format!("`{name}`")).collect(),
        }
    }

    /// Returns the members that are missing in the JSON, with their types.
    fn missing(&self, json: Option<&Value>) -> Vec<String> {
        let all = self.all().into_iter().enumerate();
        let missing = all.filter(|(at, (name, _))| match json {
            Some(Value::Object(object)) => !object.contains_key(name),
            Some(Value::Array(array)) => *at >= array.len(),
            _ => false,
        });
        missing.map(|(_, (name, code))| format!("`{name}` ({})", super::type_name(&code))).collect()
    }
}

/// Returns the members of a struct, exception or union, or the state of a value type with that of its bases
/// first.
fn state(code: &TypeCode) -> Vec<(String, TypeCode)> {
    let mut all = match code.concrete_base_type() {
        Ok(Some(base)) => state(&base.unaliased()),
        _ => Vec::new(),
    };
    let is_enum = code.kind() == TcKind::Enum;
    let count = if is_enum { 0 } else { code.member_count().unwrap_or(0) };
    all.extend(
        (0..count).filter_map(|at| Some((code.member_name(at).ok()?.to_owned(), code.member_type(at).ok()?))),
    );
    all
}

/// Returns the part of the JSON that these steps lead to.
fn at(json: &str, steps: &[Step]) -> Option<Value> {
    let mut value: Value = serde_json::from_str(json).ok()?;
    for step in steps {
        value = match step {
            Step::Member(name) => value.get_mut(&**name)?.take(),
            Step::Index(at) => value.get_mut(*at)?.take(),
            Step::Content | Step::Node(_) => return None,
        };
    }
    Some(value)
}

fn listed(names: Vec<String>) -> String {
    match names.len().checked_sub(LISTED) {
        _ if names.is_empty() => "none".to_owned(),
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names.get(..LISTED).unwrap_or_default().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use zorb::dynamic::{Dynamic, Idl};

    use super::*;

    fn wrong(name: &str, json: &str) -> String {
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
        value(&code, json, &error)
    }

    #[test]
    fn enumerators_are_listed() {
        assert_eq!(wrong("Colour", r#""PINK""#), "`PINK` is no enumerator; there are RED, GREEN, BLUE");
        let inside = wrong("Line", r#"{"from": {"x": 1, "y": 2, "z": 3}, "via": [], "colour": "PINK"}"#);
        assert_eq!(inside, "colour: `PINK` is no enumerator; there are RED, GREEN, BLUE");
        let ordinal = wrong("Colour", "3");
        assert!(ordinal.ends_with("; its enumerators are RED, GREEN, BLUE"), "{ordinal}");
        let flag = wrong("Colour", "true");
        assert!(flag.ends_with("; its enumerators are RED, GREEN, BLUE"), "{flag}");
        let case = wrong("Shape", r#"{"$case": "PINK"}"#);
        assert_eq!(case, "$case: `PINK` is no enumerator; there are RED, GREEN, BLUE");
        let entry = wrong("Colours", r#"{"sky": "BLUE", "rose": "PINK"}"#);
        assert_eq!(entry, "rose: `PINK` is no enumerator; there are RED, GREEN, BLUE");
    }

    #[test]
    fn members_that_are_missing_are_listed_all() {
        let missing = wrong("Point", r#"{"y": 1}"#);
        assert_eq!(missing, "members are missing: `x` (double), `z` (double)");
        let inside = wrong("Line", r#"{"from": {"x": 1, "y": 2, "z": 3}, "via": [[1, 2, 3], {"z": 1}]}"#);
        assert_eq!(inside, "via[1]: members are missing: `x` (double), `y` (double)");
        let short = wrong("Line", r#"{"from": [1]}"#);
        assert!(short.ends_with("`y` (double), `z` (double)"), "{short}");
    }

    #[test]
    fn members_that_there_are_are_listed_where_one_is_unknown() {
        assert_eq!(wrong("Point", r#"{"w": 1}"#), "there is no member `w`; there are `x`, `y`, `z`");
        assert_eq!(wrong("Shape", r#"{"where": 1}"#), "there is no member `where`; there are `at`, `along`");
        // Errors about a wrong type of a known member are not changed.
        assert!(wrong("Point", r#"{"x": "much"}"#).starts_with("x: "));
    }
}
