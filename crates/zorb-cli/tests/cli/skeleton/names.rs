// Servants of the interfaces in names.idl, made by `idlc skeleton`.
// Each method raises NO_IMPLEMENT until you implement it.

/// A servant of interface `zorb::Result`.
#[derive(Debug, Default)]
pub struct ResultImpl;

impl self::zorb::ResultServant for ResultImpl {
    /// IDL: `Option get(in Bytes a, in Value b, in string c)`
    async fn get(
        &self,
        a: &Bytes,
        b: ::core::option::Option<::zorb::Value<Value>>,
        c: &str,
    ) -> Result<Option, ::zorb::SystemException> {
        let _ = (a, b, c);
        Err(not_implemented())
    }
}

/// A servant of interface `SystemException`.
#[derive(Debug, Default)]
pub struct SystemExceptionImpl;

impl SystemExceptionServant for SystemExceptionImpl {
    /// IDL: `void raise(in zorb::Result which)`
    async fn raise(
        &self,
        which: ::core::option::Option<self::zorb::ResultRef>,
    ) -> Result<(), ::zorb::SystemException> {
        let _ = (which,);
        Err(not_implemented())
    }
}

/// The error of operations that are not implemented yet.
fn not_implemented() -> ::zorb::SystemException {
    ::zorb::SystemException::no_implement()
}
