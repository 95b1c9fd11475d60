//! Models as text, for comparing; texts of many shapes.

pub(crate) mod corpus;
pub(crate) mod shapes;

use idl_compiler::Model;
use idl_compiler::model::{
    Annotations, Attribute, ConstValue, Construct, DefId, DefKind, Docs, Flavour, Member, Operation, Param,
    TypeId, Union, Value,
};

/// Everything in the model but spans, one line a thing.
pub(crate) fn dump(model: &Model) -> String {
    let mut dump = Dump { model, text: String::new(), depth: 0 };
    dump.docs(model.docs());
    for root in model.roots() {
        dump.def(*root);
    }
    dump.text
}

struct Dump<'a> {
    model: &'a Model,
    text: String,
    depth: usize,
}

impl Dump<'_> {
    fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(&"  ".repeat(self.depth));
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    fn docs(&mut self, docs: &Docs) {
        for line in &docs.lines {
            self.line(format!("/// {line}"));
        }
    }

    fn annotations(&mut self, annotations: &Annotations) {
        for annotation in &annotations.0 {
            let args: Vec<String> =
                annotation.args.iter().map(|arg| format!("{:?}={:?}", arg.name, arg.value)).collect();
            self.line(format!("@{}({})", annotation.name, args.join(", ")));
        }
    }

    fn ty(&self, ty: TypeId) -> String {
        self.model.describe(ty)
    }

    fn names(&self, defs: &[DefId]) -> String {
        defs.iter().map(|def| self.model.scoped_name(*def)).collect::<Vec<_>>().join(", ")
    }

    fn def(&mut self, id: DefId) {
        let def = self.model.def(id).clone();
        self.docs(&def.docs);
        self.annotations(&def.annotations);
        let recursive = if self.model.is_recursive(id) { " recursive" } else { "" };
        self.line(format!("{} {} \"{}\"{recursive}", def.kind.keyword(), def.name, def.repository_id));
        self.depth += 1;
        for child in self.model.children(id) {
            self.def(*child);
        }
        match &def.kind {
            DefKind::Module(_) => {}
            DefKind::Interface(interface) => {
                let bases = self.names(&interface.bases);
                if interface.flavour != Flavour::Plain {
                    self.line(format!("{:?}", interface.flavour));
                }
                if interface.construct != Construct::Interface {
                    self.line(format!("{:?}", interface.construct));
                }
                if interface.only_declared {
                    self.line("only declared");
                }
                self.line(format!("bases: {bases}"));
                let all: Vec<String> = self.model.all_members(id).map(|def| def.name.clone()).collect();
                self.line(format!("all: {}", all.join(", ")));
            }
            DefKind::Operation(operation) => self.operation(operation),
            DefKind::Attribute(attribute) => self.attribute(attribute),
            DefKind::Struct(body) | DefKind::Exception(body) => {
                if let Some(base) = body.base {
                    self.line(format!("base: {}", self.model.scoped_name(base)));
                }
                body.members.iter().for_each(|member| self.member("member", member));
            }
            DefKind::Union(union) => self.union(union),
            DefKind::Enum(body) => {
                for enumerator in &body.enumerators {
                    self.docs(&enumerator.docs);
                    self.annotations(&enumerator.annotations);
                    self.line(&enumerator.name);
                }
            }
            DefKind::Typedef(alias) => self.line(self.ty(alias.ty)),
            DefKind::Const(constant) => {
                let value = self.value(&constant.value);
                self.line(format!("{} = {value}", self.ty(constant.ty)));
            }
            DefKind::Value(value) => self.value_type(id, value),
            DefKind::ValueBox(boxed) => self.line(format!("boxes {}", self.ty(boxed.ty))),
            DefKind::Native => {}
            DefKind::Bitset(bitset) => {
                let base = bitset.base.map(|base| self.model.scoped_name(base));
                self.line(format!("base: {base:?}, in {}", self.model.holder_type(id).idl_name()));
                for field in &bitset.fields {
                    self.docs(&field.docs);
                    self.annotations(&field.annotations);
                    self.line(format!("{} {:?}: {}", field.ty.idl_name(), field.name, field.width));
                }
            }
            DefKind::Bitmask(bitmask) => {
                self.line(format!(
                    "bound: {}, in {}",
                    bitmask.bit_bound,
                    self.model.holder_type(id).idl_name()
                ));
                for flag in &bitmask.flags {
                    self.docs(&flag.docs);
                    self.annotations(&flag.annotations);
                    self.line(format!("{} at {}", flag.name, flag.position));
                }
            }
        }
        self.depth -= 1;
    }

    fn value_type(&mut self, id: DefId, value: &Value) {
        let (bases, supports) = (self.names(&value.bases), self.names(&value.supports));
        self.line(format!(
            "{:?}, truncatable: {}, bases: {bases}, supports: {supports}",
            value.modifier, value.truncatable
        ));
        let all: Vec<String> = self.model.all_members(id).map(|def| def.name.clone()).collect();
        self.line(format!("all: {}", all.join(", ")));
        for state in &value.state {
            self.member(&format!("{:?}", state.visibility), &state.member);
        }
        for factory in &value.factories {
            self.docs(&factory.docs);
            self.annotations(&factory.annotations);
            self.line(format!("factory {}, raises: {}", factory.name, self.names(&factory.raises)));
            factory.params.iter().for_each(|param| self.param(param));
        }
    }

    fn param(&mut self, param: &Param) {
        self.docs(&param.docs);
        self.annotations(&param.annotations);
        self.line(format!("{:?} {} {}", param.direction, self.ty(param.ty), param.name));
    }

    fn operation(&mut self, operation: &Operation) {
        let result = operation.result.map_or("void".to_owned(), |ty| self.ty(ty));
        self.line(format!(
            "oneway: {}, result: {result}, raises: {}",
            operation.oneway,
            self.names(&operation.raises)
        ));
        if !operation.context.is_empty() {
            self.line(format!("context: {:?}", operation.context));
        }
        operation.params.iter().for_each(|param| self.param(param));
    }

    fn attribute(&mut self, attribute: &Attribute) {
        let (get, set) = (self.names(&attribute.get_raises), self.names(&attribute.set_raises));
        let ty = self.ty(attribute.ty);
        self.line(format!("readonly: {}, {ty}, get raises: {get}, set raises: {set}", attribute.readonly));
    }

    fn member(&mut self, what: &str, member: &Member) {
        self.docs(&member.docs);
        self.annotations(&member.annotations);
        self.line(format!("{what} {} {}", self.ty(member.ty), member.name));
    }

    fn union(&mut self, union: &Union) {
        self.line(format!("switch {}", self.ty(union.discriminator)));
        for case in &union.cases {
            let labels: Vec<String> = case.labels.iter().map(|label| self.value(&label.value)).collect();
            let default = if case.is_default { " default" } else { "" };
            self.member(&format!("case {}{default}", labels.join(" ")), &case.member);
        }
        let shown =
            |value: &Option<ConstValue>| value.as_ref().map_or("-".to_owned(), |value| self.value(value));
        let (implicit, explicit) = (shown(&union.implicit_default), shown(&union.default_value));
        self.line(format!("implicit default: {implicit}, default: {explicit}"));
    }

    fn value(&self, value: &ConstValue) -> String {
        match value {
            ConstValue::Enum { def, ordinal } => format!("{}#{ordinal}", self.model.scoped_name(*def)),
            ConstValue::LongDouble(bits) => format!("LongDouble({bits:032x})"),
            other => format!("{other:?}"),
        }
    }
}
