//! Template modules, and instances of them.

use super::site::{Kind, Parameter, Site};

/// A template, or an instance of one that there is.
pub(crate) fn part(site: &mut Site) {
    let template = site.one(|kind| matches!(kind, Kind::Template(_)));
    match template {
        Some(template) if site.random.below(3) > 0 => {
            let Kind::Template(parameters) = &template.kind else { unreachable!() };
            instance(site, &template.path, parameters);
        }
        _ => define(site),
    }
}

fn define(site: &mut Site) {
    let name = site.fresh("Lists");
    let mut parameters = vec![Parameter::Type];
    for more in [Parameter::Interface, Parameter::Exception, Parameter::Number] {
        if site.random.one_in(2) {
            parameters.push(more);
        }
    }
    let mut written = Vec::new();
    let mut body = "typedef sequence < T > Some ; struct Named { string name ; T thing ; } ;".to_owned();
    for parameter in &parameters {
        written.push(match parameter {
            Parameter::Type => "typename T",
            Parameter::Interface => "interface I",
            Parameter::Exception => "exception X",
            Parameter::Number => "const unsigned long most",
        });
        body += match parameter {
            Parameter::Type => "",
            Parameter::Interface => " interface Derived : I { typedef Named Taken ; } ;",
            Parameter::Exception => " interface Raising { void g ( ) raises ( X ) ; } ;",
            Parameter::Number => " typedef T Row [ most ] ; typedef string < most + 1 > Brief ;",
        };
    }
    let mut is_right = false;
    let inner = "module Inner { typedef Some Same ; } ;";
    match site.fault(&["not-found", "redefinition", "redefinition", "syntax"]) {
        None => is_right = true,
        Some(0) => body += " typedef §Nowhere Bad ;",
        Some(1) => body += " struct §Named { long a ; } ;",
        Some(2) => written.push("typename §T"),
        Some(_) => written.push("§native S"),
    }
    site.put(&format!("module {name} < {} > {{ {body} {inner} }} ;", written.join(" , ")));
    if is_right {
        site.define(&name, Kind::Template(parameters));
    }
}

fn instance(site: &mut Site, template: &[String], parameters: &[Parameter]) {
    let name = site.fresh("Made");
    let mut arguments = Vec::new();
    for parameter in parameters {
        match site.argument(*parameter) {
            Some(argument) => arguments.push(argument),
            // Nothing of the kind is there yet.
            None => return define(site),
        }
    }
    let mut spelled = site.spelled(template);
    match site.fault(&["template-argument", "template-argument", "not-found", "template-module"]) {
        None => {}
        Some(0) => {
            arguments.push("12".to_owned());
            spelled.insert(0, '§');
        }
        Some(1) => {
            arguments[0] = "§12".to_owned();
        }
        Some(2) => return site.put(&format!("module §Nowhere < long > {name} ;")),
        Some(_) => {
            site.module(&format!("Of{name}"), |site| site.put("typedef long a ;"));
            return site.put(&format!("module §Of{name} < long > {name} ;"));
        }
    }
    site.put(&format!("module {spelled} < {} > {name} ;", arguments.join(" , ")));
    site.scope.push(name);
    let mut made = vec![("Some", Kind::Data), ("Named", Kind::Data)];
    for parameter in parameters {
        match parameter {
            Parameter::Type => {}
            Parameter::Interface => made.push(("Derived", Kind::Interface)),
            Parameter::Exception => made.push(("Raising", Kind::Interface)),
            Parameter::Number => made.extend([("Row", Kind::Data), ("Brief", Kind::Data)]),
        }
    }
    for (name, kind) in made {
        site.define(name, kind);
    }
    site.scope.push("Inner".to_owned());
    site.define("Same", Kind::Data);
    site.scope.truncate(site.scope.len() - 2);
}
