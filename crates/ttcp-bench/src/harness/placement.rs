//! The places of servers and clients: on this machine, with a slow link between them, or servers on another
//! machine.

use std::path::Path;
use std::process::{Command, Stdio};

use super::peers::Failure;

/// The placeholder for the address at which servers listen and to which clients connect.
pub(crate) const HOST: &str = "{host}";

/// The placement of a measurement's processes.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    /// The address at which servers listen.
    pub(crate) host: String,
    /// The prefix of a server's command.
    server: Vec<String>,
    /// The prefix of a client's command.
    client: Vec<String>,
    /// The command that runs a shell line on the servers' machine, if that is another one.
    shell: Option<Vec<String>>,
}

impl Placement {
    /// Returns a placement with both on this machine, over its loopback device.
    pub(crate) fn loopback() -> Placement {
        Placement { host: "127.0.0.1".to_owned(), server: Vec::new(), client: Vec::new(), shell: None }
    }

    /// Returns a placement with servers at that address of this machine, where each side's commands have
    /// these prefixes.
    pub(crate) fn over_link(host: &str, server: Vec<String>, client: Vec<String>) -> Placement {
        Placement { host: host.to_owned(), server, client, shell: None }
    }

    /// Returns a placement with servers at that address of another machine, where `shell` runs a line that
    /// is its last argument.
    pub(crate) fn remote(host: &str, shell: Vec<String>) -> Placement {
        Placement { host: host.to_owned(), server: Vec::new(), client: Vec::new(), shell: Some(shell) }
    }

    /// Returns whether servers are processes of this machine, so that the system provides their processor
    /// time.
    pub(crate) fn is_local(&self) -> bool {
        self.shell.is_none()
    }

    /// Returns a server's command as it is started here; `dir` is the run's own directory.
    ///
    /// # Errors
    /// It cannot be quoted for a shell.
    pub(crate) fn server_command(&self, command: Vec<String>, dir: &Path) -> Result<Vec<String>, Failure> {
        let Some(shell) = &self.shell else { return Ok([self.server.clone(), command].concat()) };
        Ok(shell.iter().cloned().chain([guarded(&command, dir)?]).collect())
    }

    /// Returns a client's command as it is started here.
    pub(crate) fn client_command(&self, command: Vec<String>) -> Vec<String> {
        [self.client.clone(), command].concat()
    }

    /// Copies the files that a server wrote to its directory into the same directory here, where clients read
    /// references.
    ///
    /// # Errors
    /// They cannot be fetched.
    pub(crate) fn fetch(&self, dir: &Path) -> Result<(), Failure> {
        let Some((program, words)) = self.shell.as_deref().and_then(|shell| shell.split_first()) else {
            return Ok(());
        };
        let failed = |reason: String| Failure::Fetch { host: self.host.clone(), reason };
        let line = format!("cd {} && tar -cf - --exclude=./pid .", quoted([&*dir.to_string_lossy()])?);
        let output = Command::new(program)
            .args(words)
            .arg(line)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| failed(e.to_string()))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let unpack = || -> std::io::Result<bool> {
            let mut tar =
                Command::new("tar").arg("-xf").arg("-").arg("-C").arg(dir).stdin(Stdio::piped()).spawn()?;
            if let Some(mut stdin) = tar.stdin.take() {
                std::io::Write::write_all(&mut stdin, &output.stdout)?;
            }
            Ok(tar.wait()?.success())
        };
        match unpack() {
            Ok(true) => Ok(()),
            Ok(false) => Err(failed("tar does not unpack what came".to_owned())),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

/// Returns a shell line that runs a server in a directory that is created for it and removed afterwards. It
/// ends the server when stdin ends, because the shell's connection to another machine may be lost without a
/// signal.
fn guarded(command: &[String], dir: &Path) -> Result<String, Failure> {
    let (command, dir) = (quoted(command.iter().map(String::as_str))?, quoted([&*dir.to_string_lossy()])?);
    Ok(format!(
        "mkdir -p {dir} && exec 3<&0 && {{ (cat <&3; kill $(cat {dir}/pid); rm -rf {dir}) >/dev/null 2>&1 & }} && \
         sh -c 'echo $$ > \"$0\"/pid; exec \"$@\"' {dir} {command} <&3; status=$?; kill $! 2>/dev/null; rm -rf {dir}; exit $status"
    ))
}

fn quoted<'w>(words: impl IntoIterator<Item = &'w str>) -> Result<String, Failure> {
    shlex::try_join(words).map_err(|error| Failure::Fetch {
        host: "a shell".to_owned(),
        reason: format!("it cannot be told such words: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(String::from).collect()
    }

    #[test]
    fn commands_are_entered_by_their_sides() {
        let dir = Path::new("/d");
        let placement = Placement::over_link("198.18.0.2", words("in far"), words("in near"));
        assert_eq!(placement.server_command(words("srv -x"), dir).unwrap().join(" "), "in far srv -x");
        assert_eq!(placement.client_command(words("cli -y")).join(" "), "in near cli -y");
        assert_eq!(Placement::loopback().server_command(words("srv"), dir).unwrap(), ["srv"]);
        assert!(placement.is_local() && Placement::loopback().is_local());
    }

    #[test]
    fn a_server_elsewhere_has_a_directory_and_ends_with_stdin() {
        let here = tempfile::tempdir().unwrap();
        let dir = here.path().join("it's there");
        let placement = Placement::remote("127.0.0.1", words("sh -c"));
        let script = "echo \"$1\" > \"$2/x.ior\"; echo READY; cat; sleep 60";
        let server = ["sh", "-c", script, "srv", "IOR: a  b", &dir.to_string_lossy()].map(String::from);
        let command = placement.server_command(server.to_vec(), &dir).unwrap();
        assert!(!placement.is_local());
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
            .unwrap();
        assert_eq!(line, "READY\n");
        // Both machines are this one, so the fetched files are those that already exist.
        placement.fetch(&dir).unwrap();
        assert_eq!(std::fs::read_to_string(dir.join("x.ior")).unwrap(), "IOR: a  b\n");
        drop(child.stdin.take());
        assert!(!child.wait().unwrap().success(), "it was killed");
        for _ in 0..200 {
            if !dir.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("{} is left", dir.display());
    }

    #[test]
    fn a_machine_that_is_not_reached_is_named() {
        let placement = Placement::remote("10.0.0.9", words("false"));
        let error = placement.fetch(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.contains("10.0.0.9"), "{error}");
    }
}
