//! Import of the data file of omniNames, the naming service of omniORB.
//!
//! The file is a log with one change in each line. It begins with the last checkpoint, if there is one.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use zorb::cos_naming::{BindingType, NameComponent};
use zorb::wire::Ior;

use crate::store::{Change, ChangeError, ContextId, Key, MayReplace, Refusal, Store, StoreError, Target};

/// The numbers of imported contexts and bindings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportSummary {
    /// The number of contexts that were created. The root context is not counted, because it existed before.
    pub contexts: usize,
    /// The number of bindings that were created.
    pub bindings: usize,
}

/// The reason why an import failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The text is not in omniNames' format, for example because a line is incomplete. The store was not
    /// changed.
    #[error("line {line}: {reason}")]
    Line {
        /// The number of the line. The first line has number 1.
        line: usize,
        /// The error in the line.
        reason: &'static str,
    },
    /// A name of the root context is bound already. Names that were imported before it remain in the store.
    #[error("`{0}` is bound already: import into a store without names, or unbind it first")]
    AlreadyBound(Key),
    /// The store rejected a name. Names that were imported before it remain in the store.
    #[error("the store rejected `{key}`: {refusal:?}")]
    Refused {
        /// The name.
        key: Key,
        /// The reason.
        refusal: Refusal,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The maximum number of changes that are made concurrently, so that they share synchronizations of the disk.
const MAX_CONCURRENT_CHANGES: usize = 1000;

/// Imports the names of omniNames into a store.
///
/// `file` is the contents of the data file of omniNames, `omninames-HOST.dat`, or of the log of its older
/// versions. Lines that are not in UTF-8 are read as ISO 8859-1, omniNames' native code set.
///
/// The bindings of the root context of omniNames are added to the root context of the store. For each other
/// context of omniNames, a new context is created, even if no name leads to it. Clients that have a reference
/// to a context of omniNames must resolve its name again.
///
/// Stop omniNames first, because its later changes are not imported.
///
/// # Errors
/// [`ImportError::Line`] if the text is not in omniNames' format. The store is then not changed.
/// After other errors, some of the names may be in the store.
pub async fn import_omninames<S: Store>(store: &Arc<S>, file: &[u8]) -> Result<ImportSummary, ImportError> {
    let log = Log::read(file)?;
    let mut summary = ImportSummary::default();
    let mut ids = HashMap::from([(Log::ROOT, ContextId::ROOT)]);
    let other_contexts: Vec<&[u8]> =
        log.contexts.keys().map(Vec::as_slice).filter(|key| *key != Log::ROOT).collect();
    for chunk in other_contexts.chunks(MAX_CONCURRENT_CHANGES) {
        let results = make_concurrently(store, chunk.iter().map(|_| Change::NewContext)).await;
        for (key, result) in chunk.iter().zip(results) {
            if let Some(id) = result.map_err(|error| import_error(error, None))? {
                ids.insert(*key, id);
                summary.contexts += 1;
            }
        }
    }
    let mut changes = Vec::new();
    for (context, bindings) in &log.contexts {
        let Some(&context) = ids.get(context.as_slice()) else { continue };
        for (key, binding) in bindings {
            let imported_context = binding.context_key.as_deref().and_then(|key| ids.get(key));
            let target = match (binding.binding_type, imported_context) {
                (BindingType::Nobject, _) => Target::Object(binding.object.clone()),
                (BindingType::Ncontext, Some(id)) => Target::Context(*id),
                (BindingType::Ncontext, None) => Target::RemoteContext(binding.object.clone()),
            };
            changes.push(Change::Bind {
                context,
                key: key.clone(),
                target,
                may_replace: MayReplace::Nothing,
            });
        }
    }
    for chunk in changes.chunks(MAX_CONCURRENT_CHANGES) {
        let results = make_concurrently(store, chunk.iter().cloned()).await;
        for (change, result) in chunk.iter().zip(results) {
            result.map_err(|error| import_error(error, Some(change)))?;
            summary.bindings += 1;
        }
    }
    Ok(summary)
}

/// Makes changes concurrently. Returns their results in the same order.
async fn make_concurrently<S: Store>(
    store: &Arc<S>,
    changes: impl Iterator<Item = Change>,
) -> Vec<Result<Option<ContextId>, ChangeError>> {
    let spawn = |change| {
        let store = Arc::clone(store);
        tokio::spawn(async move { store.change(change).await })
    };
    let tasks: Vec<_> = changes.map(spawn).collect();
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        results.push(task.await.unwrap_or_else(|error| Err(StoreError::broken(error).into())));
    }
    results
}

#[cold]
fn import_error(error: ChangeError, change: Option<&Change>) -> ImportError {
    match (error, change) {
        (ChangeError::Store(error), _) => error.into(),
        (ChangeError::Refused(Refusal::AlreadyBound), Some(Change::Bind { key, .. })) => {
            ImportError::AlreadyBound(key.clone())
        }
        (ChangeError::Refused(refusal), Some(Change::Bind { key, .. })) => {
            ImportError::Refused { key: key.clone(), refusal }
        }
        (ChangeError::Refused(refusal), _) => {
            StoreError::broken(format_args!("it rejected the creation of a context: {refusal:?}")).into()
        }
    }
}

struct Log {
    /// The bindings of each context, by the context key: the end of the context's object key ([`key_end`]).
    contexts: HashMap<Vec<u8>, HashMap<Key, LoggedBinding>>,
}

struct LoggedBinding {
    binding_type: BindingType,
    /// The CDR encapsulation of the IOR, or no bytes for a nil reference.
    object: Bytes,
    /// The end of the object key. For a context of omniNames, this is its key in [`Log::contexts`].
    context_key: Option<Vec<u8>>,
}

impl Log {
    const ROOT: &'static [u8] = b"NameService";

    fn read(file: &[u8]) -> Result<Self, ImportError> {
        let mut log = Self { contexts: HashMap::new() };
        for (number, line) in file.split(|byte| *byte == b'\n').enumerate() {
            let line = match std::str::from_utf8(line) {
                Ok(line) => line.to_owned(),
                Err(_) => line.iter().map(|byte| char::from(*byte)).collect(),
            };
            log.apply_line(&line).map_err(|reason| ImportError::Line { line: number + 1, reason })?;
        }
        match log.contexts.contains_key(Self::ROOT) {
            true => Ok(log),
            false => Err(ImportError::Line {
                line: 1,
                reason: "no line of the text creates the context `NameService`",
            }),
        }
    }

    fn apply_line(&mut self, line: &str) -> Result<(), &'static str> {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        match command {
            // The address of omniNames and the common prefix of its object keys are not needed.
            "port" | "persistent" | "" => {}
            "create" => {
                let key = hex_bytes(rest)
                    .ok_or("`create` must be followed by the key of a context in hexadecimal digits")?;
                self.contexts.entry(key).or_default();
            }
            "destroy" => {
                let context =
                    context_key(rest).ok_or("`destroy` must be followed by the IOR of a context")?;
                // After an error, omniNames may log the destruction of a context twice.
                self.contexts.remove(&context);
            }
            "bind" => {
                let fields = split_fields(rest)?;
                let [context, id, kind, type_name, object] = fields.as_slice() else {
                    return Err("`bind` must be followed by a context, an id, a kind, a type and an IOR");
                };
                let binding_type = match type_name.as_str() {
                    "nobject" => BindingType::Nobject,
                    "ncontext" => BindingType::Ncontext,
                    _ => return Err("the type of a binding must be nobject or ncontext"),
                };
                let ior: Ior = object.parse().map_err(|_| "the reference of a binding must be an IOR")?;
                let context_key =
                    ior.iiop_profile().map(|profile| key_end(profile.object_key.as_slice()).to_vec());
                let object = if ior.is_nil() { Bytes::new() } else { ior.to_encapsulation() };
                let key = Self::key(id, kind)?;
                self.context(context)?.insert(key, LoggedBinding { binding_type, object, context_key });
            }
            "unbind" => {
                let fields = split_fields(rest)?;
                let [context, id, kind] = fields.as_slice() else {
                    return Err("`unbind` must be followed by a context, an id and a kind");
                };
                let key = Self::key(id, kind)?;
                self.context(context)?.remove(&key);
            }
            _ => return Err("the line must start with port, persistent, create, destroy, bind or unbind"),
        }
        Ok(())
    }

    fn key(id: &str, kind: &str) -> Result<Key, &'static str> {
        Key::new(&NameComponent::new(id, kind)).ok_or("the name is longer than 16 KiB, or contains a NUL")
    }

    fn context(&mut self, ior: &str) -> Result<&mut HashMap<Key, LoggedBinding>, &'static str> {
        let key = context_key(ior).ok_or("a context must be given by its IOR")?;
        self.contexts.get_mut(&key).ok_or("no earlier line creates the context")
    }
}

/// Returns the context key from the IOR of a context: the end of its object key, as in a `create` line.
fn context_key(text: &str) -> Option<Vec<u8>> {
    let ior: Ior = text.parse().ok()?;
    Some(key_end(ior.iiop_profile()?.object_key.as_slice()).to_vec())
}

/// Returns an object key without the prefix of persistent POAs: a byte FF, the name of the POA and a NUL.
fn key_end(key: &[u8]) -> &[u8] {
    match key {
        [0xFF, rest @ ..] => {
            rest.iter().position(|byte| *byte == 0).and_then(|nul| rest.get(nul + 1..)).unwrap_or(key)
        }
        _ => key,
    }
}

/// Decodes hexadecimal digits. Returns `None` if `digits` is empty, has odd length, or has other characters.
fn hex_bytes(digits: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        digits.trim().chars().map(|c| c.to_digit(16)?.try_into().ok()).collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    (!digits.is_empty() && pairs.remainder().is_empty())
        .then(|| pairs.map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
}

/// Splits a line at spaces. A backslash starts an escape sequence of C, or escapes another character.
fn split_fields(rest: &str) -> Result<Vec<String>, &'static str> {
    let mut fields = vec![String::new()];
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            ' ' => {
                fields.push(String::new());
                continue;
            }
            '\\' => match chars.next().ok_or("the line ends after a backslash")? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'v' => '\u{b}',
                'f' => '\u{c}',
                'b' => '\u{8}',
                'a' => '\u{7}',
                octal @ '0'..='7' => {
                    let digits: String = std::iter::once(octal).chain(chars.by_ref().take(2)).collect();
                    let byte = u8::from_str_radix(&digits, 8);
                    char::from(
                        byte.map_err(|_| "a backslash must be followed by three octal digits up to 377")?,
                    )
                }
                other => other,
            },
            other => other,
        };
        if let Some(field) = fields.last_mut() {
            field.push(c);
        }
    }
    Ok(fields)
}

impl fmt::Display for ImportSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} contexts, {} bindings", self.contexts, self.bindings)
    }
}
