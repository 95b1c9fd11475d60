//! Reader of omniNames' data file: text with one line for each change, from the beginning or since its last
//! checkpoint.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use zorb::cos_naming::{BindingType, NameComponent};
use zorb::wire::Ior;

use crate::store::{Change, ChangeError, ContextId, Key, Over, Refused, Store, StoreError, Target};

/// The result of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// Contexts that were created. The root context does not count, because it exists already.
    pub contexts: usize,
    /// Bindings that were created.
    pub bindings: usize,
}

/// The reason why names of omniNames were not imported.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The text is not in omniNames' format. Nothing was changed.
    #[error("line {line}: {what}")]
    Line {
        /// The number of the line; the first is 1.
        line: usize,
        /// The error in it.
        what: &'static str,
    },
    /// A name of the root context is bound already. Names imported before it are in the store.
    #[error("`{0}` is bound already: import into a store without names, or unbind it first")]
    AlreadyBound(Key),
    /// The store refuses a name.
    #[error("the store refuses `{key}`: {refused:?}")]
    Refused {
        /// The name.
        key: Key,
        /// The reason.
        refused: Refused,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The number of changes that are made concurrently, so that they share disk synchronizations.
const TOGETHER: usize = 1000;

/// Imports the names of omniNames into a store. `file` is the contents of its data file,
/// `omninames-HOST.dat`, or of the log of older versions. Lines that are not in UTF-8 are read as ISO 8859-1,
/// omniNames' native code set.
///
/// The bindings of its root context become bindings of the root context here. Its other contexts become new
/// ones. Therefore, references to them that clients keep do not lead here: such clients have to resolve the
/// names again. Contexts that no name leads to are imported too.
///
/// omniNames must be stopped before, because its later changes would not be imported.
///
/// # Errors
/// [`ImportError::Line`] if the text is truncated or not in omniNames' format. Nothing is changed then.
pub async fn import_omninames<S: Store>(store: &Arc<S>, file: &[u8]) -> Result<Imported, ImportError> {
    let log = Log::read(file)?;
    let mut imported = Imported::default();
    let mut ids = HashMap::from([(Log::ROOT, ContextId::ROOT)]);
    let others: Vec<&[u8]> = log.contexts.keys().map(Vec::as_slice).filter(|key| *key != Log::ROOT).collect();
    for some in others.chunks(TOGETHER) {
        let made = together(store, some.iter().map(|_| Change::NewContext)).await;
        for (key, made) in some.iter().zip(made) {
            if let Some(id) = made.map_err(|error| failed(error, None))? {
                ids.insert(*key, id);
                imported.contexts += 1;
            }
        }
    }
    let mut changes = Vec::new();
    for (context, bindings) in &log.contexts {
        let Some(&context) = ids.get(context.as_slice()) else { continue };
        for (key, bound) in bindings {
            let own = bound.key.as_deref().and_then(|key| ids.get(key));
            let target = match (bound.binding_type, own) {
                (BindingType::Nobject, _) => Target::Object(bound.object.clone()),
                (BindingType::Ncontext, Some(id)) => Target::Context(*id),
                (BindingType::Ncontext, None) => Target::Foreign(bound.object.clone()),
            };
            changes.push(Change::Bind { context, key: key.clone(), target, over: Over::Nothing });
        }
    }
    for some in changes.chunks(TOGETHER) {
        let made = together(store, some.iter().cloned()).await;
        for (change, made) in some.iter().zip(made) {
            made.map_err(|error| failed(error, Some(change)))?;
            imported.bindings += 1;
        }
    }
    Ok(imported)
}

/// Starts all changes before waiting for the first.
async fn together<S: Store>(
    store: &Arc<S>,
    changes: impl Iterator<Item = Change>,
) -> Vec<Result<Option<ContextId>, ChangeError>> {
    let ask = |change| {
        let store = Arc::clone(store);
        tokio::spawn(async move { store.change(change).await })
    };
    let asked: Vec<_> = changes.map(ask).collect();
    let mut made = Vec::with_capacity(asked.len());
    for one in asked {
        made.push(one.await.unwrap_or_else(|error| Err(StoreError::new(error).into())));
    }
    made
}

#[cold]
fn failed(error: ChangeError, change: Option<&Change>) -> ImportError {
    match (error, change) {
        (ChangeError::Store(error), _) => error.into(),
        (ChangeError::Refused(Refused::AlreadyBound), Some(Change::Bind { key, .. })) => {
            ImportError::AlreadyBound(key.clone())
        }
        (ChangeError::Refused(refused), Some(Change::Bind { key, .. })) => {
            ImportError::Refused { key: key.clone(), refused }
        }
        (ChangeError::Refused(refused), _) => StoreError::new(format_args!("it refuses {refused:?}")).into(),
    }
}

/// The names at the end of a log.
struct Log {
    /// The contexts by the bytes that identify them: the end of their object keys.
    contexts: HashMap<Vec<u8>, HashMap<Key, Bound>>,
}

struct Bound {
    binding_type: BindingType,
    object: Bytes,
    /// The identifying bytes of a context, if it can be one of the log's.
    key: Option<Vec<u8>>,
}

impl Log {
    const ROOT: &'static [u8] = b"NameService";

    fn read(file: &[u8]) -> Result<Self, ImportError> {
        let mut log = Self { contexts: HashMap::new() };
        for (number, line) in file.split(|octet| *octet == b'\n').enumerate() {
            let line = match std::str::from_utf8(line) {
                Ok(line) => line.to_owned(),
                Err(_) => line.iter().map(|octet| char::from(*octet)).collect(),
            };
            log.line(&line).map_err(|what| ImportError::Line { line: number + 1, what })?;
        }
        match log.contexts.contains_key(Self::ROOT) {
            true => Ok(log),
            false => Err(ImportError::Line {
                line: 1,
                what: "no line of the text creates the context `NameService`",
            }),
        }
    }

    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            // Its address and the start of its keys, which the keys themselves contain.
            "port" | "persistent" | "" => {}
            "create" => {
                let key = octets(rest).ok_or("a context is created by the hexadecimal digits of its key")?;
                self.contexts.entry(key).or_default();
            }
            "destroy" => {
                let context = context_of(rest).ok_or("a context is destroyed by its IOR")?;
                // If an error occurred meanwhile, a context is destroyed twice.
                self.contexts.remove(&context);
            }
            "bind" => {
                let fields = fields(rest)?;
                let [context, id, kind, of, object] = fields.as_slice() else {
                    return Err("a binding has a context, id, kind, type and IOR");
                };
                let binding_type = match of.as_str() {
                    "nobject" => BindingType::Nobject,
                    "ncontext" => BindingType::Ncontext,
                    _ => return Err("a binding is of type nobject or ncontext"),
                };
                let ior: Ior = object.parse().map_err(|_| "what is bound is an IOR")?;
                let nil = ior.is_nil();
                let key =
                    ior.iiop_profile().map(|profile| last_octets(profile.object_key.as_slice()).to_vec());
                let object = if nil { Bytes::new() } else { ior.to_encapsulation() };
                let at = Self::key(id, kind)?;
                self.context(context)?.insert(at, Bound { binding_type, object, key });
            }
            "unbind" => {
                let fields = fields(rest)?;
                let [context, id, kind] = fields.as_slice() else {
                    return Err("a name is unbound by a context, id and kind");
                };
                let at = Self::key(id, kind)?;
                self.context(context)?.remove(&at);
            }
            _ => return Err("omniNames writes port, persistent, create, destroy, bind and unbind"),
        }
        Ok(())
    }

    fn key(id: &str, kind: &str) -> Result<Key, &'static str> {
        Key::new(&NameComponent::new(id, kind)).ok_or("the name is longer than 16 KiB, or has a NUL")
    }

    fn context(&mut self, ior: &str) -> Result<&mut HashMap<Key, Bound>, &'static str> {
        let key = context_of(ior).ok_or("a context is named by its IOR")?;
        self.contexts.get_mut(&key).ok_or("no line before creates the context")
    }
}

/// Returns the identifying bytes, as in `create`, of a context's IOR.
fn context_of(text: &str) -> Option<Vec<u8>> {
    let ior: Ior = text.parse().ok()?;
    Some(last_octets(ior.iiop_profile()?.object_key.as_slice()).to_vec())
}

/// Returns the identifying bytes of an object key. They follow the name of a persistent POA, between bytes
/// `FF` and NUL. The root context has a plain key.
fn last_octets(key: &[u8]) -> &[u8] {
    match key {
        [0xFF, rest @ ..] => {
            rest.iter().position(|octet| *octet == 0).and_then(|at| rest.get(at + 1..)).unwrap_or(key)
        }
        _ => key,
    }
}

fn octets(digits: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        digits.trim().chars().map(|c| c.to_digit(16)?.try_into().ok()).collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    (!digits.is_empty() && pairs.remainder().is_empty())
        .then(|| pairs.map(|pair| pair.iter().fold(0, |octet, digit| octet << 4 | digit)).collect())
}

/// Splits the fields at spaces. `\` escapes a space, itself, and white space as in C.
fn fields(rest: &str) -> Result<Vec<String>, &'static str> {
    let mut fields = vec![String::new()];
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            ' ' => {
                fields.push(String::new());
                continue;
            }
            '\\' => match chars.next().ok_or("the line ends behind a backslash")? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'v' => '\u{b}',
                'f' => '\u{c}',
                'b' => '\u{8}',
                'a' => '\u{7}',
                octal @ '0'..='7' => {
                    let digits: String = std::iter::once(octal).chain(chars.by_ref().take(2)).collect();
                    let octet = u8::from_str_radix(&digits, 8);
                    char::from(octet.map_err(|_| "behind a backslash stand three octal digits")?)
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

impl fmt::Display for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} contexts, {} bindings", self.contexts, self.bindings)
    }
}
