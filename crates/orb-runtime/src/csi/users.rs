//! Users and their hashed passwords, read from a file.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use argon2::password_hash::rand_core::OsRng;
use argon2::password_hash::{
    self, Output, PasswordHash, PasswordHashString, PasswordHasher, Salt, SaltString,
};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use giop_codec::cdr::allocation_size;

use crate::csi::logins::{Authenticator, Login, LoginRefused};
use crate::transport::Peer;

/// Users and the hashes of their passwords (Argon2). A reload applies to all clones.
///
/// Each line is a user: the name, a colon, and the hash as a PHC string
/// (`$argon2id$v=19$m=19456,t=2,p=1$...`). Empty lines and lines that begin with `#` are ignored.
/// [`hash_entry`](Self::hash_entry) creates a line. The program `argon2` can create the hash.
#[derive(Clone)]
pub struct Users {
    shared: Arc<Shared>,
}

struct Shared {
    file: Option<PathBuf>,
    current: ArcSwap<HashesByUser>,
    epoch: AtomicU64,
}

type HashesByUser = HashMap<String, PasswordHashString>;

/// The reason why [`Users`] could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UsersError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A line is malformed. The error does not quote the line, because that may contain a password.
    #[error("{origin}:{line}: {reason}")]
    Line {
        /// The file, or `users` for users that are not read from a file.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// The fault in the line.
        reason: String,
    },
}

impl Users {
    /// Reads the users of a file.
    ///
    /// # Errors
    /// [`UsersError::Read`] if the file cannot be read, [`UsersError::Line`] if a line is malformed.
    pub fn file(path: impl Into<PathBuf>) -> Result<Self, UsersError> {
        let path = path.into();
        let table = read(&path)?;
        Ok(Self::new(Some(path), table))
    }

    /// Reads users from a text with the lines of a file.
    ///
    /// # Errors
    /// [`UsersError::Line`] if a line is malformed.
    pub fn text(lines: &str) -> Result<Self, UsersError> {
        Ok(Self::new(None, parse(lines, "users")?))
    }

    fn new(file: Option<PathBuf>, table: HashesByUser) -> Self {
        let shared = Shared { file, current: ArcSwap::from_pointee(table), epoch: AtomicU64::new(0) };
        Self { shared: Arc::new(shared) }
    }

    /// Reads the file again, if there is one. The logins of the next requests are then checked again.
    ///
    /// # Errors
    /// The same as for [`file`](Self::file). The users are then unchanged.
    pub fn reload(&self) -> Result<(), UsersError> {
        if let Some(path) = &self.shared.file {
            self.shared.current.store(Arc::new(read(path)?));
            self.shared.epoch.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    /// Returns a line for the file. The password is hashed with a random salt, by Argon2id with 19 MiB and
    /// two passes. This takes some tens of milliseconds, and so does each check of the password.
    ///
    /// # Errors
    /// [`UsersError::Line`] if the name is empty, contains a colon or line break, begins with `#`, or begins
    /// or ends with white space, or if the password is too long for Argon2.
    pub fn hash_entry(user: &str, password: &str) -> Result<String, UsersError> {
        let invalid_line = |reason: String| UsersError::Line { origin: "users".to_owned(), line: 1, reason };
        if user.is_empty() || user.contains([':', '\n', '\r']) || user.trim() != user || user.starts_with('#')
        {
            return Err(invalid_line(
                "a user name must not be empty, contain a colon or line break, begin with #, or begin or end with white space".to_owned(),
            ));
        }
        let salt = SaltString::generate(&mut OsRng);
        let hash = Argon2::default().hash_password(password.as_bytes(), &salt);
        Ok(format!("{user}:{}", hash.map_err(|error| invalid_line(error.to_string()))?))
    }
}

impl Authenticator for Users {
    fn check(&self, login: &Login<'_>, _: &Peer) -> Result<String, LoginRefused> {
        let current = self.shared.current.load();
        let found = current.get(login.user());
        // If the user does not exist, check the hash of another user, so that the duration does not reveal
        // which users exist.
        let hash = found.or_else(|| current.values().next());
        let is_correct = hash.is_some_and(|hash| {
            verify(login.password().as_bytes(), &hash.password_hash()).unwrap_or_default()
        });
        match found {
            Some(_) if is_correct => Ok(login.user().to_owned()),
            Some(_) => Err(LoginRefused::because("the password is wrong")),
            None => Err(LoginRefused::because("the user does not exist")),
        }
    }

    fn epoch(&self) -> u64 {
        self.shared.epoch.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users")
            .field("file", &self.shared.file)
            .field("users", &self.shared.current.load().len())
            .finish()
    }
}

/// Returns whether the hash is that of the password.
fn verify(password: &[u8], hash: &PasswordHash<'_>) -> password_hash::Result<bool> {
    let (Some(salt), Some(expected)) = (hash.salt, hash.hash) else { return Ok(false) };
    let algorithm = Algorithm::try_from(hash.algorithm)?;
    let version = hash.version.map(Version::try_from).transpose()?.unwrap_or_default();
    let params = Params::try_from(hash)?;
    let blocks = params.block_count();
    // Argon2 needs much working memory. The size is large enough that the allocator maps the memory
    // separately. Otherwise, the allocator would keep the memory for each thread.
    let size = allocation_size(blocks.saturating_mul(Block::SIZE));
    let mut memory = Vec::with_capacity(size / Block::SIZE);
    memory.resize(blocks, Block::new());
    let mut salt_bytes = [0; Salt::RECOMMENDED_LENGTH * 4];
    let salt = salt.decode_b64(&mut salt_bytes)?;
    let found = Output::init_with(expected.len(), |out| {
        let argon = Argon2::new(algorithm, version, params);
        Ok(argon.hash_password_into_with_memory(password, salt, out, &mut memory)?)
    })?;
    // `Output` compares in constant time.
    Ok(found == expected)
}

fn read(path: &Path) -> Result<HashesByUser, UsersError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| UsersError::Read { path: path.to_owned(), source })?;
    parse(&text, &path.display().to_string())
}

fn parse(text: &str, origin: &str) -> Result<HashesByUser, UsersError> {
    let mut table = HashesByUser::new();
    for (number, line) in (1..).zip(text.lines()) {
        let invalid_line = |reason: &str| {
            Err(UsersError::Line { origin: origin.to_owned(), line: number, reason: reason.to_owned() })
        };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((user, hash)) = line.split_once(':') else {
            return invalid_line("a line must consist of a user name, a colon and the hash of the password");
        };
        let is_argon2 = PasswordHash::new(hash)
            .is_ok_and(|hash| argon2::Algorithm::try_from(hash.algorithm).is_ok() && hash.hash.is_some());
        let (true, Ok(hash)) = (is_argon2, PasswordHashString::new(hash)) else {
            return invalid_line(
                "the text after the colon is not an Argon2 hash ($argon2id$v=19$m=19456,t=2,p=1$...); Users::hash_entry creates a valid line",
            );
        };
        if user.is_empty() {
            return invalid_line("the user name is missing before the colon");
        }
        if table.insert(user.to_owned(), hash).is_some() {
            return invalid_line("an earlier line has the same name");
        }
    }
    Ok(table)
}
