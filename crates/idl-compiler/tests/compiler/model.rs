//! What the model says about good texts.

use idl_compiler::model::{
    ConstValue, DefId, Flavour, ValueModifier, Visibility, ZeroCopyField, ZeroCopyProblem,
};
use idl_compiler::{Model, Source, compile};

fn model(idl: &str) -> Model {
    compile(Source::text("test.idl", idl)).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

fn find(model: &Model, name: &str) -> DefId {
    model.find(name).unwrap_or_else(|| panic!("{name} is missing"))
}

fn id<'a>(model: &'a Model, name: &str) -> &'a str {
    &model.def(find(model, name)).repository_id
}

fn value(model: &Model, name: &str) -> ConstValue {
    model.constant(find(model, name)).expect("a constant").value.clone()
}

#[test]
fn an_interface_that_is_only_declared_stands_in_its_place() {
    let model = model(
        "module M { struct A { long x; }; interface I; struct B { I i; }; interface J; interface I; };",
    );
    let names: Vec<&str> =
        model.children(find(&model, "M")).iter().map(|id| model.def(*id).name.as_str()).collect();
    assert_eq!(names, ["A", "I", "B", "J"]);
    let declared = |name: &str| model.interface(find(&model, name)).map(|interface| interface.only_declared);
    assert_eq!((declared("M::I"), declared("M::J")), (Some(true), Some(true)));
    assert_eq!(model.def(find(&model, "M::I")).repository_id, "IDL:M/I:1.0");
    assert_eq!(model.warnings().iter().filter(|warning| warning.code == "never-defined").count(), 2);
}

#[test]
fn repository_ids_take_prefix_scope_and_version() {
    let model = model(
        "typedef long None;
#pragma prefix \"P1\"
module M1 {
    typedef long T1;
#pragma prefix \"P2\"
    module M2 {
#pragma prefix \"P3\"
        typedef long T2;
    };
    typedef long T3;
#pragma prefix \"\"
    interface I { void op(); readonly attribute long at; struct S { long x; }; exception X { }; };
};
interface J { void f(); };
#pragma version J 3.7
#pragma ID J::f \"DCE:1234:1\"
typeid M1::I \"IDL:else/I:2.0\";
",
    );
    let ids: Vec<&str> =
        ["None", "M1", "M1::T1", "M1::M2", "M1::M2::T2", "M1::T3", "M1::I", "M1::I::op", "M1::I::at"]
            .into_iter()
            .chain(["M1::I::S", "M1::I::X", "J", "J::f"])
            .map(|name| id(&model, name))
            .collect();
    let expected = [
        "IDL:None:1.0",
        "IDL:P1/M1:1.0",
        "IDL:P1/M1/T1:1.0",
        "IDL:P2/M1/M2:1.0",
        "IDL:P3/M1/M2/T2:1.0",
        "IDL:P2/M1/T3:1.0",
        "IDL:else/I:2.0",
        "IDL:M1/I/op:1.0",
        "IDL:M1/I/at:1.0",
        "IDL:M1/I/S:1.0",
        "IDL:M1/I/X:1.0",
        "IDL:P1/J:3.7",
        "DCE:1234:1",
    ];
    assert_eq!(ids, expected);
}

#[test]
fn typeprefix_reaches_all_of_a_scope_but_what_has_its_own() {
    let model = model(
        "module M { typedef long T; module N { interface I { void f(); }; }; interface K { }; typeid K \"IDL:k:1.0\"; };
         typeprefix M::N \"inner\";
         typeprefix M \"outer\";
         module M { typedef long Later; module N { typedef long Later; }; };",
    );
    assert_eq!(id(&model, "M"), "IDL:outer/M:1.0");
    assert_eq!(id(&model, "M::T"), "IDL:outer/M/T:1.0");
    assert_eq!(id(&model, "M::N"), "IDL:inner/M/N:1.0");
    assert_eq!(id(&model, "M::N::I::f"), "IDL:inner/M/N/I/f:1.0");
    assert_eq!(id(&model, "M::K"), "IDL:k:1.0");
    assert_eq!(id(&model, "M::Later"), "IDL:outer/M/Later:1.0");
    assert_eq!(id(&model, "M::N::Later"), "IDL:inner/M/N/Later:1.0");
}

#[test]
fn a_forward_declaration_is_the_same_definition_and_keeps_source_order() {
    let model = model(
        "interface B; interface A { B get(); }; typedef sequence<B> Bs; /// The real one.\ninterface B { A get(); };",
    );
    let names: Vec<&str> = model.roots().iter().map(|root| model.def(*root).name.as_str()).collect();
    assert_eq!(names, ["A", "Bs", "B"], "a definition stands where its body is");
    let b = find(&model, "B");
    let get = model.operation(find(&model, "A::get")).expect("an operation");
    assert_eq!(model.describe(get.result.expect("a result")), "B");
    assert_eq!(model.def(b).docs.text(), "The real one.");
    assert!(model.defs().iter().all(|def| def.parent.is_none_or(|parent| parent < def.id)));
}

#[test]
fn inherited_members_come_once_bases_first() {
    let model = model(
        "interface Root { void r(); attribute long a; };
         interface Left : Root { void l(); };
         interface Right : Root { void m(); readonly attribute long b; };
         interface Bottom : Left, Right { void z(); };",
    );
    let bottom = find(&model, "Bottom");
    let bases: Vec<String> =
        model.all_bases(bottom).into_iter().map(|base| model.scoped_name(base)).collect();
    assert_eq!(bases, ["Root", "Left", "Right"]);
    let members: Vec<&str> = model.all_members(bottom).map(|def| def.name.as_str()).collect();
    assert_eq!(members, ["r", "a", "l", "m", "b", "z"]);
    let operations: Vec<&str> = model.all_operations(bottom).map(|(def, _)| def.name.as_str()).collect();
    assert_eq!(operations, ["r", "l", "m", "z"]);
    let attributes: Vec<bool> =
        model.all_attributes(bottom).map(|(_, attribute)| attribute.readonly).collect();
    assert_eq!(attributes, [false, true]);
}

#[test]
fn recursion_through_sequences_is_found_and_nothing_else() {
    let model = model(
        "struct Tree { sequence<Tree> children; };
         struct Even; typedef sequence<Even> Evens; struct Odd { Evens evens; }; struct Even { sequence<Odd, 3> odds; };
         union Expr switch (long) { case 1: long leaf; case 2: sequence<Expr, 2> both; };
         struct Plain { long x; }; struct Holder { Tree tree; sequence<Plain> plain; };",
    );
    let recursive: Vec<&str> =
        model.defs().iter().filter(|def| model.is_recursive(def.id)).map(|def| def.name.as_str()).collect();
    assert_eq!(recursive, ["Tree", "Even", "Evens", "Odd", "Expr"]);
}

#[test]
fn recursion_through_values_is_found_and_nothing_else() {
    let model = model(
        "valuetype Node { public long x; private Node next; };
        valuetype Leaf { public Node node; };
        valuetype Other;
        struct Holder { Other other; };
        typedef Holder Alias;
        valuetype Other { public Alias holder; };
        valuetype Derived : Node { public string s; };
        valuetype Boxed sequence<Node>;
        valuetype First;
        valuetype Box sequence<First>;
        valuetype First { public Box box; };        valuetype Later;
        valuetype Base { public Later later; };
        valuetype Later : Base { };",
    );
    let recursive = |name: &str| model.is_recursive(find(&model, name));
    let names =
        ["Node", "Leaf", "Holder", "Alias", "Other", "Derived", "Boxed", "First", "Box", "Base", "Later"];
    let found: Vec<&str> = names.into_iter().filter(|name| recursive(name)).collect();
    assert_eq!(found, ["Node", "Holder", "Alias", "Other", "First", "Box", "Later"]);
}

#[test]
fn a_value_type_knows_what_it_inherits_and_supports() {
    let model = model(
        "#pragma prefix \"acme.com\"
        interface I { void i(); };
        exception X { };
        module M {
            abstract valuetype A { void a(); };
            valuetype B { public long x; factory make(); };
            /// Docs.
            @own custom valuetype D : B, A supports I {
                struct S { long y; };
                /// Both.
                private S m, t[2];
                readonly attribute long r;
                factory make(in S s) raises (X);
            };
            valuetype T : truncatable B { };
            valuetype Box string<7>;
        };",
    );
    let value = |name: &str| model.value(find(&model, name)).expect("a value type").clone();
    let derived = value("M::D");
    assert_eq!(derived.modifier, ValueModifier::Custom);
    assert_eq!(derived.bases, [find(&model, "M::B"), find(&model, "M::A")]);
    assert_eq!(derived.supports, [find(&model, "I")]);
    let state = derived.state.iter().map(|state| {
        let member = &state.member;
        (member.name.as_str(), model.describe(member.ty), member.docs.text(), state.visibility)
    });
    let docs = || "Both.".to_owned();
    let expected = [
        ("m", "M::D::S".to_owned(), docs(), Visibility::Private),
        ("t", "M::D::S[2]".to_owned(), docs(), Visibility::Private),
    ];
    assert_eq!(state.collect::<Vec<_>>(), expected);
    let factory = derived.factories.first().expect("a factory");
    assert_eq!((factory.name.as_str(), factory.params.len()), ("make", 1));
    assert_eq!(factory.raises, [find(&model, "X")]);
    let all: Vec<&str> = model.all_members(find(&model, "M::D")).map(|def| def.name.as_str()).collect();
    assert_eq!(all, ["a", "i", "r"]);
    assert!(value("M::T").truncatable && !derived.truncatable);
    let ids = ["M::D", "M::D::S", "M::D::r", "M::Box"].map(|name| id(&model, name));
    let expected = ["M/D", "M/D/S", "M/D/r", "M/Box"].map(|path| format!("IDL:acme.com/{path}:1.0"));
    assert_eq!(ids, expected.each_ref().map(String::as_str));
    let boxed = model.value_box(find(&model, "M::Box")).expect("a box");
    assert_eq!(model.describe(boxed.ty), "string<7>");
}

#[test]
fn size_and_float_questions_look_through_everything() {
    let model = model(
        "enum E { A }; typedef long Grid[2][3]; struct _Fixed { short s; Grid g; E e2; boolean b; };
         struct Real { _Fixed f; sequence<sequence<double>> d; }; union U switch (long) { case 1: Real r; };
         struct Tree { sequence<Tree> c; string s; }; struct Wide { wchar c; }; interface I { }; struct Ref { I i; };
         exception X { float f; }; typedef U Alias; typedef Tree Woods[4];",
    );
    let member = |name: &str| model.member_types(find(&model, name));
    let all =
        |name: &str, test: &dyn Fn(idl_compiler::model::TypeId) -> bool| member(name).into_iter().all(test);
    assert!(all("Fixed", &|ty| model.is_fixed_size(ty)));
    assert!(!all("Real", &|ty| model.is_fixed_size(ty)));
    assert!(!all("Wide", &|ty| model.is_fixed_size(ty)), "GIOP 1.2 gives a wchar a length");
    assert!(!all("Ref", &|ty| model.is_fixed_size(ty)));
    let hashable = |name: &str| model.is_hashable_def(find(&model, name));
    assert_eq!(
        ["Fixed", "Tree", "Woods", "Ref", "Real", "U", "Alias", "X"].map(hashable),
        [true, true, true, true, false, false, false, false]
    );
    let references = |name: &str| member(name).iter().any(|ty| model.contains_reference(*ty));
    assert_eq!(["Ref", "Fixed", "Tree"].map(references), [true, false, false]);
}

#[test]
fn types_without_a_name_know_what_they_can_hold() {
    let model = model(
        "struct S { any a; CORBA::TypeCode t; ValueBase v; }; typedef sequence<any> As; struct T { As a; };
         typedef CORBA::TypeCode Code; struct C { Code c[2]; };",
    );
    let shown: Vec<String> =
        model.member_types(find(&model, "S")).iter().map(|ty| model.describe(*ty)).collect();
    assert_eq!(shown, ["any", "CORBA::TypeCode", "ValueBase"]);
    let each = |test: &dyn Fn(idl_compiler::model::TypeId) -> bool| -> Vec<bool> {
        let types = ["S", "T", "C"].into_iter().flat_map(|name| model.member_types(find(&model, name)));
        types.map(test).collect()
    };
    assert_eq!(each(&|ty| model.is_fixed_size(ty)), [false; 5]);
    assert_eq!(each(&|ty| model.is_hashable(ty)), [false, true, false, false, true]);
    assert_eq!(each(&|ty| model.contains_reference(ty)), [true, false, true, true, false]);
    assert_eq!(each(&|ty| model.is_value(ty)), [false, false, true, false, false]);
    assert_eq!(each(&|ty| model.is_reference(ty)), [false; 5]);
}

#[test]
fn typedefs_stay_in_types_and_strip_off_on_demand() {
    let model = model(
        "typedef long A; typedef A B; typedef B C[3]; struct S { B x; C y; sequence<B> z; }; interface I { }; typedef I J; abstract interface K { }; struct R { J x; Object y; A z; K k; };",
    );
    let members = model.member_types(find(&model, "S"));
    let shown: Vec<String> = members.iter().map(|ty| model.describe(*ty)).collect();
    assert_eq!(shown, ["B", "C", "sequence<B>"]);
    let stripped: Vec<String> = members.iter().map(|ty| model.describe(model.strip(*ty))).collect();
    assert_eq!(stripped, ["long", "B[3]", "sequence<B>"]);
    let references: Vec<bool> =
        model.member_types(find(&model, "R")).iter().map(|ty| model.is_reference(*ty)).collect();
    assert_eq!(references, [true, true, false, true]);
}

#[test]
fn unions_know_a_value_for_their_default() {
    let model = model(
        "enum E { A, B, C };
         union Implicit switch (short) { case 0: case 1: long x; case 3: long y; };
         union Explicit switch (E) { case A: long x; case C: default: long y; };
         union Full switch (boolean) { case TRUE: case FALSE: long x; };
         union Low switch (int8) { case -128: long x; };
         union Chars switch (char) { case '\\0': long x; };",
    );
    let union = |name: &str| model.union(find(&model, name)).expect("a union").clone();
    assert_eq!(union("Implicit").implicit_default, Some(ConstValue::Integer(2)));
    assert_eq!(union("Implicit").default_value, None);
    let def = find(&model, "E");
    assert_eq!(union("Explicit").default_value, Some(ConstValue::Enum { def, ordinal: 1 }));
    assert_eq!(union("Explicit").implicit_default, None);
    let labels: Vec<(usize, bool)> =
        union("Explicit").cases.iter().map(|case| (case.labels.len(), case.is_default)).collect();
    assert_eq!(labels, [(1, false), (1, true)]);
    assert_eq!((union("Full").implicit_default, union("Full").default_value), (None, None));
    assert_eq!(union("Low").implicit_default, Some(ConstValue::Integer(0)));
    assert_eq!(union("Chars").implicit_default, Some(ConstValue::Char(1)));
}

#[test]
fn constants_are_computed_exactly() {
    let model = model(
        "const long A = 2 + 3 * 4 - 10 / 3 % 2; const unsigned long B = ~0; const long C = ~0; const octet D = ~0x0f;
         const long E = -8 >> 1; const unsigned long long F = 0xffffffffffffffff; const long long G = -0x8000000000000000;
         const long H = 1 | 6 ^ 2 & 3 << 1; const unsigned short I = ~1 & 0xff; const long J = -7 / 2; const long K = -7 % 3;
         const float L = 0.1; const double M = 0.1; const long double N = 0.1; const long double O = 1.0 / 3.0;
         const long double P = -1.5e-4940; const double Q = -(1.0 + 0.5) * 4.0;",
    );
    let integer = |name: &str| match value(&model, name) {
        ConstValue::Integer(value) => value,
        other => panic!("{name} is {other:?}"),
    };
    let found = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K"].map(integer);
    let (most, least) = (i128::from(u64::MAX), i128::from(i64::MIN));
    assert_eq!(found, [13, 4294967295, -1, 0xf0, -4, most, least, 1 | 6 ^ (2 & (3 << 1)), 254, -3, -1]);
    assert_eq!(value(&model, "L"), ConstValue::Float(f64::from(0.1f32)));
    assert_eq!(value(&model, "M"), ConstValue::Float(0.1));
    // binary128 of one tenth and one third, from the definition of the format.
    assert_eq!(value(&model, "N"), ConstValue::LongDouble(0x3ffb_9999_9999_9999_9999_9999_9999_999a));
    assert_eq!(value(&model, "O"), ConstValue::LongDouble(0x3ffd_5555_5555_5555_5555_5555_5555_5555));
    assert!(matches!(value(&model, "P"), ConstValue::LongDouble(bits) if bits >> 127 == 1 && bits << 1 != 0));
    assert_eq!(value(&model, "Q"), ConstValue::Float(-6.0));
}

#[test]
fn zero_copy_layout_is_that_of_c_and_of_cdr() {
    let model = model(
        "@zero_copy struct BinStruct { short s; char c; long l; octet o; double d; };
         @zero_copy struct Pair { BinStruct two[2]; long long stamp; };
         struct Plain { BinStruct one; octet o; long long l; }; struct Outer { Plain two[2]; };
         struct Text { string s; }; struct Tail { double d; long l; }; struct Empty2 { sequence<octet> o; };",
    );
    let layout = model.zero_copy_layout(find(&model, "BinStruct")).expect("a layout");
    assert_eq!((layout.size, layout.align), (24, 8));
    let places: Vec<(usize, usize, usize)> =
        layout.fields.iter().map(|f| (f.offset, f.padding, f.size)).collect();
    assert_eq!(places, [(0, 0, 2), (2, 0, 1), (4, 1, 4), (8, 0, 1), (16, 7, 8)]);
    let pair = model.zero_copy_layout(find(&model, "Pair")).expect("a layout");
    assert_eq!(
        (pair.size, pair.fields.last().copied()),
        (56, Some(ZeroCopyField { offset: 48, padding: 0, size: 8 }))
    );
    assert_eq!(model.equal_layout(find(&model, "BinStruct")), Some(layout));
    assert_eq!(model.equal_layout(find(&model, "Plain")).map(|layout| layout.size), Some(40));
    assert!(model.zero_copy_layout(find(&model, "Outer")).is_err(), "its member is not `@zero_copy`");
    assert_eq!(model.equal_layout(find(&model, "Outer")).map(|layout| layout.size), Some(80));
    assert_eq!(model.equal_layout(find(&model, "Tail")), None);
    let problem = |name: &str| model.zero_copy_layout(find(&model, name)).expect_err("none");
    assert!(matches!(problem("Text"), ZeroCopyProblem::Member { index: 0, .. }));
    assert_eq!(problem("Tail"), ZeroCopyProblem::TailPadding { missing: 4 });
}

#[test]
fn escaped_names_are_those_without_the_underscore() {
    let model = model(
        "interface _interface { void _any(in _interface _in); }; typedef interface_ X;"
            .replace("interface_", "_interface")
            .as_str(),
    );
    let operation = model.operation(find(&model, "interface::any")).expect("an operation");
    assert_eq!(operation.params.first().map(|param| param.name.as_str()), Some("in"));
    assert_eq!(id(&model, "interface"), "IDL:interface:1.0");
}

#[test]
fn several_declarators_share_what_stands_before_them() {
    let model = model(
        "/// Both.\ntypedef long A, B[2]; interface I { /// Two.\n attribute A x, y; }; struct S { /// M.\n @id(3) A m, n[4]; };",
    );
    assert_eq!(
        ["A", "B", "I::x", "I::y"].map(|name| model.def(find(&model, name)).docs.text()),
        ["Both.", "Both.", "Two.", "Two."]
    );
    let body = model.structure(find(&model, "S")).expect("a struct").clone();
    let members: Vec<(&str, String, bool)> = body
        .members
        .iter()
        .map(|m| (m.name.as_str(), model.describe(m.ty), m.annotations.has("id")))
        .collect();
    assert_eq!(members, [("m", "A".to_owned(), true), ("n", "A[4]".to_owned(), true)]);
}

#[test]
fn latin_1_octets_are_understood() {
    let idl = b"const string S = \"caf\xe9\"; const char C = '\xe9'; // \xff".to_vec();
    let model = compile(Source::from_bytes("latin.idl", idl))
        .unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    assert_eq!(value(&model, "S"), ConstValue::String("café".to_owned()));
    assert_eq!(value(&model, "C"), ConstValue::Char(0xe9));
}

#[test]
fn the_flavour_of_an_interface_is_that_of_all_its_declarations() {
    let model = model(
        "abstract interface A; local interface L; interface P { void f() context (\"a\", \"b.*\"); };
         abstract interface A { }; local interface L : P, A { native N; N g(in N n); };
         typedef L M; struct S { sequence<M> ls; }; struct T { P p; };",
    );
    let flavour = |name: &str| model.interface(find(&model, name)).map(|interface| interface.flavour);
    assert_eq!(flavour("A"), Some(Flavour::Abstract));
    assert_eq!(flavour("L"), Some(Flavour::Local));
    assert_eq!(flavour("P"), Some(Flavour::Plain));
    let operation = model.all_operations(find(&model, "L")).next().expect("an operation").1;
    assert_eq!(operation.context, ["a", "b.*"]);
    assert_eq!(id(&model, "L::N"), "IDL:L/N:1.0");
    let local = |name: &str| {
        let types = model.member_types(find(&model, name));
        types.into_iter().find_map(|ty| model.reachable_local_interface(ty))
    };
    assert_eq!(local("S"), Some(find(&model, "L")));
    assert_eq!(local("M"), Some(find(&model, "L")));
    assert_eq!(local("T"), None);
}
