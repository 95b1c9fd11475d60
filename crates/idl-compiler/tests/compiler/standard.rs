//! The standard's IDL files that the compiler contains: their names, their declarations, and the module of
//! their Rust.

use std::path::{Path, PathBuf};

use idl_compiler::emit::{self, Options};
use idl_compiler::model::DefKind;
use idl_compiler::{Compiler, Diagnostics, Disk, Memory, Model, Source, standard_files};

fn text(idl: &str) -> Result<Model, Diagnostics> {
    idl_compiler::compile(Source::text("test.idl", idl))
}

fn good(idl: &str) -> Model {
    text(idl).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

/// Compiles the first of the files; `inc` is searched.
fn files(list: &[(&str, &str)]) -> Result<Model, Diagnostics> {
    let first = list.first().expect("a file").0;
    let files: Vec<(PathBuf, Vec<u8>)> =
        list.iter().map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec())).collect();
    Compiler::default().files(Memory::from_iter(files)).include("inc").compile_files([first])
}

/// A file of the standard, by the strictest rules.
fn standard(name: &str) -> Model {
    let compiler = Compiler::default().strict_names(true);
    let result = compiler.compile_files([format!("<{name}>")]);
    result.unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

fn rust(model: &Model, options: &Options) -> String {
    let problems = options.check(model);
    assert!(problems.is_empty(), "{problems:?}");
    let emitted = emit::emit(model, options).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    assert!(emitted.warnings.is_empty(), "{}", emitted.warnings.render(false));
    emitted.tokens.to_string().replace(' ', "")
}

fn id(model: &Model, name: &str) -> String {
    model.def(model.find(name).unwrap_or_else(|| panic!("no {name}"))).repository_id.clone()
}

#[test]
fn every_spelling_finds_its_file() {
    for (spelling, declares) in [
        ("orb.idl", "CORBA::StringSeq"),
        ("CORBA.idl", "CORBA::PolicyList"),
        ("corbaidl.idl", "CORBA::OctetSeq"),
        ("boxes.idl", "CORBA::WStringValue"),
        ("tao/orb.idl", "CORBA::Policy"),
        ("omg/orb.idl", "CORBA::Current"),
        ("omniORB/orb.idl", "CORBA::TCKind"),
        ("tao/OctetSeq.pidl", "CORBA::OctetSeq"),
        ("tao/AnyTypeCode/TypeCode.pidl", "CORBA::TCKind"),
        ("tao/PolicyC.pidl", "CORBA::PolicyType"),
        ("ir.idl", "CORBA::InterfaceDef"),
        ("tao/IFR_Client/IFR_Basic.pidl", "CORBA::Repository"),
        ("IOP.idl", "IOP::TaggedComponent"),
        ("tao/IOP.pidl", "IOP::ServiceContext"),
        ("iop.idl", "IOP::IOR"),
        ("GIOP.idl", "GIOP::TargetAddress"),
        ("IIOP.idl", "IIOP::ListenPointList"),
        ("TimeBase.idl", "TimeBase::UtcT"),
        ("tao/TimeBase.pidl", "TimeBase::TimeT"),
        ("omg/TimeBase.idl", "TimeBase::IntervalT"),
        ("Messaging.idl", "Messaging::PolicyValueSeq"),
        ("tao/Messaging/Messaging.pidl", "Messaging::ReplyHandler"),
        ("PortableServer.idl", "PortableServer::POA"),
        ("poa.idl", "PortableServer::ServantLocator"),
        ("tao/PortableServer/PortableServer.pidl", "PortableServer::ObjectId"),
        ("DynamicAny.idl", "DynamicAny::DynAnyFactory"),
        ("Dynamic.idl", "Dynamic::ParameterList"),
        ("PortableInterceptor.idl", "PortableInterceptor::ORBInitializer"),
        ("tao/PI/PI.pidl", "PortableInterceptor::Interceptor"),
        ("RTCORBA.idl", "RTCORBA::Priority"),
        ("tao/RTCORBA/RTCORBA.pidl", "RTCORBA::RTORB"),
        ("RTPortableServer.idl", "RTPortableServer::POA"),
        ("BiDirPolicy.idl", "BiDirPolicy::BidirectionalPolicy"),
        ("CosNaming.idl", "CosNaming::NamingContextExt"),
        ("COS/CosNaming.idl", "CosNaming::Name"),
        ("orbsvcs/CosNaming.idl", "CosNaming::BindingIterator"),
        ("Naming.idl", "CosNaming::NamingContext"),
        ("CosEventComm.idl", "CosEventComm::PushConsumer"),
        ("omg/CosEventComm.idl", "CosEventComm::Disconnected"),
        ("CosEventChannelAdmin.idl", "CosEventChannelAdmin::EventChannel"),
        ("COS/CosTypedEventComm.idl", "CosTypedEventComm::TypedPushConsumer"),
        ("CosTypedEventChannelAdmin.idl", "CosTypedEventChannelAdmin::TypedEventChannel"),
        ("CosNotification.idl", "CosNotification::StructuredEvent"),
        ("CosNotifyComm.idl", "CosNotifyComm::SequencePushConsumer"),
        ("COS/CosNotifyFilter.idl", "CosNotifyFilter::MappingFilter"),
        ("orbsvcs/CosNotifyChannelAdmin.idl", "CosNotifyChannelAdmin::EventChannelFactory"),
    ] {
        for include in [format!("<{spelling}>"), format!("\"{spelling}\"")] {
            let model = good(&format!("#include {include}\n#include {include}\ninterface Own {{ }};"));
            let found = model.find(declares).unwrap_or_else(|| panic!("{include}: no {declares}"));
            assert!(model.is_included(found), "{include}");
            assert!(model.sources().paths().is_empty(), "{include}: nothing on the disk was read");
        }
    }
}

#[test]
fn other_folders_and_names_find_nothing() {
    for name in [
        "mine/orb.idl",
        "../orb.idl",
        "/orb.idl",
        "tao/mine/orb.idl",
        "Orb.idl",
        "orb.IDL",
        "orb",
        "Policy.idl",
    ] {
        let errors = text(&format!("#include <{name}>\ninterface I {{ }};")).expect_err(name);
        let codes: Vec<_> = errors.iter().map(|error| error.code).collect();
        assert_eq!(codes, ["include"], "{name}");
    }
}

#[test]
fn a_file_of_the_include_path_wins() {
    let own = "#pragma prefix \"mine.com\"\nmodule CORBA { typedef long Own; };";
    let main = "#include <orb.idl>\nstruct S { CORBA::Own a; };";
    let model = files(&[("main.idl", main), ("inc/orb.idl", own)]).expect("no errors");
    assert_eq!(id(&model, "CORBA::Own"), "IDL:mine.com/CORBA/Own:1.0");
    assert_eq!(model.find("CORBA::StringSeq"), None);
    let paths: Vec<_> = model.sources().paths().iter().map(|path| path.display().to_string()).collect();
    assert_eq!(paths, ["main.idl", "inc/orb.idl"]);
    assert!(
        rust(&model, &Options::default()).contains("pubtypeOwn="),
        "it is compiled as every included file"
    );
    // The spelling counts, not the file that it means.
    let main = "#include <tao/orb.idl>\nstruct S { CORBA::StringSeq a; };";
    let model = files(&[("main.idl", main), ("inc/orb.idl", own)]).expect("no errors");
    assert_eq!(id(&model, "CORBA::StringSeq"), "IDL:omg.org/CORBA/StringSeq:1.0");
    // What is beside the file is found by quotes only.
    let main = "#include \"TimeBase.idl\"\n";
    let beside = "module TimeBase { typedef long Mine; };";
    let model = files(&[("main.idl", main), ("TimeBase.idl", beside)]).expect("no errors");
    assert!(model.find("TimeBase::Mine").is_some() && model.find("TimeBase::UtcT").is_none());
    let main = "#include <TimeBase.idl>\n";
    let model = files(&[("main.idl", main), ("TimeBase.idl", beside)]).expect("no errors");
    assert!(model.find("TimeBase::Mine").is_none() && model.find("TimeBase::UtcT").is_some());
    // Files of the standard include those of the path, too.
    let own = "#pragma once\n#pragma prefix \"omg.org\"\nmodule CORBA { typedef sequence<octet> OctetSeq; };";
    let main =
        "#include <orb.idl>\n#include <IOP.idl>\nstruct S { IOP::TaggedProfile a; CORBA::OctetSeq b; };";
    let model = files(&[("main.idl", main), ("inc/orb.idl", own)]).expect("no errors");
    assert_eq!(model.find("CORBA::StringSeq"), None);
    let rust = rust(&model, &Options::default());
    assert!(rust.contains("::zorb::iop::TaggedProfile") && !rust.contains("::zorb::corba"), "{rust}");
}

#[test]
fn every_file_is_free_of_errors_and_warnings_and_has_the_ids_of_the_standard() {
    let mut total = 0;
    for name in standard_files() {
        let model = standard(name);
        assert!(model.warnings().is_empty(), "{}", model.warnings().render(false));
        for def in model.defs() {
            total += 1;
            let scoped = model.scoped_name(def.id);
            let version = match scoped.as_str() {
                "PortableServer::POA" | "PortableServer::POAManager" | "PortableServer::AdapterActivator" => {
                    "2.3"
                }
                "PortableServer::ServantManager" | "PortableServer::ServantActivator" => "2.3",
                "PortableServer::ServantLocator" | "PortableServer::Current" => "2.3",
                "Messaging::Poller" => "3.1",
                _ => "1.0",
            };
            let expected = format!("IDL:omg.org/{}:{version}", scoped.replace("::", "/"));
            assert_eq!(def.repository_id, expected, "{name}");
        }
        // Its own Rust, and that of a file that only includes it.
        rust(&model, &Options::default());
        let only = good(&format!("#include <{name}>\ninterface Own {{ }};"));
        assert!(only.warnings().is_empty(), "{}", only.warnings().render(false));
        let rust = rust(&only, &Options::default());
        assert!(rust.contains("pubstructOwnRef") && !rust.contains("omg.org"), "{name}: {rust}");
    }
    assert!(total > 2000, "{total} definitions");
}

#[test]
fn what_idl_uses_refers_to_the_facade() {
    let model = good(
        "#include <orb.idl>
         #include <CosNaming.idl>
         #include <TimeBase.idl>
         #include <CosEventComm.idl>
         module Own {
             struct Entry {
                 CosNaming::Name name; TimeBase::UtcT time; CORBA::StringSeq words; CORBA::OctetSeq data;
                 CORBA::TCKind kind; CORBA::StringValue text;
             };
             interface Log : CosEventComm::PushConsumer {
                 CosNaming::NamingContext names(in CORBA::RepositoryId id);
             };
             local interface Deadline : CORBA::Policy { readonly attribute TimeBase::TimeT end; };
         };",
    );
    let text = rust(&model, &Options::default());
    for path in [
        "::zorb::cos_naming::Name",
        "::zorb::cos_naming::NamingContextRef",
        "::zorb::time_base::UtcT",
        "::zorb::time_base::TimeT",
        "::zorb::corba::StringSeq",
        "::zorb::corba::OctetSeq",
        "::zorb::corba::TcKind",
        "::zorb::corba::StringValue",
        "::zorb::corba::RepositoryId",
        "::zorb::corba::PolicyRef",
        "::zorb::cos_event_comm::PushConsumerRef",
    ] {
        assert!(text.contains(path), "{path}: {text}");
    }
    for module in ["modcorba", "modcos_naming", "modtime_base", "modcos_event_comm"] {
        assert!(!text.contains(module), "{module}");
    }
    let options = Options { runtime: "::site::orb".parse().expect("a path"), ..Options::default() };
    let text = rust(&model, &options);
    assert!(text.contains("::site::orb::time_base::UtcT") && !text.contains("::zorb::"));
    // What an entry says is elsewhere is there.
    let external = vec![
        ("::CORBA".to_owned(), "crate::mine".parse().expect("a path")),
        ("::TimeBase::UtcT".to_owned(), "crate::Clock".parse().expect("a path")),
    ];
    let text = rust(&model, &Options { external, ..Options::default() });
    assert!(text.contains("crate::mine::StringSeq") && text.contains("crate::Clock"), "{text}");
    assert!(text.contains("::zorb::time_base::TimeT") && !text.contains("::zorb::corba"), "{text}");
}

#[test]
fn what_belongs_to_an_orb_has_no_rust_and_an_error_says_so() {
    for (file, used, what) in [
        ("PortableServer.idl", "struct S { PortableServer::POA a; };", "PortableServer::POA"),
        ("PortableServer.idl", "struct S { PortableServer::POAList a; };", "PortableServer::POAList"),
        ("Messaging.idl", "struct S { Messaging::ExceptionHolder a; };", "Messaging::ExceptionHolder"),
        (
            "PortableInterceptor.idl",
            "local interface I : PortableInterceptor::Interceptor { };",
            "PortableInterceptor::Interceptor",
        ),
        ("DynamicAny.idl", "local interface I { DynamicAny::DynAny f(); };", "DynamicAny::DynAny"),
        ("Pollable.idl", "local interface I { CORBA::Pollable f(); };", "CORBA::Pollable"),
    ] {
        let model = good(&format!("#include <{file}>\n{used}"));
        let found = emit::emit(&model, &Options::default()).expect_err(what).render(false);
        let message = format!("uses `{what}`, which is internal to ORBs and has no Rust type");
        assert_eq!(found.matches("error[no-extern]").count(), 1, "{found}");
        assert!(found.contains(&message) && found.contains(&format!("extern(\"::{what}\"")), "{found}");
    }
    let model =
        good("#include <orb.idl>\nlocal interface I { void f(in CORBA::NVList a, in CORBA::_Context b); };");
    let found = emit::emit(&model, &Options::default()).expect_err("natives").render(false);
    assert!(found.contains("the native type `CORBA::NVList`"), "{found}");
    let external = vec![
        ("::CORBA::NVList".to_owned(), "crate::List".parse().expect("a path")),
        ("::CORBA::Context".to_owned(), "crate::Context".parse().expect("a path")),
    ];
    let text = rust(&model, &Options { external, ..Options::default() });
    assert!(text.contains("crate::List") && text.contains("crate::Context"), "{text}");
    // Types of values beside what belongs to the ORB have Rust.
    let model = good(
        "#include <PortableServer.idl>\nstruct S { PortableServer::ObjectId a; PortableServer::LifespanPolicyValue b; };",
    );
    let text = rust(&model, &Options::default());
    assert!(text.contains("::zorb::portable_server::ObjectId"), "{text}");
}

#[test]
fn imports_read_files_of_the_standard() {
    let model = good(
        "import ::CORBA;\nimport ::CosNaming;\nimport ::CORBA;\nimport \"TimeBase.idl\";
         struct S { CORBA::PolicyType a; CosNaming::Name b; TimeBase::UtcT c; };",
    );
    let text = rust(&model, &Options::default());
    assert!(text.contains("::zorb::corba::PolicyType") && text.contains("::zorb::time_base::UtcT"), "{text}");
    // IDL among Rust reads no files; `CORBA` is known there all the same.
    let tokens = "import CORBA; struct S { CORBA::TypeCode a; };".parse().expect("tokens");
    assert!(idl_compiler::compile(Source::tokens(tokens)).is_ok());
    // `CORBA` that the text declares itself is that alone.
    let model =
        good("module CORBA { typedef long OctetSeq; };\nimport ::CORBA;\nstruct S { CORBA::OctetSeq a; };");
    assert!(model.find("CORBA::StringSeq").is_none());
}

#[test]
fn a_module_of_the_standard_is_added_to() {
    let model = good(
        "#include <orb.idl>\n#pragma prefix \"omg.org\"
         module CORBA { typedef sequence<StringSeq> Table; struct Row { OctetSeq data; }; };
         struct S { CORBA::Table a; CORBA::Row b; CORBA::LongSeq c; };",
    );
    let text = rust(&model, &Options::default());
    assert!(text.contains("modcorba{") && text.contains("pubstructRow"), "{text}");
    assert!(text.contains("::zorb::corba::OctetSeq") && text.contains("::zorb::corba::LongSeq"), "{text}");
    assert!(!text.contains("::zorb::corba::Row") && !text.contains("::zorb::corba::Table"), "{text}");
}

#[test]
fn a_file_that_is_included_inside_of_a_scope_is_compiled_there() {
    let model = good("module Own {\n#include <TimeBase.idl>\n};\nstruct S { Own::TimeBase::UtcT a; };");
    let text = rust(&model, &Options::default());
    assert!(text.contains("pubstructUtcT") && !text.contains("::zorb::time_base"), "{text}");
}

/// What a definition is, with types spelled out.
fn shape(model: &Model, def: &idl_compiler::model::Def) -> String {
    let names = |ids: &[idl_compiler::model::DefId]| {
        let mut names: Vec<_> = ids.iter().map(|id| model.scoped_name(*id)).collect();
        names.sort();
        names.join(", ")
    };
    let members = |list: &[idl_compiler::model::Member]| {
        list.iter().map(|m| format!("{} {}; ", spelled(model, m.ty), m.name)).collect::<String>()
    };
    match &def.kind {
        DefKind::Struct(body) => format!("struct {}", members(&body.members)),
        DefKind::Exception(body) => format!("exception {}", members(&body.members)),
        DefKind::Enum(body) => {
            format!("enum {:?}", body.enumerators.iter().map(|e| e.name.as_str()).collect::<Vec<_>>())
        }
        DefKind::Typedef(alias) => format!("typedef {}", spelled(model, alias.ty)),
        DefKind::Const(constant) => format!("const {} {:?}", spelled(model, constant.ty), constant.value),
        DefKind::Interface(interface) => format!("interface {}", names(&interface.bases)),
        DefKind::ValueBox(boxed) => format!("box {}", spelled(model, boxed.ty)),
        DefKind::Attribute(attribute) => {
            format!("attribute {} {}", attribute.readonly, spelled(model, attribute.ty))
        }
        DefKind::Operation(operation) => {
            let params = operation.params.iter();
            let params: Vec<_> =
                params.map(|p| format!("{:?} {}", p.direction, spelled(model, p.ty))).collect();
            let result = operation.result.map(|ty| spelled(model, ty));
            format!("{result:?} ({}) raises {}", params.join(", "), names(&operation.raises))
        }
        DefKind::Module(_) => "module".to_owned(),
        other => format!("{other:?}").chars().take_while(|c| c.is_alphanumeric()).collect(),
    }
}

/// A type without the names of its aliases.
fn spelled(model: &Model, ty: idl_compiler::model::TypeId) -> String {
    use idl_compiler::model::Type;
    match model.stripped(ty) {
        Type::Sequence { element, .. } => format!("sequence<{}>", spelled(model, *element)),
        _ => model.describe(model.strip(ty)),
    }
}

#[test]
fn the_files_of_omniorb_say_the_same_where_they_have_the_same() {
    let root = Path::new("/usr/share/idl/omniORB");
    if !root.exists() {
        eprintln!("SKIPPED: no IDL files of omniORB (package omniorb-idl)");
        return;
    }
    let (mut same, mut different) = (0, Vec::new());
    for (ours, theirs) in [
        ("orb.idl", "orb.idl"),
        ("Pollable.idl", "pollable.idl"),
        ("Messaging.idl", "messaging.idl"),
        ("Messaging.idl", "messaging_policy.idl"),
        ("PortableServer.idl", "poa.idl"),
        ("TimeBase.idl", "COS/TimeBase.idl"),
        ("CosNaming.idl", "COS/CosNaming.idl"),
        ("CosEventComm.idl", "COS/CosEventComm.idl"),
        ("CosEventChannelAdmin.idl", "COS/CosEventChannelAdmin.idl"),
        ("CosTypedEventComm.idl", "COS/CosTypedEventComm.idl"),
        ("CosTypedEventChannelAdmin.idl", "COS/CosTypedEventChannelAdmin.idl"),
        ("CosNotification.idl", "COS/CosNotification.idl"),
        ("CosNotifyComm.idl", "COS/CosNotifyComm.idl"),
        ("CosNotifyFilter.idl", "COS/CosNotifyFilter.idl"),
        ("CosNotifyChannelAdmin.idl", "COS/CosNotifyChannelAdmin.idl"),
    ] {
        let compiler = Compiler::default().files(Disk::new()).include(root).include(root.join("COS"));
        let compiler = ["HAS_LongLong", "HAS_LongDouble"].into_iter().fold(compiler, Compiler::define);
        let other = compiler.compile_files([root.join(theirs)]);
        let other = other.unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        let model = standard(ours);
        for def in model.defs() {
            let name = model.scoped_name(def.id);
            let Some(found) = other.find(&name).map(|id| other.def(id)) else { continue };
            let ours = (&def.repository_id, shape(&model, def));
            let theirs = (&found.repository_id, shape(&other, found));
            if ours != theirs {
                different.push((name, format!("{ours:?} / {theirs:?}")));
            }
            same += 1;
        }
    }
    // omniORB's own choices: a number where the standard has a native, and other versions and exceptions.
    let expected = [
        "Messaging::Poller",
        "PortableServer",
        "PortableServer::POA",
        "PortableServer::Servant",
        "PortableServer::ForwardRequest",
        "PortableServer::ServantActivator::incarnate",
        "PortableServer::ServantActivator::etherealize",
        "PortableServer::ServantLocator::Cookie",
        "PortableServer::ServantLocator::preinvoke",
        "PortableServer::ServantLocator::postinvoke",
        "CosNaming::NamingContextExt::resolve_str",
    ];
    let names: Vec<&str> = different.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, expected, "{different:#?}");
    assert!(same > 900, "{same} definitions compared");
}
