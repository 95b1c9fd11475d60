//! The call to a naming service by which `corbaname:` URLs are resolved.

use giop_codec::cdr::Encoder;
use giop_codec::exception::{CompletionStatus, SystemException, minor};
use giop_codec::url::{NameText, NameTextError};
use giop_codec::{DecodeError, EncodeError, Printable};

use crate::client::invoke;
use crate::reference::ObjectRef;
use crate::reference::operation::Operation;

static RESOLVE: Operation = Operation::twoway("resolve");

/// Resolves a stringified name (`a.kind/b`) in a naming context.
pub(crate) async fn resolve_str(context: &ObjectRef, name: &str) -> Result<ObjectRef, SystemException> {
    let bad_name = |error: NameTextError| bad_param().with_source(error);
    let NameText { components } = name.parse().map_err(bad_name)?;
    let encode = |e: &mut Encoder| -> Result<(), EncodeError> {
        e.put_len(components.len())?;
        components.iter().try_for_each(|(id, kind)| {
            e.put_str(id)?;
            e.put_str(kind)
        })
    };
    let found = invoke(
        context,
        &RESOLVE,
        encode,
        <Option<ObjectRef> as giop_codec::cdr::CdrDecode>::decode,
        |id, _| Some(Ok::<_, DecodeError>(naming_exception(id))),
    );
    found.await?.ok_or_else(|| bad_param().with_reason("the name is bound to nil"))
}

fn naming_exception(id: &str) -> SystemException {
    let name = id.rsplit('/').next().unwrap_or(id).split(':').next().unwrap_or(id);
    let text = format!("the naming context raised {}", Printable::new(name));
    bad_param().completed(CompletionStatus::Yes).with_reason(text)
}

fn bad_param() -> SystemException {
    SystemException::bad_param().with_minor(minor::BAD_PARAM_URL_OTHER)
}
