//! What `idlc model --json` prints, as the lines that `definitions.py` makes of what omniidl finds.

use std::collections::BTreeSet;

use serde_json::Value;

/// A line for each definition, those of included files too.
pub(crate) fn lines(model: &Value) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for def in list(&model["definitions"]) {
        one(def, &mut lines);
    }
    lines
}

fn one(def: &Value, lines: &mut BTreeSet<String>) {
    let flag = |key: &'static str| if def[key] == true { key } else { "" };
    let flavour = format!("{}{}", flag("abstract"), flag("local"));
    let bases = || format!(": {}", names(&def["bases"]));
    let (kind, parts): (&str, Vec<String>) = match text(&def["kind"]) {
        "interface" => ("interface", vec![flavour, bases()]),
        kind @ ("module" | "native") => (kind, Vec::new()),
        "const" => {
            let value = value(&def["value"]);
            ("const", vec![ty(&def["type"]), "=".into(), value])
        }
        "typedef" => ("typedef", vec![ty(&def["type"])]),
        kind @ ("struct" | "exception") => (kind, braces(&members(&def["members"]))),
        "union" => {
            let cases = list(&def["cases"]).map(case).collect::<Vec<_>>().join("; ");
            let mut parts = vec!["switch".into(), ty(&def["discriminator"])];
            parts.extend(braces(&cases));
            ("union", parts)
        }
        "enum" => {
            let names = list(&def["enumerators"]).map(|it| text(&it["name"])).collect::<Vec<_>>();
            ("enum", braces(&names.join(" ")))
        }
        "attribute" => ("attribute", vec![flag("readonly").into(), ty(&def["type"])]),
        "operation" => {
            let result = if def["result"].is_null() { "void".into() } else { ty(&def["result"]) };
            let contexts = list(&def["context"]).map(text).collect::<Vec<_>>().join(" ");
            let parts = vec![
                flag("oneway").into(),
                result,
                format!("({})", params(&def["params"])),
                format!("raises ({})", names(&def["raises"])),
                format!("context ({contexts})"),
            ];
            ("operation", parts)
        }
        "valuetype" | "eventtype" if def["boxed"].is_null() => ("value", value_type(def)),
        "valuetype" => ("box", vec![ty(&def["boxed"])]),
        kind => ("unknown", vec![kind.to_owned()]),
    };
    let mut line = format!("{kind} {} {}", text(&def["scoped_name"]), text(&def["repository_id"]));
    for part in parts.iter().filter(|part| !part.is_empty()) {
        line = format!("{line} {part}");
    }
    lines.insert(line);
    for inner in list(&def["definitions"]) {
        one(inner, lines);
    }
}

fn value_type(def: &Value) -> Vec<String> {
    let flag = |key: &str| if def[key] == true { key.to_owned() } else { String::new() };
    let state = list(&def["state"]).map(|member| {
        let access = if member["public"] == true { "public" } else { "private" };
        format!("{access} {} {}", ty(&member["type"]), text(&member["name"]))
    });
    let factories = list(&def["factories"]).map(|made| {
        let (name, params, raises) = (text(&made["name"]), params(&made["params"]), names(&made["raises"]));
        format!("factory {name}({params}) raises ({raises})")
    });
    let mut parts = vec![
        flag("abstract") + &flag("custom"),
        flag("truncatable"),
        format!(": {}", names(&def["bases"])),
        format!("supports {}", names(&def["supports"])),
    ];
    parts.extend(braces(&state.chain(factories).collect::<Vec<_>>().join("; ")));
    parts
}

fn members(of: &Value) -> String {
    let members = list(of).map(|member| format!("{} {}", ty(&member["type"]), text(&member["name"])));
    members.collect::<Vec<_>>().join("; ")
}

fn params(of: &Value) -> String {
    let params = list(of).map(|param| {
        format!("{} {} {}", text(&param["direction"]), ty(&param["type"]), text(&param["name"]))
    });
    params.collect::<Vec<_>>().join(", ")
}

fn case(case: &Value) -> String {
    let mut labels: Vec<String> = list(&case["labels"]).map(value).collect();
    if case["default"] == true {
        labels.push("default".into());
    }
    let member = &case["member"];
    format!("{}: {} {}", labels.join(" "), ty(&member["type"]), text(&member["name"]))
}

fn ty(ty: &Value) -> String {
    let Some(object) = ty.as_object() else { return text(ty).to_owned() };
    let Some((kind, of)) = object.iter().next() else { return String::new() };
    match kind.as_str() {
        "name" => text(of).to_owned(),
        "sequence" if of["bound"].is_null() => format!("sequence<{}>", self::ty(&of["element"])),
        "sequence" => format!("sequence<{}, {}>", self::ty(&of["element"]), of["bound"]),
        "array" => {
            let dims = list(&of["dims"]).map(|dim| format!("[{dim}]"));
            format!("{}{}", self::ty(&of["element"]), dims.collect::<String>())
        }
        "fixed" => format!("fixed<{}, {}>", of["digits"], of["scale"]),
        kind => format!("{kind}<{}>", of["bound"]),
    }
}

fn value(value: &Value) -> String {
    let Some(object) = value.as_object() else { return value.to_string() };
    let key = |key: &str| object.get(key);
    match (key("integer"), key("bits"), key("string"), key("char"), key("name")) {
        (Some(integer), ..) => text(integer).to_owned(),
        (_, Some(bits), ..) => format!("float {}", text(bits)),
        (_, _, Some(string), ..) => string.to_string(),
        (_, _, _, Some(code), _) => {
            let code = code.as_u64().and_then(|code| u8::try_from(code).ok());
            Value::from(code.map(char::from).map(String::from)).to_string()
        }
        (.., Some(name)) => text(name).to_owned(),
        _ => value.to_string(),
    }
}

fn braces(inner: &str) -> Vec<String> {
    vec!["{".into(), inner.into(), "}".into()]
}

fn names(of: &Value) -> String {
    list(of).map(text).collect::<Vec<_>>().join(" ")
}

fn list(of: &Value) -> impl Iterator<Item = &Value> {
    of.as_array().into_iter().flatten()
}

fn text(of: &Value) -> &str {
    of.as_str().unwrap_or_default()
}
