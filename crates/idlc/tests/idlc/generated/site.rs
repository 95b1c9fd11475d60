//! Files of IDL that are right by construction, or wrong at one place that is known.

use std::fmt::Write as _;

/// SplitMix64: the same text for a seed, always.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Which text: of two of one seed, all is the same up to the fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// Only what omniidl knows.
    pub(crate) classic: bool,
    /// The place of the fault, of those that the text has, and which of the faults that can be there.
    pub(crate) fault: Option<(usize, usize)>,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: &'static str,
    pub(crate) file: String,
    pub(crate) line: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A struct, union, enum or typedef: a type that is a member of others.
    Data,
    Enum(Vec<String>),
    Integer(i64),
    Interface,
    Exception,
    Value,
    Native,
    /// What it takes, in order.
    Template(Vec<Parameter>),
    Module,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Parameter {
    Type,
    Interface,
    Exception,
    Number,
}

#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) path: Vec<String>,
    pub(crate) kind: Kind,
}

/// The value of a constant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Number {
    Integer(i64),
    /// Without zeros at the end.
    Fixed {
        unscaled: i128,
        scale: u8,
    },
}

struct Open {
    file: usize,
    prefix: String,
}

/// What is written so far.
pub(crate) struct Site {
    pub(crate) random: Random,
    pub(crate) plan: Plan,
    /// The first is the one to compile.
    pub(crate) files: Vec<(String, String)>,
    open: Vec<Open>,
    pub(crate) scope: Vec<String>,
    pub(crate) known: Vec<Known>,
    /// By scoped names.
    pub(crate) ids: Vec<(String, String)>,
    pub(crate) constants: Vec<(String, Number)>,
    /// What `typeprefix` says of modules.
    pub(crate) typeprefixes: Vec<(String, String)>,
    /// Modules of which it says so after they have begun.
    pub(crate) prefixed_later: Vec<String>,
    names: usize,
    places: usize,
    code: Option<&'static str>,
    pub(crate) fault: Option<Fault>,
    /// Parts that are still to come.
    pub(crate) budget: usize,
}

impl Site {
    pub(crate) fn new(plan: Plan) -> Self {
        let mut site = Self {
            random: Random::new(plan.seed),
            plan,
            files: vec![("main.idl".to_owned(), String::new())],
            open: vec![Open { file: 0, prefix: String::new() }],
            scope: Vec::new(),
            known: Vec::new(),
            ids: Vec::new(),
            constants: Vec::new(),
            typeprefixes: Vec::new(),
            prefixed_later: Vec::new(),
            names: 0,
            places: 0,
            code: None,
            fault: None,
            budget: 0,
        };
        site.budget = 8 + site.random.below(24);
        site.whole();
        assert!(site.code.is_none(), "a fault that is nowhere: {plan:?}");
        site
    }

    /// How many places there are for faults.
    pub(crate) fn places(&self) -> usize {
        self.places
    }

    /// Asks for a fault here: which one, of those with these codes.
    pub(crate) fn fault(&mut self, codes: &[&'static str]) -> Option<usize> {
        let here = self.places;
        self.places += 1;
        let (place, variant) = self.plan.fault?;
        if place != here {
            return None;
        }
        let variant = variant % codes.len();
        self.code = Some(codes[variant]);
        Some(variant)
    }

    fn text(&mut self) -> &mut String {
        let file = self.open.last().unwrap().file;
        &mut self.files[file].1
    }

    /// Writes the tokens of a text that is separated by blanks, with random white space and comments between
    /// them. `§` marks the token of the fault.
    pub(crate) fn put(&mut self, tokens: &str) {
        for token in tokens.split_whitespace() {
            let between = match self.random.below(24) {
                // Which omniidl has between definitions only.
                0 if !self.plan.classic => "\n#pragma keylist State a\n",
                1 => " /* between; \" */ ",
                2 => " // after: '\n",
                3 | 4 => "\n    ",
                _ => " ",
            };
            self.text().push_str(between);
            let plain = token.replace('§', "");
            if plain.len() < token.len() {
                self.marked();
            }
            self.text().push_str(&plain);
        }
    }

    /// The fault is in the line that is written.
    fn marked(&mut self) {
        let (name, text) = &self.files[self.open.last().unwrap().file];
        let line = text.matches('\n').count() + 1;
        let code = self.code.take().expect("a fault that was asked for");
        self.fault = Some(Fault { code, file: name.clone(), line });
    }

    /// A line of its own.
    pub(crate) fn line(&mut self, line: &str) {
        if !self.text().is_empty() && !self.text().ends_with('\n') {
            self.text().push('\n');
        }
        let plain = line.replace('§', "");
        if plain.len() < line.len() {
            self.marked();
        }
        let _ = writeln!(self.text(), "{plain}");
    }

    pub(crate) fn fresh(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    pub(crate) fn path(&self, name: &str) -> Vec<String> {
        self.scope.iter().cloned().chain([name.to_owned()]).collect()
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.open.last().unwrap().prefix
    }

    pub(crate) fn set_prefix(&mut self, prefix: String) {
        self.open.last_mut().unwrap().prefix = prefix;
    }

    /// The id of something in this scope.
    fn id(&self, path: &[String], version: &str) -> String {
        let slash = if self.prefix().is_empty() { "" } else { "/" };
        format!("IDL:{}{slash}{}:{version}", self.prefix(), path.join("/"))
    }

    /// Something is defined, in the scope that is open.
    pub(crate) fn define(&mut self, name: &str, kind: Kind) {
        let path = self.path(name);
        let has_id = !matches!(kind, Kind::Native | Kind::Template(_) | Kind::Module);
        if has_id {
            self.ids.push((path.join("::"), self.id(&path, "1.0")));
        }
        self.known.push(Known { path, kind });
    }

    pub(crate) fn is_prefixed_later(&self) -> bool {
        self.scope.first().is_some_and(|module| self.prefixed_later.contains(module))
    }

    /// Its id has another version.
    pub(crate) fn version(&mut self, name: &str, version: &str) {
        let path = self.path(name);
        let id = self.id(&path, version);
        let name = path.join("::");
        self.ids.iter_mut().find(|(known, _)| *known == name).unwrap().1 = id;
    }

    /// How the scope that is open can call it: from anywhere, or by a part of its name.
    pub(crate) fn spelled(&mut self, path: &[String]) -> String {
        if self.random.one_in(3) {
            return format!("::{}", path.join("::"));
        }
        let parents = &path[..path.len() - 1];
        let common = self.scope.iter().zip(parents).take_while(|(here, there)| here == there).count();
        let from = self.random.below(common + 1);
        path[from..].join("::")
    }

    /// One of those that are known, if there is any.
    pub(crate) fn one(&mut self, is: impl Fn(&Kind) -> bool) -> Option<Known> {
        let all: Vec<usize> = (0..self.known.len()).filter(|index| is(&self.known[*index].kind)).collect();
        (!all.is_empty()).then(|| *self.random.pick(&all)).map(|index| self.known[index].clone())
    }

    /// Like [`one`](Self::one), as it is called here.
    pub(crate) fn name_of_one(&mut self, is: impl Fn(&Kind) -> bool) -> Option<String> {
        let known = self.one(is)?;
        Some(self.spelled(&known.path))
    }

    /// A file in the folder of the one that is open, which asks for it.
    pub(crate) fn include(&mut self, name: &str, content: impl FnOnce(&mut Self)) {
        self.line(&format!("#include \"{name}\""));
        let here = &self.files[self.open.last().unwrap().file].0;
        let folder = here.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        self.file(folder + name, content);
    }

    /// Writes into another file, that the one that is open asks for here.
    pub(crate) fn file(&mut self, name: String, content: impl FnOnce(&mut Self)) {
        // In a scope it goes on with its prefix, else it begins without one.
        let prefix = if self.scope.is_empty() { String::new() } else { self.prefix().to_owned() };
        self.files.push((name, String::new()));
        self.open.push(Open { file: self.files.len() - 1, prefix });
        content(self);
        self.line("");
        self.open.pop();
    }

    /// A module, with what is inside.
    pub(crate) fn module(&mut self, name: &str, content: impl FnOnce(&mut Self)) {
        let outer = self.prefix().to_owned();
        if self.scope.is_empty()
            && let Some((_, prefix)) = self.typeprefixes.iter().find(|(module, _)| module == name)
        {
            let prefix = prefix.clone();
            self.set_prefix(prefix);
        }
        self.put(&format!("module {name} {{"));
        self.scope.push(name.to_owned());
        content(self);
        self.scope.pop();
        self.put("} ;");
        self.set_prefix(outer);
    }
}
