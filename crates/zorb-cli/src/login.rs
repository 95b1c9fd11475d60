//! `--user`: the login for calls (CSIv2).

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use zorb::csi::Credentials;

const MAX_PASSWORD_BYTES: u64 = 4096;

/// Options of commands that call objects, for servers that require a login.
#[derive(Debug, Args)]
#[command(next_help_heading = "Login")]
pub(crate) struct LoginOptions {
    /// The user, as NAME or NAME@REALM; the password is read from --password-file, or from the terminal
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// A file whose first line is the password
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// Also send the password over connections without TLS, where it can be intercepted
    #[arg(long, requires = "user")]
    plaintext_password: bool,
}

impl LoginOptions {
    pub(crate) fn credentials(&self) -> anyhow::Result<Option<Credentials>> {
        let Some(user) = &self.user else { return Ok(None) };
        let password = match &self.password_file {
            Some(path) => first_line(path)?,
            None => rpassword::prompt_password(format!("password of {user}: "))
                .context("cannot read the password from the terminal; use --password-file FILE")?,
        };
        // The login is always sent, because a reference such as a corbaloc: URL does not request it.
        let credentials = Credentials::login(user, password).always_send();
        Ok(Some(match self.plaintext_password {
            true => credentials.allow_plaintext_passwords(),
            false => credentials,
        }))
    }
}

fn first_line(path: &Path) -> anyhow::Result<String> {
    let name = path.display();
    let mut text = String::new();
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    file.take(MAX_PASSWORD_BYTES + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {name}"))?;
    let password = text.lines().next().unwrap_or_default();
    ensure!(!password.is_empty(), "{name} does not contain a password: its first line is empty");
    ensure!(
        password.len() as u64 <= MAX_PASSWORD_BYTES,
        "the first line of {name} has more than {MAX_PASSWORD_BYTES} bytes"
    );
    Ok(password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_the_first_line_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        for (content, password) in [("sesame\n", "sesame"), ("se same\r\nmore", "se same"), ("é", "é")] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(first_line(&path).unwrap(), password);
        }
        std::fs::write(&path, "\nsesame").unwrap();
        assert!(first_line(&path).unwrap_err().to_string().contains("its first line is empty"));
        std::fs::write(&path, "x".repeat(5000)).unwrap();
        assert!(first_line(&path).unwrap_err().to_string().contains("more than 4096 bytes"));
        assert!(first_line(Path::new("/does/not/exist")).is_err());
    }
}
