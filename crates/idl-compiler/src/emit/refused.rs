//! Constructs that have a model but no Rust yet: reported where they are declared or used, so that nothing is left out
//! silently. Only what is written counts; what an included file defines elsewhere may have them.
//!
//! Who maps one of them takes its line out of [`definition`].

use super::external::External;
use crate::diagnostic::Diagnostic;
use crate::model::{Def, DefId, DefKind, Flavour, Model, Param, Type, TypeId};
use crate::source::Span;

/// Reports all of them in what is written.
pub(super) fn report(model: &Model, external: &External, problems: &mut Vec<Diagnostic>) {
    let mut walk = Walk { model, external, problems };
    for def in model.defs().iter().filter(|def| external.emitted(def.id)) {
        walk.definition(def);
    }
}

/// A definition that has no mapping, whatever is in it.
fn definition(kind: &DefKind) -> Option<&'static str> {
    match kind {
        DefKind::Interface(body) if body.flavour == Flavour::Abstract => Some("`abstract interface`"),
        _ => None,
    }
}

struct Walk<'a> {
    model: &'a Model,
    external: &'a External,
    problems: &'a mut Vec<Diagnostic>,
}

impl Walk<'_> {
    fn refuse(&mut self, what: &str, span: Span) {
        self.problems.push(Diagnostic::error("unsupported", span, format!("{what} is not supported yet")));
    }

    fn definition(&mut self, def: &Def) {
        if let Some(what) = definition(&def.kind) {
            return self.refuse(what, def.span);
        }
        match &def.kind {
            DefKind::Interface(_) => {
                // Bases and their members become methods here, wherever they are declared.
                for member in self.model.all_members(def.id) {
                    if member.parent.is_some_and(|owner| owner == def.id || self.external.emitted(owner)) {
                        continue;
                    }
                    self.member_of_interface(member, def.span);
                }
            }
            DefKind::Operation(_) | DefKind::Attribute(_) => self.member_of_interface(def, def.span),
            DefKind::Struct(body) | DefKind::Exception(body) => {
                body.members.iter().for_each(|member| self.place(member.ty, member.span));
            }
            DefKind::Union(body) => {
                body.cases.iter().for_each(|case| self.place(case.member.ty, case.member.span));
            }
            DefKind::Value(body) => {
                body.state.iter().for_each(|state| self.place(state.member.ty, state.member.span));
                let params = body.factories.iter().flat_map(|factory| &factory.params);
                params.for_each(|param| self.place(param.ty, param.span));
            }
            DefKind::ValueBox(body) => self.place(body.ty, def.span),
            DefKind::Typedef(alias) => self.place(alias.ty, def.span),
            DefKind::Const(constant) => self.place(constant.ty, def.span),
            _ => {}
        }
    }

    /// An operation or attribute; what is wrong with a parameter of an inherited one is said at the interface.
    fn member_of_interface(&mut self, def: &Def, span: Span) {
        let own = span == def.span;
        match &def.kind {
            DefKind::Operation(body) => {
                if let Some(result) = body.result {
                    self.place(result, span);
                }
                for Param { ty, span: param, .. } in &body.params {
                    self.place(*ty, if own { *param } else { span });
                }
            }
            DefKind::Attribute(body) => self.place(body.ty, span),
            _ => {}
        }
    }

    /// A type where it is used. What has a name and is written is reported where it is declared.
    fn place(&mut self, ty: TypeId, span: Span) {
        if let Some(what) = self.refused(ty) {
            self.refuse(what, span);
        }
    }

    fn refused(&self, ty: TypeId) -> Option<&'static str> {
        match self.model.ty(ty) {
            Type::Sequence { element, .. } | Type::Array { element, .. } => self.refused(*element),
            Type::Map { key, value, .. } => self.refused(*key).or(self.refused(*value)),
            Type::Named(def) if self.external.emitted(*def) => None,
            Type::Named(def) => self.refused_elsewhere(*def),
            _ => None,
        }
    }

    /// What stands elsewhere under a name has a mapping there, which uses of it still need here.
    fn refused_elsewhere(&self, id: DefId) -> Option<&'static str> {
        match &self.model.def(id).kind {
            DefKind::Typedef(alias) => self.refused(alias.ty),
            // Plain types wherever they are.
            DefKind::Struct(_) => None,
            kind => definition(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;

    use crate::emit::{IncludePolicy, Options, emit};
    use crate::{Compiler, Memory};

    /// What is said about `shop.idl`, which may include `base.idl`: line and text.
    fn refused(base: &str, shop: &str, options: &Options) -> Vec<String> {
        let files = Memory::from_iter([("base.idl", base), ("shop.idl", shop)]);
        let model = Compiler::default().files(files).compile_files(["shop.idl"]);
        let model = model.unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        let Err(errors) = emit(&model, options) else { return Vec::new() };
        let said = |error: &crate::Diagnostic| {
            let position = model.sources().position(error.span().expect("a place"));
            format!("{}:{}:{} {}", position.file, position.line, position.column, error.message)
        };
        errors.iter().map(said).collect()
    }

    #[test]
    fn each_unmapped_construct_is_an_error() {
        let idl = "abstract interface A { void f(); };\n\
            struct S { A a; };\n\
            interface I : A { any g(in A a, in ValueBase b); };";
        assert_eq!(
            refused("", idl, &Options::default()),
            ["shop.idl:1:20 `abstract interface` is not supported yet"]
        );
    }

    #[test]
    fn only_what_is_written_counts() {
        let base = "module B { struct S { any a; }; interface I { void plain(); }; abstract interface J { void g(); }; };";
        let path: TokenStream = "crate::b".parse().expect("a path");
        let elsewhere = Options { external: vec![("::B".to_owned(), path)], ..Options::default() };
        let shop = |text: &str| format!("#include \"base.idl\"\n{text}");
        let plain = shop("struct T { B::S s; }; interface K : B::I { any other(); };");
        assert_eq!(refused(base, &plain, &elsewhere), [""; 0]);
        let unused = Options { include_policy: IncludePolicy::Extern, ..Options::default() };
        assert_eq!(refused(base, &shop("struct T { long a; };"), &unused), [""; 0]);
        // The same files compiled as one: what is included is written too.
        assert_eq!(refused(base, &plain, &Options::default()).len(), 1);
        // What stands elsewhere is needed here where it is used.
        assert_eq!(
            refused(base, &shop("struct T { B::J a; };"), &elsewhere),
            ["shop.idl:2:17 `abstract interface` is not supported yet"]
        );
    }
}
