//! The parts of a site's files: what each is, and what can be wrong with it.

use super::site::{Kind, Parameter, Site};
use super::templates;

/// How deep modules and files are inside each other.
const DEEPEST: usize = 4;

impl Site {
    /// All files.
    pub(crate) fn whole(&mut self) {
        self.includes_of_the_standard();
        while self.budget > 0 {
            self.part(0);
        }
        self.line("");
    }

    /// One part, perhaps with others inside.
    pub(crate) fn part(&mut self, depth: usize) {
        self.budget = self.budget.saturating_sub(1);
        let at_file_level = self.scope.is_empty();
        match self.random.below(24) {
            0..=2 if depth < DEEPEST => self.new_module(depth),
            3 | 4 if depth < DEEPEST => self.module_again(depth),
            5 | 6 if depth < DEEPEST => self.included(depth),
            7 if at_file_level && !self.plan.classic && depth < DEEPEST => self.imported(depth),
            8 if depth < DEEPEST => self.declared_first(depth),
            9 => self.prefix_line(),
            10 => self.natives(),
            11 | 12 if !self.plan.classic => templates::part(self),
            13 => self.fixed(),
            14 | 15 => self.integer(),
            16 => self.enumeration(),
            17 => self.union(),
            18 => self.interface(),
            19 => self.value(),
            20 => self.exception(),
            21 => self.typedef(),
            22 if !self.plan.classic => self.recursive(),
            _ => self.structure(),
        }
    }

    fn parts(&mut self, depth: usize) {
        // No module is empty.
        self.structure();
        for _ in 0..self.random.below(4) {
            self.part(depth);
        }
    }

    /// Files that come with an ORB, by names that ORBs give them.
    fn includes_of_the_standard(&mut self) {
        if self.plan.classic {
            return;
        }
        /// How ORBs call a file, and some of what it declares.
        type File = (&'static [&'static str], &'static [(&'static str, Kind)]);
        const FILES: [File; 3] = [
            (
                &["<orb.idl>", "\"orb.idl\"", "<CORBA.idl>", "\"tao/orb.idl\"", "<omg/orb.idl>"],
                &[
                    ("CORBA::StringSeq", Kind::Data),
                    ("CORBA::OctetSeq", Kind::Data),
                    ("CORBA::Identifier", Kind::Data),
                    ("CORBA::ParameterMode", Kind::Data),
                ],
            ),
            (
                &["<TimeBase.idl>", "\"TimeBase.idl\"", "\"tao/TimeBase.pidl\""],
                &[("TimeBase::TimeT", Kind::Data), ("TimeBase::IntervalT", Kind::Data)],
            ),
            (
                &["<CosNaming.idl>", "\"COS/CosNaming.idl\"", "\"orbsvcs/CosNaming.idl\""],
                &[
                    ("CosNaming::Name", Kind::Data),
                    ("CosNaming::NamingContext", Kind::Interface),
                    ("CosNaming::NamingContext::InvalidName", Kind::Exception),
                ],
            ),
        ];
        for (spellings, names) in FILES {
            if !self.random.one_in(2) {
                continue;
            }
            let spelling = *self.random.pick(spellings);
            if self.fault(&["include"]).is_some() {
                self.line("#include §<missing.idl>");
            }
            self.line(&format!("#include {spelling}"));
            for (name, kind) in names {
                let path = name.split("::").map(str::to_owned).collect();
                self.known.push(super::site::Known { path, kind: kind.clone() });
            }
        }
    }

    fn new_module(&mut self, depth: usize) {
        let name = self.fresh("Area");
        let is_free = self.scope.is_empty() && self.prefix().is_empty();
        // omniidl does not have it.
        let prefixed = is_free && !self.plan.classic && self.random.one_in(3);
        // Before there is such a module, after it, or both.
        let when = self.random.below(3);
        let line = format!("typeprefix {name} \"site.org/{name}\" ;");
        if prefixed {
            self.typeprefixes.push((name.clone(), format!("site.org/{name}")));
        }
        if prefixed && when != 1 {
            self.put(&line);
        }
        if prefixed && when == 1 {
            self.prefixed_later.push(name.clone());
        }
        self.define(&name, Kind::Module);
        match self.fault(&["syntax", "redefinition"]) {
            None => self.module(&name, |site| site.parts(depth + 1)),
            Some(0) => {
                self.module(&name, |site| {
                    site.structure();
                    site.line("typedef long §Unended");
                });
            }
            Some(_) => {
                self.module(&name, Self::structure);
                self.put(&format!("struct §{name} {{ long a ; }} ;"));
            }
        }
        if prefixed && when != 0 {
            self.put(&line);
        }
        if prefixed && self.fault(&["repository-id"]).is_some() {
            self.put(&format!("typeprefix {name} §\"other.org\" ;"));
        }
    }

    /// A module that was open before, perhaps in another file.
    fn module_again(&mut self, depth: usize) {
        let here = self.scope.clone();
        let is_here = |known: &super::site::Known| {
            known.kind == Kind::Module && known.path[..known.path.len() - 1] == here
        };
        let modules: Vec<String> = self
            .known
            .iter()
            .filter(|known| is_here(known))
            .map(|known| known.path.last().unwrap().clone())
            .collect();
        if modules.is_empty() {
            return self.structure();
        }
        let name = self.random.pick(&modules).clone();
        let prefix = self.typeprefixes.iter().find(|(module, _)| *module == name).cloned();
        if prefix.is_some() && !self.prefix().is_empty() {
            return self.structure();
        }
        if let Some((_, prefix)) = &prefix
            && here.is_empty()
        {
            match self.fault(&["repository-id"]) {
                None => self.put(&format!("typeprefix {name} \"{prefix}\" ;")),
                Some(_) => self.put(&format!("typeprefix ::{name} §\"other.org/{name}\" ;")),
            }
        }
        self.module(&name, |site| site.parts(depth + 1));
    }

    /// A file, asked for in whatever scope is open.
    fn included(&mut self, depth: usize) {
        let name = self.fresh("part") + ".idl";
        if self.fault(&["include"]).is_some() {
            return self.line("#include §\"nowhere.idl\"");
        }
        self.include(&name, |site| site.parts(depth + 1));
    }

    /// A file that has a module's name, and an `import` finds.
    fn imported(&mut self, depth: usize) {
        let name = self.fresh("Depot");
        match self.fault(&["unknown-import", "unknown-import"]) {
            None => {}
            Some(0) => return self.put("import §::Nowhere ;"),
            Some(_) => return self.put("import §\"nowhere.idl\" ;"),
        }
        let (file, import) = match self.random.below(4) {
            0 => (format!("{name}.idl"), format!("import ::{name} ;")),
            1 => (format!("inc/{}.idl", name.to_lowercase()), format!("import ::{name} ;")),
            2 => (format!("inc/{name}.idl"), format!("import {name} ;")),
            _ => (format!("inc/{name}.idl"), format!("import \"{name}.idl\" ;")),
        };
        self.put(&import);
        self.file(file, |site| {
            site.define(&name, Kind::Module);
            site.module(&name, |site| site.parts(depth + 1));
        });
        if self.random.one_in(2) {
            self.put(&import);
        }
        // What is declared is free.
        let module = self.one(|kind| *kind == Kind::Module).unwrap();
        self.put(&format!("import ::{} ;", module.path.join("::")));
    }

    /// An interface or struct that is defined in another opening of its module, or in a file inside of it.
    fn declared_first(&mut self, depth: usize) {
        let (area, name) = (self.fresh("Area"), self.fresh("Gate"));
        let in_file = self.random.one_in(2) && !self.plan.classic;
        let in_file = in_file.then(|| self.fresh("body") + ".idl");
        self.define(&area, Kind::Module);
        // omniidl does not miss a definition.
        const CODES: &[&str] = &["redefinition", "incomplete", "never-defined"];
        let fault = self.fault(if self.plan.classic { &CODES[..2] } else { CODES });
        let mark = if fault == Some(2) { "§" } else { "" };
        let definition = match fault {
            None => format!("interface {name} {{ void open ( in {name} other ) ; }} ;"),
            Some(0) => format!("valuetype §{name} {{ public long a ; }} ;"),
            Some(1) => format!("interface Derived : §{name} {{ }} ; interface {name} {{ }} ;"),
            Some(_) => String::new(),
        };
        let defined = |site: &mut Self| {
            site.put(&definition);
            if fault.is_none() {
                site.define(&name, Kind::Interface);
            }
        };
        self.module(&area, |site| {
            site.put(&format!("interface {mark}{name} ;"));
            site.put(&format!("typedef sequence < {name} > Many ;"));
            if fault.is_none() {
                // In a scope of its own, which keeps prefixes to itself.
                let inner = site.fresh("Area");
                site.module(&inner, |site| site.parts(depth + 1));
            }
            if let Some(file) = &in_file {
                site.include(file, |site| {
                    site.structure();
                    defined(site);
                });
            }
        });
        if in_file.is_none() {
            self.module(&area, |site| {
                site.structure();
                defined(site);
            });
        }
    }

    fn prefix_line(&mut self) {
        // A `typeprefix` takes the place of prefixes that stand before it.
        if self.is_prefixed_later() {
            return self.structure();
        }
        let name = self.fresh("owner");
        let codes: &[&str] = if self.plan.classic { &["syntax"] } else { &["syntax", "bad-pragma"] };
        match self.fault(codes) {
            None => {}
            Some(0) => return self.line("#pragma prefix §owner"),
            Some(_) => return self.line("#pragma prefix §\"with blank\""),
        }
        // A `;` after it is a habit of some.
        let end = if self.random.one_in(4) && !self.plan.classic { ";" } else { "" };
        self.line(&format!("#pragma prefix \"{name}.com\"{end}"));
        self.set_prefix(format!("{name}.com"));
        self.structure();
    }

    /// A native type, and an operation that raises it.
    fn natives(&mut self) {
        let (native, holder) = (self.fresh("Handle"), self.fresh("Holder"));
        self.put(&format!("native {native} ;"));
        self.define(&native, Kind::Native);
        if self.plan.classic {
            return;
        }
        match self.fault(&["native-member", "not-an-exception"]) {
            None => {
                self.put(&format!(
                    "valuetype {holder} {{ void raise_it ( ) raises ( {native} ) ; public long a ; }} ;"
                ));
                self.define(&holder, Kind::Value);
            }
            Some(0) => self.put(&format!("struct {holder} {{ long a ; {native} §b ; }} ;")),
            Some(_) => self.put(&format!(
                "struct {holder} {{ long a ; }} ; interface Of{holder} {{ void f ( ) raises ( §{holder} ) ; }} ;"
            )),
        }
    }

    /// A type, of a member.
    pub(crate) fn a_type(&mut self) -> String {
        const BASIC: [&str; 12] = [
            "long",
            "short",
            "octet",
            "boolean",
            "double",
            "char",
            "any",
            "unsigned long long",
            "string",
            "wstring",
            "Object",
            "string < 12 >",
        ];
        let known = match self.random.below(3) {
            0 => None,
            _ => self.name_of_one(|kind| {
                matches!(kind, Kind::Data | Kind::Enum(_) | Kind::Interface | Kind::Value)
            }),
        };
        let one = known.unwrap_or_else(|| (*self.random.pick(&BASIC)).to_owned());
        match self.random.below(8) {
            0 => format!("sequence < {one} >"),
            1 => format!("sequence < {one} , 9 >"),
            _ => one,
        }
    }

    /// An annotation that has a meaning, or none here.
    fn annotation(&mut self, of: &[&'static str]) -> &'static str {
        if self.plan.classic || !self.random.one_in(4) { "" } else { self.random.pick::<&str>(of) }
    }

    fn structure(&mut self) {
        let name = self.fresh("Entry");
        let mut members = String::new();
        for number in 0..1 + self.random.below(3) {
            let annotation =
                self.annotation(&["@key", "@optional", "@id(7)", "@external", "@must_understand"]);
            members += &format!("{annotation} {} m{number} ; ", self.a_type());
        }
        let fault = self.fault(&[
            "not-found",
            "redefinition",
            "recursive",
            "bad-bound",
            "syntax",
            "stray-character",
            "case-collision",
            "keyword-collision",
        ]);
        match fault {
            None => {}
            Some(0) => members += "§Nowhere n ;",
            Some(1) => members += "long §m0 ;",
            Some(2) => members += &format!("§{name} inner ;"),
            Some(3) => members += "long n [ §0 ] ;",
            Some(4) => members += "long §; ",
            Some(5) => members += "long §$ n ;",
            Some(6) => members += "long §M0 ;",
            Some(_) => members += "long §Struct ;",
        }
        self.put(&format!("struct {name} {{ {members} }} ;"));
        self.define(&name, Kind::Data);
        if self.random.one_in(5) {
            let version = format!("{}.{}", 2 + self.random.below(9), self.random.below(9));
            match self.fault(&["bad-pragma", "not-found"]) {
                None => self.line(&format!("#pragma version {name} {version}")),
                Some(0) => return self.line(&format!("#pragma version {name} §1.2.3")),
                Some(_) => return self.line(&format!("#pragma version §Nowhere {version}")),
            }
            self.version(&name, &version);
        }
    }

    /// A struct that holds itself by a sequence.
    fn recursive(&mut self) {
        let (name, list) = (self.fresh("Node"), self.fresh("Nodes"));
        match self.fault(&["recursive", "never-defined"]) {
            None => {}
            Some(0) => {
                return self.put(&format!("struct {name} ; struct {name} {{ long a ; §{name} b ; }} ;"));
            }
            Some(_) => return self.put(&format!("struct §{name} ; typedef sequence < {name} > {list} ;")),
        }
        self.put(&format!("struct {name} ; typedef sequence < {name} > {list} ;"));
        self.put(&format!("struct {name} {{ long a ; {list} inner ; }} ;"));
        self.define(&name, Kind::Data);
        self.define(&list, Kind::Data);
    }

    fn typedef(&mut self) {
        let name = self.fresh("Alias");
        let size = self.size();
        // omniidl takes a constant for a type.
        let codes: &[&str] =
            if self.plan.classic { &["bad-bound", "syntax"] } else { &["bad-bound", "syntax", "not-a-type"] };
        let fault = self.fault(codes);
        let body = match (fault, self.random.below(4)) {
            (Some(0), _) => format!("sequence < long , §0 > {name}"),
            (Some(1), _) => format!("long {name} [ 3 §) ]"),
            (Some(_), _) => {
                self.put(&format!("const long Of{name} = 3 ;"));
                format!("§Of{name} {name}")
            }
            (None, 0) => format!("string < {size} > {name}"),
            (None, 1) => format!("sequence < {} , {size} > {name}", self.a_type()),
            (None, 2) => {
                let annotation =
                    self.annotation(&["@default(5)", "@min(2)", "@range(min=1,max=7)", "@unit(\"m\")"]);
                self.put(annotation);
                format!("long {name}")
            }
            (None, _) => format!("{} {name} [ {size} ] [ 2 ]", self.a_type()),
        };
        self.put(&format!("typedef {body} ;"));
        self.define(&name, Kind::Data);
    }

    /// A bound: a number or a constant.
    fn size(&mut self) -> String {
        let constant = self.one(|kind| matches!(kind, Kind::Integer(1..=1000)));
        match constant {
            Some(constant) if self.random.one_in(2) => self.spelled(&constant.path),
            _ => (1 + self.random.below(40)).to_string(),
        }
    }

    fn enumeration(&mut self) {
        let name = self.fresh("State");
        let enumerators: Vec<String> = (0..2 + self.random.below(3)).map(|_| self.fresh("is")).collect();
        let annotated = !self.plan.classic && self.random.one_in(2);
        let bits = if annotated { "@bit_bound(16)" } else { "" };
        let listed: Vec<String> = enumerators
            .iter()
            .enumerate()
            .map(|(at, one)| if annotated { format!("@value({}) {one}", 3 * at + 1) } else { one.clone() })
            .collect();
        let listed = listed.join(" , ");
        let codes: &[&str] = if self.plan.classic {
            &["redefinition", "syntax", "syntax"]
        } else {
            &["redefinition", "syntax", "syntax", "type-mismatch", "bad-annotation", "redefinition"]
        };
        match self.fault(codes) {
            None => self.put(&format!("{bits} enum {name} {{ {listed} }} ;")),
            Some(0) => self.put(&format!("enum {name} {{ {listed} , §{} }} ;", enumerators[0])),
            Some(1) => self.put(&format!("enum {name} {{ {listed} §, }} ;")),
            Some(2) => self.put(&format!("enum {name} {{ {listed} §; }} ;")),
            Some(3) => self.put(&format!("enum {name} {{ {listed} , @value(§\"x\") x{name} }} ;")),
            Some(4) => self.put(&format!("§@bit_bound(99) enum {name} {{ {listed} }} ;")),
            Some(_) => {
                self.put(&format!("@value(1) enum {name} {{ {listed} }} ; enum §{name} {{ y{name} }} ;"))
            }
        }
        self.define(&name, Kind::Enum(enumerators));
    }

    fn union(&mut self) {
        let name = self.fresh("Choice");
        let of_enum = self.one(|kind| matches!(kind, Kind::Enum(_)));
        let (switch, labels) = match of_enum {
            Some(known) if self.random.one_in(2) => {
                let Kind::Enum(enumerators) = &known.kind else { unreachable!() };
                let mut path = known.path.clone();
                let mut labels = Vec::new();
                for enumerator in enumerators {
                    *path.last_mut().unwrap() = enumerator.clone();
                    labels.push(self.spelled(&path));
                }
                (self.spelled(&known.path), labels)
            }
            _ => {
                let switch = *self.random.pick(&["long", "unsigned short", "octet_", "char"]);
                match switch {
                    "char" => {
                        ("char".to_owned(), vec!["'a'".to_owned(), "'b'".to_owned(), "'\\n'".to_owned()])
                    }
                    "octet_" => (
                        "unsigned long".to_owned(),
                        vec!["1".to_owned(), "1+1".to_owned(), "(1<<4)".to_owned()],
                    ),
                    other => (other.to_owned(), vec!["7".to_owned(), "0x10".to_owned()]),
                }
            }
        };
        let mut cases = String::new();
        for (number, label) in labels.iter().enumerate() {
            let annotation = self.annotation(&["@optional", "@try_construct"]);
            cases += &format!("case {label} : {annotation} {} m{number} ; ", self.a_type());
        }
        let fault = self.fault(&["duplicate-label", "bad-discriminator", "type-mismatch", "not-found"]);
        match fault {
            None => {}
            Some(0) => cases += &format!("case §{} : long n ;", labels[0]),
            Some(1) => {
                return self.put(&format!("union {name} switch ( §double ) {{ case 1 : long n ; }} ;"));
            }
            Some(2) => cases += "case §\"text\" : long n ;",
            Some(_) => cases += "case §nowhere : long n ;",
        }
        self.put(&format!("union {name} switch ( {switch} ) {{ {cases} }} ;"));
        self.define(&name, Kind::Data);
    }

    /// Arguments that a template takes.
    pub(crate) fn argument(&mut self, of: Parameter) -> Option<String> {
        match of {
            Parameter::Type => {
                let ty = self.a_type();
                Some(if ty.starts_with("sequence") { "short".to_owned() } else { ty })
            }
            Parameter::Number => Some(self.size()),
            Parameter::Interface => self.name_of_one(|kind| *kind == Kind::Interface),
            Parameter::Exception => self.name_of_one(|kind| *kind == Kind::Exception),
        }
    }
}
