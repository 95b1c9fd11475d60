//! Which files the corpus has, and which of them need help.

use std::path::{Path, PathBuf};

/// The folder of the files of Debian's package `omniorb-idl`. The IDL of `libcos4-dev` and `libomniorb4-dev`
/// is generated from these files.
pub(crate) const FOLDER: &str = "/usr/share/idl/omniORB";

/// What omniidl defines, and the files ask for.
pub(crate) const DEFINE: &str = "__OMNIIDL__";

/// A file that no compiler takes as it is.
pub(crate) struct Incomplete {
    pub(crate) file: &'static str,
    /// What it needs before it, from the corpus or from the folder of help.
    pub(crate) after: &'static [&'static str],
    pub(crate) reason: &'static str,
}

/// No others are allowed to be refused, and each of these must be, by omniidl as well.
pub(crate) const INCOMPLETE: &[Incomplete] = &[
    Incomplete {
        file: "COS/CosTSPortability.idl",
        after: &["missing.idl"],
        reason: "uses CORBA::Environment, a type of C and C++ mappings that no IDL declares",
    },
    Incomplete { file: "COS/NRService.idl", after: &["missing.idl"], reason: SECURITY },
    Incomplete {
        file: "COS/SECIOP.idl",
        after: &["missing.idl"],
        reason: "as Security.idl; includes IOP.idl too",
    },
    Incomplete {
        file: "COS/SSLIOP.idl",
        after: &["missing.idl"],
        reason: "as Security.idl; includes IOP.idl too",
    },
    Incomplete { file: "COS/Security.idl", after: &["missing.idl"], reason: SECURITY },
    Incomplete {
        file: "COS/SecurityAdmin.idl",
        after: &["missing.idl", "ir.idl"],
        reason: "as Security.idl; uses CORBA::InterfaceDef without including ir.idl",
    },
    Incomplete { file: "COS/SecurityLevel1.idl", after: &["missing.idl"], reason: SECURITY },
    Incomplete { file: "COS/SecurityLevel2.idl", after: &["missing.idl"], reason: SECURITY },
    Incomplete { file: "COS/SecurityReplaceable.idl", after: &["missing.idl"], reason: SECURITY },
];

const SECURITY: &str = "uses CORBA::Policy, PolicyType, Current, ServiceOption or ServiceDetailType, which no file of the package declares";

/// Files that are compiled as separate texts. `Naming.idl` repeats the declarations of `CosNaming.idl`, and
/// `CosCollection.idl` makes up a third of all Rust.
pub(crate) const APART: &[&str] = &["Naming.idl", "COS/CosCollection.idl"];

/// Files whose Rust is compiled by the suite: of each construct that the corpus has, a file that is small.
pub(crate) const SAMPLE: &[&str] = &[
    "Naming.idl",
    "messaging.idl",
    "poa.idl",
    "COS/CosLifeCycle.idl",
    "COS/CosNaming.idl",
    "COS/CosPropertyService.idl",
    "COS/CosTime.idl",
    "COS/CosTransactions.idl",
    "COS/CosTypedEventComm.idl",
    "COS/RDITestTypes.idl",
    "COS/SSLIOP.idl",
];

/// Returns the paths of all files, relative to the main folder and with its files first. Empty if the package
/// is not installed.
pub(crate) fn files() -> Vec<String> {
    let mut files = Vec::new();
    for folder in ["", "COS"] {
        let Ok(entries) = std::fs::read_dir(Path::new(FOLDER).join(folder)) else { continue };
        let names = entries.flatten().map(|entry| Path::new(folder).join(entry.file_name()));
        let idl = names.filter(|path| path.extension().is_some_and(|ext| ext == "idl"));
        let mut names: Vec<String> = idl.map(|path| path.display().to_string()).collect();
        names.sort();
        files.extend(names);
    }
    files
}

/// Why a file can not be taken as it is.
pub(crate) fn incomplete(file: &str) -> Option<&'static Incomplete> {
    INCOMPLETE.iter().find(|it| it.file == file)
}

/// Where what is missing in the corpus is declared.
pub(crate) fn help() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/idlc/corpus/idl")
}
