//! The model as a tree of text: one line for each definition, followed by indented lines for its contents.

use idl_compiler::Model;
use idl_compiler::model::{
    Attribute, BitField, ConstValue, Def, DefId, DefKind, Flavour, Interface, Module, Operation, Param,
    TypeId, Union, Value, ValueModifier, Visibility,
};

/// Returns all definitions in the order of the IDL. Definitions in included files are marked.
pub(crate) fn tree(model: &Model) -> String {
    let mut tree = Tree { model, text: String::new() };
    for id in model.roots() {
        tree.definition(*id, 0);
    }
    tree.text
}

struct Tree<'m> {
    model: &'m Model,
    text: String,
}

impl Tree<'_> {
    fn line(&mut self, level: usize, line: &str) {
        self.text.extend(std::iter::repeat_n("  ", level));
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn definition(&mut self, id: DefId, level: usize) {
        let def = self.model.def(id);
        // The contents of an included module are not marked again.
        let is_in_included = def.parent.is_some_and(|parent| self.model.is_included(parent));
        let included = if self.model.is_included(id) && !is_in_included { "  (included)" } else { "" };
        let head = self.head(def);
        self.line(level, &format!("{head}{included}"));
        for part in self.parts(def) {
            self.line(level + 1, &part);
        }
        for child in self.model.children(id) {
            self.definition(*child, level + 1);
        }
    }

    /// Returns the line of a definition, without its contents.
    fn head(&self, def: &Def) -> String {
        let (keyword, name) = (def.kind.keyword(), &def.name);
        match &def.kind {
            DefKind::Module(Module { template: Some(template), .. }) => {
                format!("{keyword} {name}  (instance of {template})")
            }
            DefKind::Interface(interface) => self.interface(keyword, name, interface),
            DefKind::Value(value) => self.value_type(keyword, name, value),
            DefKind::ValueBox(boxed) => format!("{keyword} {name} {}", self.ty(boxed.ty)),
            DefKind::Bitset(bitset) => format!("{keyword} {name}{}", self.name_list(" : ", bitset.base)),
            DefKind::Operation(operation) => self.operation(name, operation),
            DefKind::Attribute(attribute) => self.attribute(name, attribute),
            DefKind::Struct(body) | DefKind::Exception(body) => {
                format!("{keyword} {name}{}", self.name_list(" : ", body.base))
            }
            DefKind::Union(union) => format!("{keyword} {name} switch ({})", self.ty(union.discriminator)),
            DefKind::Typedef(alias) => format!("{keyword} {} {name}", self.ty(alias.ty)),
            DefKind::Const(constant) => {
                format!("{keyword} {} {name} = {}", self.ty(constant.ty), self.value(&constant.value))
            }
            DefKind::Module(_) | DefKind::Native | DefKind::Bitmask(_) | DefKind::Enum(_) => {
                format!("{keyword} {name}")
            }
        }
    }

    /// Returns the lines for the contents that are not definitions, such as members.
    fn parts(&self, def: &Def) -> Vec<String> {
        match &def.kind {
            DefKind::Struct(body) | DefKind::Exception(body) => {
                body.members.iter().map(|member| format!("{} {}", self.ty(member.ty), member.name)).collect()
            }
            DefKind::Union(union) => self.cases(union),
            DefKind::Enum(body) => body.enumerators.iter().map(|one| one.name.clone()).collect(),
            DefKind::Bitset(bitset) => {
                let field = |field: &BitField| {
                    let name = field.name.as_ref().map_or(String::new(), |name| format!(" {name}"));
                    format!("bitfield<{}>{name}", field.width)
                };
                bitset.fields.iter().map(field).collect()
            }
            DefKind::Bitmask(bitmask) => {
                bitmask.flags.iter().map(|flag| format!("{} at {}", flag.name, flag.position)).collect()
            }
            DefKind::Value(value) => {
                let state = value.state.iter().map(|state| {
                    let visible = if state.visibility == Visibility::Public { "public" } else { "private" };
                    format!("{visible} {} {}", self.ty(state.member.ty), state.member.name)
                });
                let factories = value.factories.iter().map(|factory| {
                    let raises = self.raises("raises", &factory.raises);
                    format!("factory {}({}){raises}", factory.name, self.params(&factory.params))
                });
                state.chain(factories).collect()
            }
            _ => Vec::new(),
        }
    }

    fn interface(&self, keyword: &str, name: &str, interface: &Interface) -> String {
        let flavour = match interface.flavour {
            Flavour::Plain => "",
            Flavour::Abstract => "abstract ",
            Flavour::Local => "local ",
        };
        let declared = if interface.only_declared { "  (only declared)" } else { "" };
        let bases = self.name_list(" : ", interface.bases.iter().copied());
        format!("{flavour}{keyword} {name}{bases}{declared}")
    }

    fn value_type(&self, keyword: &str, name: &str, value: &Value) -> String {
        let modifier = match value.modifier {
            ValueModifier::Plain => "",
            ValueModifier::Abstract => "abstract ",
            ValueModifier::Custom => "custom ",
        };
        let bases = if value.truncatable { " : truncatable " } else { " : " };
        let bases = self.name_list(bases, value.bases.iter().copied());
        let supports = self.name_list(" supports ", value.supports.iter().copied());
        format!("{modifier}{keyword} {name}{bases}{supports}")
    }

    fn operation(&self, name: &str, operation: &Operation) -> String {
        let oneway = if operation.oneway { "oneway " } else { "" };
        let result = operation.result.map_or("void".to_owned(), |ty| self.ty(ty));
        let raises = self.raises("raises", &operation.raises);
        let context = match &*operation.context {
            [] => String::new(),
            names => format!(" context ({})", names.join(", ")),
        };
        format!("{oneway}{result} {name}({}){raises}{context}", self.params(&operation.params))
    }

    fn attribute(&self, name: &str, attribute: &Attribute) -> String {
        let readonly = if attribute.readonly { "readonly " } else { "" };
        let (get, set) = (&attribute.get_raises, &attribute.set_raises);
        let raises = match attribute.readonly {
            true => self.raises("raises", get),
            false => self.raises("getraises", get) + &self.raises("setraises", set),
        };
        format!("{readonly}attribute {} {name}{raises}", self.ty(attribute.ty))
    }

    fn cases(&self, union: &Union) -> Vec<String> {
        let case = |case: &idl_compiler::model::Case| {
            let labels = case.labels.iter().map(|label| format!("case {}: ", self.value(&label.value)));
            let default = case.is_default.then(|| "default: ".to_owned());
            let labels: String = labels.chain(default).collect();
            format!("{labels}{} {}", self.ty(case.member.ty), case.member.name)
        };
        union.cases.iter().map(case).collect()
    }

    fn params(&self, params: &[Param]) -> String {
        let param = |param: &Param| {
            let direction = param.direction.keyword();
            format!("{direction} {} {}", self.ty(param.ty), param.name)
        };
        params.iter().map(param).collect::<Vec<_>>().join(", ")
    }

    fn raises(&self, keyword: &str, ids: &[DefId]) -> String {
        match self.name_list("", ids.iter().copied()) {
            names if names.is_empty() => names,
            names => format!(" {keyword} ({names})"),
        }
    }

    /// Returns the scoped names after a prefix, or an empty text if there are none.
    fn name_list(&self, prefix: &str, ids: impl IntoIterator<Item = DefId>) -> String {
        let names: Vec<String> = ids.into_iter().map(|id| self.model.scoped_name(id)).collect();
        if names.is_empty() { String::new() } else { format!("{prefix}{}", names.join(", ")) }
    }

    fn ty(&self, id: TypeId) -> String {
        self.model.describe(id)
    }

    fn value(&self, value: &ConstValue) -> String {
        match value {
            ConstValue::Bool(value) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
            ConstValue::Integer(value) => value.to_string(),
            ConstValue::Float(value) => format!("{value:?}"),
            ConstValue::LongDouble(bits) => format!("{bits:#034x} (bits)"),
            ConstValue::Char(code) => format!("{:?}", char::from(*code)),
            ConstValue::WChar(unit) => match char::from_u32(u32::from(*unit)) {
                Some(c) => format!("L{c:?}"),
                None => format!("L'\\u{unit:04x}'"),
            },
            ConstValue::String(text) => format!("{text:?}"),
            ConstValue::WString(text) => format!("L{text:?}"),
            ConstValue::Fixed { unscaled, scale } => {
                let (digits, scale) = (unscaled.unsigned_abs(), usize::from(*scale));
                let digits = format!("{digits:0>width$}", width = scale + 1);
                let (whole, rest) = digits.split_at(digits.len() - scale);
                let sign = if *unscaled < 0 { "-" } else { "" };
                let point = if rest.is_empty() { "" } else { "." };
                format!("{sign}{whole}{point}{rest}d")
            }
            ConstValue::Enum { def, ordinal } => {
                let body = self.model.enumeration(*def);
                let name = body.and_then(|body| body.enumerators.get(*ordinal as usize));
                name.map_or_else(|| ordinal.to_string(), |one| one.name.clone())
            }
        }
    }
}
