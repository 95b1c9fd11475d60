//! Template modules. A template is stored as a syntax tree. An instance is a module for which this tree is
//! resolved again, with the arguments in place of the parameters. Names in the body are looked up in the
//! scope of the template's declaration.
//!
//! A template is also checked at its declaration, with unknown parameters: everything that depends on a
//! parameter is left out without a message, as after an error. Errors that this check finds do not depend on
//! arguments, and prevent all instances of the template.

use std::rc::Rc;

use super::known::AnnotatedKind;
use super::scope::{Entity, Entry, ScopeId, TEMPLATE_PARAMETER, USED_TEMPLATE_PARAMETER, with_article};
use super::symbols::{CheckState, EarlyPrefixes, KnownTemplate, Progress, Resolver, Symbols};
use super::{constant, finish, fixed, repository_id, typed_annotation, types};
use crate::ast::{
    Expr, ExprKind, Instance, Name, Preamble, Template, TemplateArg, TemplateParam, TemplateParamKind,
    TypeKind,
};
use crate::diagnostic::{Diagnostic, Severity};
use crate::limits::MAX_DEPTH;
use crate::model::{DefId, DefKind, Model, Module, Type, TypeId};
use crate::source::Span;
use crate::work;

/// Maximum number of tokens of all instances of a text. Each level of nested instances can double the number.
const MAX_INSTANCE_TOKENS: usize = 1 << 20;

/// Number of tokens that are counted for each instance in addition to the tokens of its body.
const INSTANCE_OVERHEAD_TOKENS: usize = 16;

/// The state of the resolver before a body was checked: mainly the lengths of its lists.
struct Checkpoint {
    defs: usize,
    types: usize,
    scopes: usize,
    templates: usize,
    values: usize,
    annotation_types: usize,
    implied: super::implied::Checkpoint,
    early: EarlyPrefixes,
    checked_from: usize,
}

impl Resolver<'_> {
    pub(super) fn template(&mut self, preamble: Preamble, template: Rc<Template>, scope: ScopeId) {
        drop(self.annotations(&preamble, scope, AnnotatedKind::Module));
        let index = self.symbols.templates.all.len();
        self.symbols.declare(scope, &template.name, Entity::Template(index), "template module");
        let known = KnownTemplate { template, preamble, scope, state: CheckState::Unchecked };
        self.symbols.templates.all.push(known);
        // A template module in the body of another one was checked together with it.
        let invalid = self.symbols.current_def.is_none() && self.body_has_errors(index);
        if let Some(known) = self.symbols.templates.all.get_mut(index) {
            known.state = if invalid { CheckState::Invalid } else { CheckState::Valid };
        }
    }

    /// Checks the body of a template module with unknown parameters. Returns whether there were errors.
    fn body_has_errors(&mut self, index: usize) -> bool {
        let Some(KnownTemplate { template, scope, .. }) = self.symbols.templates.all.get(index) else {
            return true;
        };
        let (template, scope) = (Rc::clone(template), *scope);
        let errors = self.symbols.diagnostics.error_count();
        let checkpoint = checkpoint(&mut self.symbols);
        self.symbols.templates.checking_depth += 1;
        work::count_tokens(template.token_count);
        let id =
            self.new_def(&Preamble::default(), &template.name, DefKind::Module(Module::default()), scope);
        let inner = self.symbols.open_inner_scope(Some(id), scope);
        self.symbols.states[id.index()].scope = Some(inner);
        if let Some(known) = self.symbols.templates.all.get_mut(index) {
            known.state = CheckState::Checking(id);
        }
        self.symbols.scope_mut(inner).opened_in = Some(template.name.span.file);
        for formal in &template.params {
            match &formal.kind {
                TemplateParamKind::Const(ty) if matches!(ty.kind, TypeKind::Fixed(None)) => {}
                TemplateParamKind::Const(ty) => drop(self.constant_type(ty, inner)),
                TemplateParamKind::Sequence(ty) => drop(self.simple_type(ty, inner)),
                _ => {}
            }
            if let Some(earlier) = self.symbols.scope(inner).name(&formal.name.text.to_ascii_lowercase()) {
                let message = format!("`{}` is the name of two parameters", formal.name.text);
                let error = Diagnostic::error("redefinition", formal.name.span, message);
                let error = error.and(earlier.span, "the first is here");
                self.symbols.report(error);
            }
            self.symbols.scope_mut(inner).introduce(parameter_entry(formal, Entity::Bad));
        }
        self.items(template.items.clone(), inner);
        finish::report_undefined(&mut self.symbols, id.index());
        self.symbols.templates.checking_depth -= 1;
        self.roll_back(checkpoint, scope);
        self.symbols.diagnostics.error_count() != errors
    }

    fn roll_back(&mut self, checkpoint: Checkpoint, scope: ScopeId) {
        for def in self.symbols.model.defs.drain(checkpoint.defs..) {
            self.symbols.implied.remove(def.id);
            self.symbols.templates.instances.remove(&def.id);
        }
        self.symbols.states.truncate(checkpoint.defs);
        if let Some(parent) = self.symbols.scope(scope).owner {
            let inner_defs = &mut self.symbols.states[parent.index()].inner_defs;
            while inner_defs.pop_if(|id| id.index() >= checkpoint.defs).is_some() {}
        }
        for ty in self.symbols.model.types.drain(checkpoint.types..) {
            self.symbols.model.interned.remove(&ty);
        }
        self.symbols.scopes.truncate(checkpoint.scopes);
        self.symbols.templates.all.truncate(checkpoint.templates);
        self.symbols.templates.values.truncate(checkpoint.values);
        self.symbols.model.annotation_types.truncate(checkpoint.annotation_types);
        for key in self.annotation_keys.drain(checkpoint.annotation_types..) {
            self.annotation_types.remove(&key);
        }
        self.symbols.lineages.get_mut().clear();
        self.symbols.implied.roll_back(checkpoint.implied);
        self.symbols.early_prefixes = checkpoint.early;
        self.symbols.templates.checked_from = checkpoint.checked_from;
    }

    pub(super) fn instance(&mut self, mut preamble: Preamble, instance: Instance, scope: ScopeId) {
        let name = &instance.name;
        let Some((index, entries)) = self.arguments(&instance, scope) else {
            drop(self.annotations(&preamble, scope, AnnotatedKind::Module));
            self.symbols.declare(scope, name, Entity::Bad, "module");
            return;
        };
        let Some(known) = self.symbols.templates.all.get(index) else { return };
        let (template, declared_in) = (Rc::clone(&known.template), known.scope);
        if preamble.docs.is_empty() {
            preamble.docs = known.preamble.docs.clone();
        }
        work::count_tokens(template.token_count + INSTANCE_OVERHEAD_TOKENS);
        let of = template_path(&self.symbols, index);
        let module = Module { template: Some(of), ..Module::default() };
        let id = self.new_def(&preamble, name, DefKind::Module(module), scope);
        if !self.symbols.declare_def(id, scope, name, "module") {
            return;
        }
        self.symbols.templates.instances.insert(id, index);
        let prefix = repository_id::prefix(&self.symbols, scope, name.span);
        let inner = self.symbols.open_inner_scope(Some(id), declared_in);
        self.symbols.states[id.index()].scope = Some(inner);
        let inside = self.symbols.scope_mut(inner);
        // The body is in the file of the template, but gets the prefix of the instance.
        inside.opened_in = Some(template.name.span.file);
        inside.prefixes.insert(template.name.span.file, prefix);
        repository_id::apply_early_prefixes(&mut self.symbols, id);
        entries.into_iter().for_each(|entry| self.symbols.scope_mut(inner).introduce(entry));
        let outer_def = self.symbols.current_def.replace(id);
        self.items(template.items.clone(), inner);
        self.symbols.current_def = outer_def;
        self.symbols.scope_mut(inner).remove_used_names();
        self.symbols.states[id.index()].progress = Progress::Complete;
    }

    /// Returns the index of an instance's template module, and its parameters' entries, if all are known.
    fn arguments(&mut self, instance: &Instance, scope: ScopeId) -> Option<(usize, Vec<Entry>)> {
        let index = template_named(&mut self.symbols, &instance.template, scope)?;
        let known = self.symbols.templates.all.get(index)?;
        let (template, declared_in, state) = (Rc::clone(&known.template), known.scope, known.state);
        if matches!(state, CheckState::Checking(_)) {
            let message =
                format!("template module `{}` cannot be instantiated inside itself", template.name.text);
            let error = Diagnostic::error("template-module", instance.template.span, message);
            return self.symbols.reject(error.and(template.name.span, "inside of its body"));
        }
        if instance.args.len() != template.params.len() {
            let wanted = with_count(template.params.len(), "argument");
            let message =
                format!("`{}` needs {wanted}, found {}", instance.template.text(), instance.args.len());
            let error = Diagnostic::error("template-argument", instance.template.span, message);
            return self.symbols.reject(error.and(template.name.span, "its parameters are declared here"));
        }
        let formals = self.symbols.open_inner_scope(None, declared_in);
        let mut entries = Vec::new();
        let mut all_valid = true;
        for (formal, actual) in template.params.iter().zip(&instance.args) {
            let entity = match instance.is_alias && !is_parameter(&mut self.symbols, actual, scope) {
                true => None,
                false => self.bind(formal, actual, formals, scope),
            };
            all_valid &= entity.is_some();
            let entry = parameter_entry(formal, entity.unwrap_or(Entity::Bad));
            self.symbols.scope_mut(formals).introduce(entry.clone());
            entries.push(entry);
        }
        let usable = all_valid && self.symbols.templates.checking_depth == 0 && state == CheckState::Valid;
        (usable && is_within_limits(&mut self.symbols, &template, instance, scope))
            .then_some((index, entries))
    }

    /// Returns the entity that an argument gives to a parameter. Names in the type of the parameter are
    /// looked up in `formals`, which contains the preceding parameters, and names in the argument in `scope`.
    fn bind(
        &mut self,
        formal: &TemplateParam,
        actual: &TemplateArg,
        formals: ScopeId,
        scope: ScopeId,
    ) -> Option<Entity> {
        let (ty, entity, span) = match (&formal.kind, actual) {
            (TemplateParamKind::Const(ty), TemplateArg::Expr(value)) => {
                let (ty, value) = match ty.kind {
                    TypeKind::Fixed(None) => fixed::unbounded_fixed(&mut self.symbols, value, scope)?,
                    _ => {
                        let ty = self.constant_type(ty, formals)?;
                        let (span, value) =
                            (value.span, constant::constant_value(&mut self.symbols, value, ty, scope)?);
                        typed_annotation::check_in_bounds(&mut self.symbols, ty, &value, span);
                        (ty, value)
                    }
                };
                self.symbols.templates.values.push((ty, value));
                return Some(Entity::TemplateValue(self.symbols.templates.values.len() - 1));
            }
            (_, TemplateArg::Expr(Expr { kind: ExprKind::Name(name), span })) => {
                let entity = self.symbols.lookup(name, scope)?;
                if let (TemplateParamKind::Exception, Entity::Def(def)) = (&formal.kind, entity)
                    && matches!(self.symbols.model.def(def).kind, DefKind::Exception(_))
                {
                    return Some(entity);
                }
                let ty = types::type_of(&mut self.symbols, entity, name)?;
                if let Type::Named(def) = ty {
                    self.check_complete(def, *span)?;
                }
                (self.symbols.intern(ty), entity, *span)
            }
            (TemplateParamKind::Const(_), TemplateArg::Type(ty)) => {
                let found = self.simple_type(ty, scope)?;
                let found = format!("the type `{}`", self.symbols.model.describe(found));
                return report_unfit(&mut self.symbols, formal, ty.span, &found);
            }
            (_, TemplateArg::Type(ty)) => {
                let id = self.simple_type(ty, scope)?;
                (id, Entity::TemplateType(id), ty.span)
            }
            (_, TemplateArg::Expr(value)) => {
                return report_unfit(&mut self.symbols, formal, value.span, "a value");
            }
        };
        if self.fits_parameter(&formal.kind, ty, formals)? {
            return Some(entity);
        }
        let found = match self.symbols.model.stripped(ty) {
            Type::Named(def) => {
                let what = self.symbols.model.def(*def).kind.description();
                format!("{} `{}`", with_article(what), self.symbols.model.describe(ty))
            }
            _ => format!("`{}`", self.symbols.model.describe(ty)),
        };
        report_unfit(&mut self.symbols, formal, span, &found)
    }

    fn fits_parameter(&mut self, kind: &TemplateParamKind, ty: TypeId, formals: ScopeId) -> Option<bool> {
        if let TemplateParamKind::Sequence(spec) = kind {
            let wanted = self.simple_type(spec, formals)?;
            return Some(is_same_type(&self.symbols.model, wanted, ty));
        }
        let stripped = self.symbols.model.stripped(ty);
        let def = match stripped {
            Type::Named(def) => Some(&self.symbols.model.def(*def).kind),
            _ => None,
        };
        Some(match kind {
            TemplateParamKind::Type => true,
            TemplateParamKind::AnySequence => matches!(stripped, Type::Sequence { .. }),
            TemplateParamKind::Interface => matches!(def, Some(DefKind::Interface(_))),
            TemplateParamKind::Value => matches!(def, Some(DefKind::Value(_) | DefKind::ValueBox(_))),
            TemplateParamKind::Event => matches!(def, Some(DefKind::Value(value)) if value.is_event),
            TemplateParamKind::Struct => matches!(def, Some(DefKind::Struct(_))),
            TemplateParamKind::Union => matches!(def, Some(DefKind::Union(_))),
            TemplateParamKind::Enum => matches!(def, Some(DefKind::Enum(_))),
            TemplateParamKind::Exception | TemplateParamKind::Sequence(_) | TemplateParamKind::Const(_) => {
                false
            }
        })
    }
}

fn checkpoint(symbols: &mut Symbols<'_>) -> Checkpoint {
    let defs = symbols.model.defs.len();
    Checkpoint {
        defs,
        types: symbols.model.types.len(),
        scopes: symbols.scopes.len(),
        templates: symbols.templates.all.len(),
        values: symbols.templates.values.len(),
        annotation_types: symbols.model.annotation_types.len(),
        implied: symbols.implied.checkpoint(),
        early: std::mem::take(&mut symbols.early_prefixes),
        checked_from: std::mem::replace(&mut symbols.templates.checked_from, defs),
    }
}

fn template_named(symbols: &mut Symbols<'_>, name: &Name, scope: ScopeId) -> Option<usize> {
    // The instance may have the name of its template, so this use must not introduce the name.
    if let Some(Entity::Template(index)) = symbols.lookup_silently(name, scope) {
        return Some(index);
    }
    let entity = symbols.lookup(name, scope)?;
    symbols.reject_wrong_kind(entity, name, "template-module", "a template module")
}

fn template_path(symbols: &Symbols<'_>, index: usize) -> String {
    let Some(known) = symbols.templates.all.get(index) else { return String::new() };
    let name = &known.template.name.text;
    match symbols.scope(known.scope).owner {
        Some(owner) => format!("{}::{name}", symbols.model.scoped_name(owner)),
        None => name.clone(),
    }
}

/// Checks that the instances of a text are neither nested too deeply nor too large.
fn is_within_limits(
    symbols: &mut Symbols<'_>,
    template: &Template,
    instance: &Instance,
    scope: ScopeId,
) -> bool {
    let depth = symbols.scope(scope).owner.map_or(0, |owner| symbols.model.path(owner).len());
    if depth + template.height > MAX_DEPTH {
        let message = format!("this instance nests more than {MAX_DEPTH} levels deep");
        let error = Diagnostic::error("too-deep", instance.name.span, message);
        symbols.report(error.and(template.name.span, "with the body of this template module"));
        return false;
    }
    let before = symbols.templates.instance_tokens;
    symbols.templates.instance_tokens =
        before.saturating_add(template.token_count + INSTANCE_OVERHEAD_TOKENS);
    if symbols.templates.instance_tokens > MAX_INSTANCE_TOKENS {
        if before <= MAX_INSTANCE_TOKENS {
            let message = "the instances of template modules are too large";
            let error = Diagnostic::error("too-large", instance.name.span, message);
            symbols.report(error.note(format!("their bodies have more than {MAX_INSTANCE_TOKENS} tokens")));
        }
        return false;
    }
    true
}

/// Returns whether an argument of an alias names a parameter of the enclosing template module. Any other name
/// is reported.
fn is_parameter(symbols: &mut Symbols<'_>, actual: &TemplateArg, scope: ScopeId) -> bool {
    let TemplateArg::Expr(Expr { kind: ExprKind::Name(name), span }) = actual else { return false };
    let (text, mut at) = (name.text(), Some(scope));
    while let Some(id) = at {
        match symbols.scope(id).name(&text.to_ascii_lowercase()) {
            Some(entry) if matches!(entry.what, TEMPLATE_PARAMETER | USED_TEMPLATE_PARAMETER) => return true,
            Some(_) => break,
            None => at = symbols.scope(id).parent,
        }
    }
    let message = format!("`{text}` is not a parameter of the template module that contains this alias");
    symbols.report(Diagnostic::error("template-argument", *span, message));
    false
}

fn report_unfit(
    symbols: &mut Symbols<'_>,
    formal: &TemplateParam,
    span: Span,
    found: &str,
) -> Option<Entity> {
    let wanted = match &formal.kind {
        TemplateParamKind::Type => "a type",
        TemplateParamKind::Interface => "an interface",
        TemplateParamKind::Value => "a value type",
        TemplateParamKind::Event => "an event type",
        TemplateParamKind::Struct => "a struct",
        TemplateParamKind::Union => "a union",
        TemplateParamKind::Exception => "an exception",
        TemplateParamKind::Enum => "an enum",
        TemplateParamKind::AnySequence => "a sequence",
        TemplateParamKind::Sequence(_) => "a sequence of this type",
        TemplateParamKind::Const(_) => "a constant",
    };
    let message = format!("parameter `{}` needs {wanted}, not {found}", formal.name.text);
    let error = Diagnostic::error("template-argument", span, message);
    symbols.reject(error.and(formal.span, "declared here"))
}

/// Returns whether two types are the same after all typedefs of the types and their elements are resolved.
fn is_same_type(model: &Model, one: TypeId, other: TypeId) -> bool {
    match (model.stripped(one), model.stripped(other)) {
        (
            Type::Sequence { element: one, bound: of_one },
            Type::Sequence { element: other, bound: of_other },
        ) => of_one == of_other && is_same_type(model, *one, *other),
        (one, other) => one == other,
    }
}

impl Symbols<'_> {
    /// Returns what a template module's name means in its own body: the body's instance.
    pub(super) fn enclosing_instance(&self, index: usize) -> Option<DefId> {
        if let CheckState::Checking(id) = self.templates.all.get(index)?.state {
            return Some(id);
        }
        let mut enclosing = std::iter::successors(self.current_def, |id| self.model.def(*id).parent);
        enclosing.find(|id| self.templates.instances.get(id) == Some(&index))
    }

    /// Adds the enclosing instances to a diagnostic. `None` for a warning that was reported before.
    pub(super) fn with_instances(&mut self, mut message: Diagnostic) -> Option<Diagnostic> {
        if self.templates.all.is_empty() {
            return Some(message);
        }
        let enclosing = std::iter::successors(self.current_def, |id| self.model.def(*id).parent);
        let instances = enclosing.filter_map(|id| match &self.model.def(id).kind {
            DefKind::Module(Module { template: Some(of), .. }) => Some((self.model.def(id), of)),
            _ => None,
        });
        let mut is_copied = self.templates.checking_depth > 0;
        for (instance, of) in instances.take(MAX_SHOWN_INSTANCES) {
            is_copied = true;
            message = message.and(instance.span, format!("in this instance of template module `{of}`"));
        }
        let place = (message.span().unwrap_or(Span::START), message.code);
        let is_new = message.severity == Severity::Error || !is_copied || self.templates.warned.insert(place);
        is_new.then_some(message)
    }

    /// Records that a definition may inherit any name, if the meaning of one of its direct or indirect bases
    /// is unknown. `before` is the number of unknown names before the bases were looked up.
    pub(super) fn mark_unknown_bases(&mut self, id: DefId, before: usize) {
        if self.templates.checking_depth == 0 {
            return;
        }
        let may_inherit_unknown = |base: DefId| {
            self.states[base.index()].scope.is_some_and(|scope| self.scope(scope).may_inherit_unknown)
        };
        let unknown = self.templates.unknown_name_count != before
            || self.model.direct_bases(id).any(may_inherit_unknown);
        if let Some(scope) = self.states[id.index()].scope {
            self.scope_mut(scope).may_inherit_unknown |= unknown;
        }
    }
}

/// Maximum number of instances that are shown with a message, the innermost first.
const MAX_SHOWN_INSTANCES: usize = 3;

fn parameter_entry(formal: &TemplateParam, entity: Entity) -> Entry {
    let name = formal.name.text.clone();
    Entry { name, span: formal.name.span, entity, what: TEMPLATE_PARAMETER, used: true }
}

fn with_count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
