//! Template modules: what instances declare, by what rules, and what is said where one cannot be.

use idl_compiler::emit::{IncludePolicy, Options, emit};
use idl_compiler::model::{ConstValue, Def, DefKind, Type};
use idl_compiler::{Compiler, Diagnostics, Memory, Model, Source, Work, compile};

fn model(idl: &str) -> Model {
    compile(Source::text("templates.idl", idl)).unwrap_or_else(|errors| panic!("{errors}"))
}

fn errors(idl: &str) -> Diagnostics {
    compile(Source::text("templates.idl", idl)).err().unwrap_or_else(|| panic!("no error: {idl}"))
}

/// Codes of all errors, in order.
fn codes(idl: &str) -> Vec<&'static str> {
    errors(idl).iter().map(|error| error.code).collect()
}

fn def<'m>(model: &'m Model, name: &str) -> &'m Def {
    model.def(model.find(name).unwrap_or_else(|| panic!("no {name}")))
}

/// The type that a typedef names, as IDL.
fn alias(model: &Model, name: &str) -> String {
    model.describe(model.typedef(def(model, name).id).unwrap().ty)
}

const LISTS: &str = "
    /// Lists of things.
    module Lists<typename T, const unsigned long most> {
        typedef sequence<T, most> Some;
        typedef T Row[most];
        const unsigned long twice = most * 2;
        struct Named { string<most> name; T thing; };
        union Either switch (boolean) { case TRUE: T thing; case FALSE: string why; };
        interface Store { Some all(in T like); attribute T last; };
        module Inner { typedef Some Same; };
    };
";

#[test]
fn instance_is_a_module_of_ordinary_definitions() {
    let model = model(&format!("{LISTS}struct Point {{ long x; }}; module Lists<Point, 2 + 3> Points;"));
    let points = def(&model, "Points");
    let DefKind::Module(module) = &points.kind else { panic!("a module") };
    assert_eq!(module.template.as_deref(), Some("Lists"));
    assert_eq!(points.docs.lines, ["Lists of things."]);
    let names: Vec<&str> = module.members.iter().map(|id| model.def(*id).name.as_str()).collect();
    assert_eq!(names, ["Some", "Row", "twice", "Named", "Either", "Store", "Inner"]);
    assert_eq!(alias(&model, "Points::Some"), "sequence<Point, 5>");
    assert_eq!(alias(&model, "Points::Row"), "Point[5]");
    assert_eq!(alias(&model, "Points::Inner::Same"), "Points::Some");
    assert_eq!(def(&model, "Points::Store").repository_id, "IDL:Points/Store:1.0");
    let twice = model.constant(def(&model, "Points::twice").id).unwrap();
    assert_eq!(twice.value, ConstValue::Integer(10));
    let named = model.structure(def(&model, "Points::Named").id).unwrap();
    let types: Vec<String> = named.members.iter().map(|member| model.describe(member.ty)).collect();
    assert_eq!(types, ["string<5>", "Point"]);
    // The template itself declares nothing.
    assert_eq!(model.find("Lists"), None);
    assert_eq!(model.roots().len(), 2);
}

#[test]
fn template_without_instance_leaves_nothing_in_the_model() {
    let with = model(&format!("{LISTS}struct S {{ long a; }};"));
    let without = model("struct S { long a; };");
    assert_eq!(with.defs().len(), without.defs().len());
    assert_eq!(def(&with, "S").id, def(&without, "S").id);
    assert!(with.warnings().is_empty(), "{}", with.warnings());
}

#[test]
fn types_without_a_name_are_arguments() {
    let model = model(
        "module M<typename T, sequence<T> Q, const fixed F> { typedef T A; typedef Q B; const fixed C = F; };
         module M<string<3>, sequence<string<3>>, 1.50d> I;",
    );
    assert_eq!(alias(&model, "I::A"), "string<3>");
    assert_eq!(alias(&model, "I::B"), "sequence<string<3>>");
    let constant = model.constant(def(&model, "I::C").id).unwrap();
    assert_eq!(constant.value, ConstValue::Fixed { unscaled: 15, scale: 1 });
}

#[test]
fn parameters_are_bases_and_exceptions() {
    let model = model(
        "interface Base { typedef long Number; void f(); };
         valuetype Thing { public long a; };
         exception Broken { string why; };
         enum Color { red, green };
         module M<interface I, valuetype V, exception X, enum E, const E first> {
             interface Derived : I { Number g(in E e) raises (X); };
             valuetype Wider : V { public E color; };
             const E same = first;
             union U switch (E) { default: I::Number n; };
         };
         module M<Base, Thing, Broken, Color, green> A;",
    );
    let derived = def(&model, "A::Derived").id;
    let names: Vec<&str> = model.all_members(derived).map(|def| def.name.as_str()).collect();
    assert_eq!(names, ["f", "g"]);
    let (_, g) = model.all_operations(derived).last().unwrap();
    assert_eq!(g.raises, [def(&model, "Broken").id]);
    assert_eq!(model.describe(g.result.unwrap()), "Base::Number");
    assert_eq!(model.concrete_base(def(&model, "A::Wider").id), Some(def(&model, "Thing").id));
    let same = model.constant(def(&model, "A::same").id).unwrap();
    assert!(matches!(same.value, ConstValue::Enum { ordinal: 1, .. }));
}

#[test]
fn names_are_looked_up_where_the_template_is_declared() {
    let model = model(
        "typedef long Here;
         module Far { typedef string Here; module M<typename T> { typedef Here It; typedef T Of; }; };
         module Near { typedef double Here; module Far::M<Here> I; module I { typedef Here More; }; };",
    );
    assert_eq!(alias(&model, "Near::I::It"), "Far::Here");
    assert_eq!(alias(&model, "Near::I::Of"), "Near::Here");
    // A further opening of an instance looks around itself.
    assert_eq!(alias(&model, "Near::I::More"), "Near::Here");
}

#[test]
fn alias_and_nested_instances_get_the_parameters_of_the_template_around_them() {
    let model = model(
        "module Pairs<typename A, typename B> { struct Pair { A first; B second; }; };
         module Both<typename T, typename U> {
             module Pairs<T, long> Longs;
             alias Pairs<U, T> Pairs;
             typedef sequence<Pairs::Pair> Many;
             module Deeper<typename V> { alias ::Pairs<T, V> Mixed; };
             module Deeper<octet> Octets;
         };
         module Both<short, boolean> X;",
    );
    let types = |name: &str| -> Vec<String> {
        let body = model.structure(def(&model, name).id).unwrap();
        body.members.iter().map(|member| model.describe(member.ty)).collect()
    };
    assert_eq!(types("X::Pairs::Pair"), ["boolean", "short"]);
    assert_eq!(types("X::Longs::Pair"), ["short", "long"]);
    assert_eq!(types("X::Octets::Mixed::Pair"), ["short", "octet"]);
    assert_eq!(alias(&model, "X::Many"), "sequence<X::Pairs::Pair>");
    assert_eq!(def(&model, "X::Pairs::Pair").repository_id, "IDL:X/Pairs/Pair:1.0");
}

#[test]
fn instance_has_the_prefix_of_the_place_where_it_is() {
    let model = model(
        "#pragma prefix \"one.org\"
         module M<typename T> {
             struct S { T t; };
             #pragma version S 2.5
             #pragma prefix \"inner.org\"
             struct R { T t; };
         };
         module M<octet> A;
         #pragma prefix \"two.org\"
         module M<long> B;
         module M<long> C;
         typeprefix C \"three.org\";",
    );
    for (name, id) in [
        ("A::S", "IDL:one.org/A/S:2.5"),
        ("B::S", "IDL:two.org/B/S:2.5"),
        ("B::R", "IDL:inner.org/B/R:1.0"),
        ("C::S", "IDL:three.org/C/S:2.5"),
        ("B", "IDL:two.org/B:1.0"),
    ] {
        assert_eq!(def(&model, name).repository_id, id, "{name}");
    }
}

#[test]
fn instance_of_an_included_template_is_not_included() {
    let files = Memory::from_iter([
        ("lists.idl", "module Lists<typename T> { typedef sequence<T> Some; struct S { T t; }; };"),
        ("main.idl", "#include \"lists.idl\"\nmodule Lists<long> Longs;\nmodule Lists<string> Texts;"),
    ]);
    let model = Compiler::default().files(files).compile_files(["main.idl"]).unwrap();
    assert!(!model.is_included(def(&model, "Longs::S").id));
    let options = Options { include_policy: IncludePolicy::Extern, ..Options::default() };
    let rust = emit(&model, &options).unwrap().tokens.to_string();
    assert_eq!(rust.matches("pub struct S").count(), 2, "{rust}");
}

#[test]
fn ports_and_events_of_a_template_are_those_of_each_instance() {
    let model = model(
        "module Typed<typename T> {
             interface Writer { void write(in T value); };
             porttype Sink { uses Writer target; };
             eventtype Happened { public T what; };
             component Source { port Sink data; publishes Happened event; };
         };
         module Typed<long> Longs; module Typed<string> Texts;",
    );
    let source = def(&model, "Texts::Source").id;
    assert!(model.all_members(source).any(|def| def.name == "connect_data_target"));
    assert!(model.find("Longs::HappenedConsumer").is_some());
}

#[test]
fn body_is_checked_without_an_instance() {
    let found = |body: &str| {
        codes(&format!("interface Known {{ }}; module M<typename T, interface I> {{ {body} }};"))
    };
    assert_eq!(found("typedef Nope N;"), ["not-found"]);
    assert_eq!(found("typedef long T;"), ["redefinition"]);
    assert_eq!(found("struct S { T a; long a; };"), ["redefinition"]);
    assert_eq!(found("typedef long A; typedef T A;"), ["redefinition"]);
    assert_eq!(found("struct S; typedef sequence<S> L;"), ["never-defined"]);
    assert_eq!(found("interface D : Known { void f(in Inherited x); };"), ["not-found"]);
    assert_eq!(found("typedef long A"), ["syntax"]);
    assert_eq!(found("alias Nope<T> A;"), ["not-found"]);
    assert_eq!(found("module M<T, I> A;"), ["template-module"]);
}

#[test]
fn what_depends_on_a_parameter_is_checked_in_instances_alone() {
    // None of this is wrong for all arguments.
    let body = "interface D : I { void f(in Inherited x); void g() raises (I::X); }; interface E : D { Inherited h(); };
        typedef I::Nested N; typedef N Again; struct S { Again a; T thing; }; const T c = 5; typedef string<c> Text;
        union U switch (T) { case 1: long a; }; typedef long Row[I::size];";
    let template = format!("module M<typename T, interface I> {{ {body} }};");
    assert!(model(&format!("{template} typedef long L;")).warnings().is_empty());
    let good = "interface Good { typedef long Inherited; exception X { }; typedef short Nested; const long size = 3; };";
    let instance = model(&format!("{good} {template} module M<long, Good> G;"));
    assert_eq!(alias(&instance, "G::Row"), "long[3]");
    let bad = format!("interface Bad {{ }}; {template} module M<long, Bad> B;");
    let found = errors(&bad);
    let inherited = found.iter().find(|error| error.message.contains("`Inherited`")).unwrap();
    let places: Vec<&str> = inherited.labels.iter().map(|label| label.text.as_str()).collect();
    assert!(places.contains(&"in this instance of template module `M`"), "{places:?}");
    let at = inherited.labels.iter().find(|label| label.text.starts_with("in this instance")).unwrap();
    let (place, line) = (found.sources().position(at.span), bad.lines().last().unwrap());
    assert_eq!((place.line, place.column), (bad.lines().count(), line.find("B;").unwrap() + 1));
}

#[test]
fn wrong_template_is_reported_once_however_many_instances_there_are() {
    let instances: String = (0..50).map(|n| format!("module M<long> I{n}; typedef I{n}::A A{n};")).collect();
    assert_eq!(codes(&format!("module M<typename T> {{ typedef Nope A; }}; {instances}")), ["not-found"]);
    let warned = model(&format!(
        "module M<typename T> {{ struct Right {{ string right; T thing; }}; typedef T A; }}; {instances}"
    ));
    assert_eq!(warned.warnings().len(), 1, "{}", warned.warnings());
}

#[test]
fn what_is_found_at_the_end_names_the_instance() {
    let found = errors(
        "local interface L { };
         module M<typename T> { interface I { void f(in T thing); }; };
         module M<L> Here;",
    );
    let error = found.iter().next().unwrap();
    assert_eq!(error.code, "local-type");
    assert!(error.labels.iter().any(|label| label.text == "in this instance of template module `M`"));
}

#[test]
fn instances_of_instances_are_bounded() {
    let doubling = |levels: usize| {
        let mut text = "module M0<typename T> { typedef T A; };".to_owned();
        for level in 1..=levels {
            let below = level - 1;
            text += &format!(
                "module M{level}<typename T> {{ module M{below}<T> A{level}; module M{below}<T> B{level}; }};"
            );
        }
        text + &format!("module M{levels}<long> All;")
    };
    assert_eq!(model(&doubling(6)).defs().len(), 127 + 64);
    let before = Work::of_current_thread();
    assert_eq!(codes(&doubling(40)), ["too-large"]);
    let work = Work::of_current_thread().since(before);
    assert!(work.tokens < 3 << 20 && work.steps < 30 * work.tokens, "{work:?}");
    let chain = |levels: usize| {
        let mut text = "module M0<typename T> { typedef T A; };".to_owned();
        for level in 1..=levels {
            text += &format!("module M{level}<typename T> {{ module M{}<T> A{level}; }};", level - 1);
        }
        text + &format!("module M{levels}<long> All;")
    };
    assert!(emit(&model(&chain(60)), &Options::default()).is_ok());
    assert_eq!(codes(&chain(70)), ["too-deep"]);
}

#[test]
fn template_that_finds_another_one_at_an_instance_ends() {
    // The name in the body of `A` means another template where `A` is instantiated.
    let found = codes(
        "module B<typename T> { typedef T X; };
         module Q {
             module A<typename T> { module B<T> InA; };
             module B<typename T> { module A<T> InB; };
             module A<long> Ring;
         };",
    );
    assert_eq!(found, ["too-deep"]);
}

#[test]
fn steps_grow_as_instances_do() {
    let steps = |instances: usize| {
        let text: String = (0..instances).map(|n| format!("module Lists<long, 5> I{n};")).collect();
        let before = Work::of_current_thread();
        drop(emit(&model(&(LISTS.to_owned() + &text)), &Options::default()).unwrap());
        Work::of_current_thread().since(before).steps
    };
    let (few, many) = (steps(10), steps(40));
    assert!(many * 10 < few * 44, "{few}, {many}");
}

#[test]
fn tokens_of_rust_have_template_modules_too() {
    let tokens = quote::quote! {
        module Lists<typename T, const long N> { typedef sequence<sequence<T, N>> Many; };
        module Lists<sequence<long>, 4> Some;
    };
    let model = compile(Source::tokens(tokens)).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(alias(&model, "Some::Many"), "sequence<sequence<sequence<long>, 4>>");
}

#[test]
fn name_of_a_template_means_the_instance_in_its_own_body() {
    let model = model(
        "module N { module M<typename T> { typedef T A; module In { typedef ::N::M::A B; }; typedef M::In::B C; }; };
         module N::M<octet> X;",
    );
    assert_eq!(alias(&model, "X::In::B"), "X::A");
    assert_eq!(alias(&model, "X::C"), "X::In::B");
}

#[test]
fn words_of_templates_stay_names_elsewhere() {
    let model = model(
        "struct alias { long typename; }; interface I { alias typename(in alias a); };
         module M { typedef sequence<alias> typename; };",
    );
    assert!(model.find("M::typename").is_some() && model.find("alias").is_some());
    assert!(matches!(
        model.ty(model.typedef(def(&model, "M::typename").id).unwrap().ty),
        Type::Sequence { .. }
    ));
}

#[test]
fn syntax_errors_of_templates_say_what_is_wanted() {
    let message = |idl: &str| errors(idl).iter().next().unwrap().message.clone();
    assert_eq!(
        message("module M<T> { typedef T A; };"),
        "the parameters of a template module must have kinds"
    );
    assert_eq!(message("module M<typename T> { };"), "template module `M` contains no definition");
    assert_eq!(
        message("module A::M<typename T> { typedef T A; };"),
        "`A::M` cannot be the name of a new template module"
    );
    assert!(message("module M<typename T> A;").starts_with("expected `{`"));
    assert!(message("module M<long>;").starts_with("expected the name of the instance"));
    assert_eq!(
        message("module M<typename T> { typedef T A; }; alias M<T> B;"),
        "`alias` is allowed only in a template module"
    );
}
