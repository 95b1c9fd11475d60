//! Where servers and clients run. Clients run on this machine. Servers run on this machine too, and are
//! reached over loopback or a slower link, or they run on another machine.

use std::path::Path;
use std::process::{Command, Stdio};

use super::peers::Failure;

/// The placeholder for the address at which servers listen and to which clients connect.
pub(crate) const HOST_PLACEHOLDER: &str = "{host}";

#[derive(Debug, Clone)]
pub(crate) struct Placement {
    pub(crate) host: String,
    server_prefix: Vec<String>,
    client_prefix: Vec<String>,
    /// The command that runs a shell line on the servers' machine, if this is another machine.
    remote_shell: Option<Vec<String>>,
}

impl Placement {
    pub(crate) fn loopback() -> Placement {
        Placement::over_link("127.0.0.1", Vec::new(), Vec::new())
    }

    /// Returns the placement of servers and clients on this machine, with the given prefixes of their
    /// commands. Servers listen at the address `host`.
    pub(crate) fn over_link(host: &str, server_prefix: Vec<String>, client_prefix: Vec<String>) -> Placement {
        Placement { host: host.to_owned(), server_prefix, client_prefix, remote_shell: None }
    }

    /// Returns the placement of servers on another machine with the address `host`. The command `shell` runs
    /// the shell line in its last argument on the other machine.
    pub(crate) fn remote(host: &str, shell: Vec<String>) -> Placement {
        Placement { remote_shell: Some(shell), ..Placement::over_link(host, Vec::new(), Vec::new()) }
    }

    /// Returns whether servers run on this machine, so that their processor time can be measured.
    pub(crate) fn is_local(&self) -> bool {
        self.remote_shell.is_none()
    }

    /// Returns the command by which this machine starts a server. `dir` is the directory of the run.
    pub(crate) fn server_command(&self, command: Vec<String>, dir: &Path) -> Result<Vec<String>, Failure> {
        let Some(shell) = &self.remote_shell else {
            return Ok([self.server_prefix.clone(), command].concat());
        };
        Ok(shell.iter().cloned().chain([self.remote_line(&command, dir)?]).collect())
    }

    pub(crate) fn client_command(&self, command: Vec<String>) -> Vec<String> {
        [self.client_prefix.clone(), command].concat()
    }

    /// Returns a shell line that creates `dir`, runs a server, and then removes `dir`. It kills the server
    /// when stdin is closed, because the connection to the machine may be lost without a signal.
    fn remote_line(&self, command: &[String], dir: &Path) -> Result<String, Failure> {
        let command = self.quote(command.iter().map(String::as_str))?;
        let dir = self.quote([&*dir.to_string_lossy()])?;
        Ok(format!(
            "mkdir -p {dir} && exec 3<&0 && {{ (cat <&3; kill $(cat {dir}/pid); rm -rf {dir}) >/dev/null 2>&1 & }} && \
             sh -c 'echo $$ > \"$0\"/pid; exec \"$@\"' {dir} {command} <&3; status=$?; kill $! 2>/dev/null; rm -rf {dir}; exit $status"
        ))
    }

    fn quote<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> Result<String, Failure> {
        let reason = |error| format!("the command cannot be quoted for a shell: {error}");
        shlex::try_join(words)
            .map_err(|error| Failure::Fetch { host: self.host.clone(), reason: reason(error) })
    }

    /// Copies the files that a server wrote into its directory on another machine to the same directory on
    /// this machine, because clients read references there. Does nothing if servers run on this machine.
    pub(crate) fn fetch_files(&self, dir: &Path) -> Result<(), Failure> {
        let Some((program, words)) = self.remote_shell.as_deref().and_then(|shell| shell.split_first())
        else {
            return Ok(());
        };
        let failed = |reason: String| Failure::Fetch { host: self.host.clone(), reason };
        let line = format!("cd {} && tar -cf - --exclude=./pid .", self.quote([&*dir.to_string_lossy()])?);
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
            Ok(false) => Err(failed("tar failed to unpack the received files".to_owned())),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(String::from).collect()
    }

    #[test]
    fn commands_get_the_prefix_of_their_side() {
        let dir = Path::new("/d");
        let placement = Placement::over_link("198.18.0.2", words("in far"), words("in near"));
        assert_eq!(placement.server_command(words("srv -x"), dir).unwrap().join(" "), "in far srv -x");
        assert_eq!(placement.client_command(words("cli -y")).join(" "), "in near cli -y");
        assert_eq!(Placement::loopback().server_command(words("srv"), dir).unwrap(), ["srv"]);
        assert!(placement.is_local() && Placement::loopback().is_local());
    }

    #[test]
    fn a_remote_server_has_a_directory_and_is_killed_when_stdin_is_closed() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("it's quoted");
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
        // Here, the other machine is this machine. Therefore the fetched files already exist.
        placement.fetch_files(&dir).unwrap();
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
    fn a_fetch_error_contains_the_host() {
        let placement = Placement::remote("10.0.0.9", words("false"));
        let error = placement.fetch_files(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.contains("10.0.0.9"), "{error}");
    }
}
