//! The standard IDL files (`orb.idl`, `CosNaming.idl` and others). `#include` finds them if the include path
//! has no file of that name.
//!
//! The texts are in the folder `idl` of this crate. The Rust code of most of them is in the crate `zorb`, so
//! that all programs share it. Definitions that are internal to an ORB have no Rust code.

use std::path::{Path, PathBuf};

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StandardFile {
    pub(crate) name: &'static str,
    /// Names that other ORBs use for the file or a part of it.
    aliases: &'static [&'static str],
    pub(crate) text: &'static str,
    /// The file-level module that the file declares or extends.
    pub(crate) module: &'static str,
    /// The module of the crate `zorb` that contains the Rust code; `None` if the file is internal to ORBs.
    pub(crate) rust_module: Option<&'static str>,
}

/// A file whose Rust code is in the module `$rust` of `zorb`.
macro_rules! shared {
    ($name:literal, $module:literal, $rust:literal, $aliases:expr) => {
        StandardFile { rust_module: Some($rust), ..internal!($name, $module, $aliases) }
    };
}

/// A file whose definitions are internal to ORBs, and have no Rust code.
macro_rules! internal {
    ($name:literal, $module:literal, $aliases:expr) => {
        StandardFile {
            name: $name,
            aliases: $aliases,
            text: include_str!(concat!("../idl/", $name)),
            module: $module,
            rust_module: None,
        }
    };
}

/// All standard files. A file is also found with the extension `.pidl`, which TAO uses for some files.
pub(crate) const FILES: &[StandardFile] = &[
    shared!("orb.idl", "CORBA", "corba", ORB),
    shared!("TypeCode.idl", "CORBA", "corba", &["TypeCode.pidl", "Typecode_types.pidl"]),
    shared!("ir.idl", "CORBA", "interface_repository", INTERFACE_REPOSITORY),
    internal!("Pollable.idl", "CORBA", &["pollable.idl", "CORBA_Pollable.idl"]),
    shared!("IOP.idl", "IOP", "iop", &["iop.idl", "IOP_IOR.pidl", "IOP_Codec.pidl", "IOPC.pidl"]),
    shared!("GIOP.idl", "GIOP", "giop", &["giop.idl"]),
    shared!("IIOP.idl", "IIOP", "iiop", &["iiop.idl", "IIOP_Profile.pidl"]),
    shared!("TimeBase.idl", "TimeBase", "time_base", &[]),
    shared!("Messaging.idl", "Messaging", "messaging", MESSAGING),
    shared!("PortableServer.idl", "PortableServer", "portable_server", PORTABLE_SERVER),
    shared!("RTCORBA.idl", "RTCORBA", "rtcorba", &[]),
    internal!("RTPortableServer.idl", "RTPortableServer", &[]),
    internal!("BiDirPolicy.idl", "BiDirPolicy", &["BiDirGIOP.idl", "BiDirPolicy.pidl"]),
    internal!("Dynamic.idl", "Dynamic", &[]),
    internal!("DynamicAny.idl", "DynamicAny", &[]),
    internal!("PortableInterceptor.idl", "PortableInterceptor", PORTABLE_INTERCEPTOR),
    shared!("CosNaming.idl", "CosNaming", "cos_naming", &["Naming.idl", "NamingService.idl"]),
    shared!("CosEventComm.idl", "CosEventComm", "cos_event_comm", &[]),
    shared!("CosEventChannelAdmin.idl", "CosEventChannelAdmin", "cos_event_channel_admin", &[]),
    shared!("CosTypedEventComm.idl", "CosTypedEventComm", "cos_typed_event_comm", &[]),
    shared!(
        "CosTypedEventChannelAdmin.idl",
        "CosTypedEventChannelAdmin",
        "cos_typed_event_channel_admin",
        &[]
    ),
    shared!("CosNotification.idl", "CosNotification", "cos_notification", &[]),
    shared!("CosNotifyComm.idl", "CosNotifyComm", "cos_notify_comm", &[]),
    shared!("CosNotifyFilter.idl", "CosNotifyFilter", "cos_notify_filter", &[]),
    shared!("CosNotifyChannelAdmin.idl", "CosNotifyChannelAdmin", "cos_notify_channel_admin", &[]),
];

const ORB: &[&str] = &[
    "CORBA.idl",
    "Corba.idl",
    "corba.idl",
    "corbaidl.idl",
    "boxes.idl",
    "CORBA_Policy.idl",
    "CORBA_Current.idl",
    "orb_types.pidl",
    "ORB.pidl",
    "Policy.pidl",
    "PolicyC.pidl",
    "Policy_Current.pidl",
    "Policy_Manager.pidl",
    "Current.pidl",
    "Services.pidl",
    "ParameterMode.pidl",
    "StringValue.pidl",
    "AnySeq.pidl",
    "BooleanSeq.pidl",
    "CharSeq.pidl",
    "DoubleSeq.pidl",
    "FloatSeq.pidl",
    "LongDoubleSeq.pidl",
    "LongLongSeq.pidl",
    "LongSeq.pidl",
    "OctetSeq.pidl",
    "ShortSeq.pidl",
    "StringSeq.pidl",
    "ULongLongSeq.pidl",
    "ULongSeq.pidl",
    "UShortSeq.pidl",
    "WCharSeq.pidl",
    "WStringSeq.pidl",
];

const INTERFACE_REPOSITORY: &[&str] = &[
    "InterfaceRepository.idl",
    "CORBA_InterfaceRepository.idl",
    "IFR_Base.pidl",
    "IFR_Basic.pidl",
    "IFR_Extended.pidl",
];

const MESSAGING: &[&str] = &[
    "messaging.idl",
    "messaging_policy.idl",
    "Messaging_No_Impl.pidl",
    "Messaging_RT_Policy.pidl",
    "Messaging_SyncScope.pidl",
];

const PORTABLE_SERVER: &[&str] = &["poa.idl", "POA.idl", "poa_include.idl", "POA.pidl", "PS_Forward.pidl"];

const PORTABLE_INTERCEPTOR: &[&str] =
    &["PI.pidl", "PI_Forward.pidl", "Interceptor.pidl", "ORBInitializer.pidl", "ORBInitInfo.pidl"];

/// Folders in which ORBs install these files. They may precede the name in an `#include`.
const FOLDERS: &[&str] = &[
    "AnyTypeCode",
    "BiDir_GIOP",
    "CORBA",
    "COS",
    "DynamicAny",
    "IDL",
    "IFR_Client",
    "IORInterceptor",
    "Messaging",
    "OMG",
    "PI",
    "PI_Server",
    "PortableServer",
    "RTCORBA",
    "TAO",
    "Valuetype",
    "corba",
    "cos",
    "idl",
    "jacorb",
    "omg",
    "omniORB",
    "omniORB4",
    "orbsvcs",
    "tao",
    "zorb",
];

/// The local interfaces of the standard that have Rust code, because user IDL derives from them.
const LOCAL_INTERFACES: &[&str] = &["CORBA::Current", "CORBA::Policy"];

impl StandardFile {
    /// Returns the path that identifies the file: its name in angle brackets, such as `<orb.idl>`.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("<{}>", self.name))
    }

    fn is_named(&self, name: &str) -> bool {
        let stem = |name: &str| name.strip_suffix(".idl").map(str::to_owned);
        self.name == name
            || self.aliases.contains(&name)
            || name.strip_suffix(".pidl").is_some_and(|start| stem(self.name).as_deref() == Some(start))
    }
}

/// Returns the file for a name as given to `#include`: `orb.idl`, `tao/orb.idl`, `omg/CosNaming.idl`.
pub(crate) fn find(name: &str) -> Option<&'static StandardFile> {
    let (folders, name) = name.rsplit_once('/').map_or((None, name), |(folders, name)| (Some(folders), name));
    let is_known = |folders: &str| folders.split('/').all(|folder| FOLDERS.contains(&folder));
    FILES.iter().find(|file| folders.is_none_or(is_known) && file.is_named(name))
}

pub(crate) fn find_by_path(path: &Path) -> Option<&'static StandardFile> {
    find(path.to_str()?.strip_prefix('<')?.strip_suffix('>')?)
}

pub(crate) fn local_interface_has_rust_code(scoped_name: &str) -> bool {
    LOCAL_INTERFACES.contains(&scoped_name)
}

/// Returns whether the path is the name of a standard file of the compiler in angle brackets: `<orb.idl>`.
/// The compiler then uses its own file instead of a file on disk.
///
/// ```
/// use idl_compiler::{Compiler, is_standard_file};
///
/// assert!(is_standard_file("<CosNaming.idl>".as_ref()));
/// assert!(!is_standard_file("CosNaming.idl".as_ref()));
/// let compiler = Compiler::default();
/// let model = compiler.compile_files(["<CosNaming.idl>"]).map_err(|errors| errors.render(false))?;
/// assert!(model.find("CosNaming::NamingContext").is_some());
/// # Ok::<(), String>(())
/// ```
pub fn is_standard_file(path: &Path) -> bool {
    find_by_path(path).is_some()
}

/// Returns the names of the compiler's standard files, as given to `#include`.
pub fn standard_files() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|file| file.name)
}
