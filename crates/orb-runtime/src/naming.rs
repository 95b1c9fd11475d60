//! As much of the naming service's client as `corbaname:` needs.

use giop_codec::cdr::Encoder;
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_codec::{DecodeError, EncodeError};

use crate::invoke::{Operation, invoke};
use crate::reference::ObjectRef;

static RESOLVE: Operation = Operation::twoway("resolve");

/// Resolves a stringified name (`a.kind/b`) in a naming context.
pub(crate) async fn resolve_str(context: &ObjectRef, name: &str) -> Result<ObjectRef, SystemException> {
    let components = parse(name)?;
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
        |id, _| Some(Ok::<_, DecodeError>(refused(id))),
    );
    found.await?.ok_or_else(|| bad_param("the name is bound to nil"))
}

/// The components of a name: `/` separates them, the last `.` starts the kind, `\` escapes both and itself.
fn parse(name: &str) -> Result<Vec<(String, String)>, SystemException> {
    let mut components = vec![(String::new(), None::<String>)];
    let mut chars = name.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | '/' | '.')) => escaped,
                _ => return Err(bad_param("a backslash in a name stands before `/`, `.` or a backslash")),
            },
            '/' => {
                components.push((String::new(), None));
                continue;
            }
            '.' => {
                if let Some((_, kind @ None)) = components.last_mut() {
                    *kind = Some(String::new());
                    continue;
                }
                return Err(bad_param("a component of a name has one dot: escape others as `\\.`"));
            }
            other => other,
        };
        if let Some((id, kind)) = components.last_mut() {
            kind.as_mut().unwrap_or(id).push(c);
        }
    }
    if name.split('/').any(str::is_empty) {
        return Err(bad_param("a name has an empty component"));
    }
    Ok(components.into_iter().map(|(id, kind)| (id, kind.unwrap_or_default())).collect())
}

fn refused(id: &str) -> SystemException {
    let short = id.rsplit('/').next().unwrap_or(id).split(':').next().unwrap_or(id);
    SystemException::new(SystemExceptionKind::BadParam, minor::BAD_PARAM_URL_OTHER, CompletionStatus::Yes)
        .because(format!("the naming context raised {short}"))
}

fn bad_param(text: &'static str) -> SystemException {
    SystemException::new(SystemExceptionKind::BadParam, minor::BAD_PARAM_URL_OTHER, CompletionStatus::No)
        .because(text)
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn pairs(name: &str) -> Vec<(String, String)> {
        parse(name).unwrap()
    }

    // clause: poa.naming.string_names, ior.corbaname.bad
    #[test]
    fn names_fall_into_components() {
        let owned = |list: &[(&str, &str)]| {
            list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(pairs("a/b.c"), owned(&[("a", ""), ("b", "c")]));
        assert_eq!(pairs(r"a\.b/c\/d"), owned(&[("a.b", ""), ("c/d", "")]));
        assert_eq!(pairs(".k"), owned(&[("", "k")]));
        for bad in ["", "a//b", "a.b.c", r"a\x", "a/"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
