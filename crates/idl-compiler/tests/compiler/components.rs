//! Generated constructs of the component model: their scopes, their repository ids, and the file that owns
//! their Rust.

use idl_compiler::emit::{IncludePolicy, Options, emit};
use idl_compiler::model::Construct;
use idl_compiler::{Compiler, Memory, Model};

/// Compiles `shop.idl`, which may include `base.idl`.
fn model(base: &str, shop: &str) -> Model {
    let files = Memory::from_iter([("base.idl", base), ("shop.idl", shop)]);
    let model = Compiler::default().files(files).compile_files(["shop.idl"]);
    model.unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

fn id<'a>(model: &'a Model, name: &str) -> &'a str {
    &model.def(model.find(name).unwrap_or_else(|| panic!("{name}"))).repository_id
}

const BASE: &str = "#pragma prefix \"base.com\"\nmodule Base { eventtype Tick { }; component Part { }; \
    porttype P { provides Object own; }; home Parts manages Part { }; };";

#[test]
fn what_is_added_has_the_prefix_of_the_file_of_its_construct() {
    let shop = "#pragma prefix \"shop.com\"\n#include \"base.idl\"\nmodule Shop { eventtype Tock : Base::Tick { };\n\
        component C : Base::Part { port Base::P p; uses multiple Object many; };\n\
        home H : Base::Parts manages C { };\n#pragma version TockConsumer 2.3\n#pragma ID HImplicit \"IDL:mine:1.0\"\n};";
    let model = model(BASE, shop);
    assert_eq!(id(&model, "Base::TickConsumer"), "IDL:base.com/Base/TickConsumer:1.0");
    assert_eq!(id(&model, "Base::PartsExplicit"), "IDL:base.com/Base/PartsExplicit:1.0");
    assert_eq!(id(&model, "Shop::TockConsumer"), "IDL:shop.com/Shop/TockConsumer:2.3");
    assert_eq!(id(&model, "Shop::C::manyConnection"), "IDL:shop.com/Shop/C/manyConnection:1.0");
    assert_eq!(id(&model, "Shop::C::provide_p_own"), "IDL:shop.com/Shop/C/provide_p_own:1.0");
    assert_eq!(id(&model, "Shop::HImplicit"), "IDL:mine:1.0");
    assert_eq!(id(&model, "Components::CCMObject"), "IDL:omg.org/Components/CCMObject:1.0");
    let construct = |name: &str| {
        let interface = model.find(name).and_then(|id| model.interface(id));
        interface.map(|interface| interface.construct)
    };
    assert_eq!(construct("Shop::C"), Some(Construct::Component));
    assert_eq!(construct("Shop::H"), Some(Construct::Home));
    assert_eq!(construct("Shop::HExplicit"), Some(Construct::HomeExplicit));
    assert_eq!(construct("Shop::TockConsumer"), Some(Construct::EventConsumer));
    let included = |name: &str| model.find(name).map(|id| model.is_included(id));
    assert_eq!(
        [included("Components"), included("Base"), included("Shop")],
        [Some(true), Some(true), Some(false)]
    );
    assert_eq!(model.sources().paths().len(), 2, "no file of the module `Components` is watched");
}

#[test]
fn documentation_follows() {
    let shop = "/// Of C.\ncomponent C {\n/// Of a.\nprovides Object a;\n/// Of b.\nuses Object b;\n};\n\
        /// Of E.\neventtype E { };\n/// Of H.\nhome H manages C {\n/// Of make.\nfactory make(); };";
    let model = model("", shop);
    let docs = |name: &str| model.find(name).map(|id| model.def(id).docs.text()).unwrap_or_default();
    assert_eq!(docs("C"), "Of C.");
    assert_eq!(docs("C::provide_a"), "Of a.");
    assert_eq!(docs("C::disconnect_b"), "Of b.");
    assert_eq!(docs("E"), "Of E.");
    assert_eq!(docs("EConsumer"), "Takes events of the type `E`.");
    assert_eq!(docs("H"), "Of H.");
    assert_eq!(docs("HExplicit::make"), "Of make.");
}

#[test]
fn only_what_is_needed_of_components_is_there() {
    let names = |shop: &str| {
        let model = model("", shop);
        let id = model.find("Components");
        id.map_or(0, |id| model.children(id).len())
    };
    assert_eq!(names("interface I { };"), 0);
    assert_eq!(names("eventtype E { };"), 3);
    assert_eq!(names("interface I { void f() raises (Components::NoConnection); };"), 1);
    assert_eq!(names("typedef Components::Cookie C;"), 1);
    assert!(names("component C { };") > 30);
    // Where the text declares the name, it means what the text says.
    assert_eq!(
        names("module M { module Components { const long X = 1; }; const long Y = Components::X; };"),
        0
    );
    let own = model("", "interface Components { typedef long NameList; }; typedef Components::NameList L;");
    assert!(own.find("Components::NameList").is_some());
}

/// The Rust of `shop.idl`, without blanks.
fn rust(shop: &str, external: &[(&str, &str)], include_policy: IncludePolicy) -> String {
    let path = |path: &str| path.parse().expect("a path");
    let external = external.iter().map(|(idl, rust)| ((*idl).to_owned(), path(rust))).collect();
    let options = Options { external, include_policy, ..Options::default() };
    let model = model(BASE, shop);
    let rust = emit(&model, &options).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    rust.tokens.to_string().split_whitespace().collect()
}

#[test]
fn components_are_written_where_they_are_needed_and_nowhere_else() {
    let shop = "#include \"base.idl\"\ncomponent C : Base::Part { };";
    let own = "pubmodcomponents{";
    assert!(rust(shop, &[], IncludePolicy::Compile).contains(own));
    let base = ("::Base", "crate::base");
    assert!(rust(shop, &[base], IncludePolicy::Extern).contains(own));
    let elsewhere = rust(shop, &[base, ("::Components", "crate::base::components")], IncludePolicy::Extern);
    assert!(!elsewhere.contains(own));
    assert!(elsewhere.contains("crate::base::components::Cookie"));
    let unused = "#include \"base.idl\"\ninterface I { };";
    assert!(!rust(unused, &[], IncludePolicy::Extern).contains(own));
}

#[test]
fn files_are_imported_that_are_included() {
    let imports = "import \"base.idl\"; import ::Base::Part; import \"IDL:base.com/Base/Parts:1.0\";";
    model(BASE, &format!("#include \"base.idl\"\n{imports} interface I {{ }};"));
    let files = Memory::from_iter([("shop.idl", format!("{imports} interface I {{ }};"))]);
    let errors = Compiler::default().files(files).compile_files(["shop.idl"]).expect_err("nothing is there");
    let codes: Vec<&str> = errors.iter().map(|error| error.code).collect();
    assert_eq!(codes, ["unknown-import"; 3]);
}
