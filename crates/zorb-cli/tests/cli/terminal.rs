//! The program in a terminal: colours, and Ctrl-C.

use std::io::{Read, Write};

use pty_process::blocking::{Command, Pty, open};

use rustix::termios::LocalModes;

use super::{OMNIORB, beside, zorb};

/// The program in a terminal of its own.
pub(crate) struct Terminal {
    pty: Pty,
    child: std::process::Child,
}

impl Terminal {
    pub(crate) fn start(args: &[&str], variables: &[(&str, &str)]) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(pty_process::Size::new(24, 200)).unwrap();
        let command = Command::new(env!("CARGO_BIN_EXE_zorb")).args(args);
        let command = command.env("TERM", "xterm").env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        // Logs of CI are coloured whatever the terminal.
        let command = command.env_remove("CI");
        let child = command.envs(variables.iter().copied()).spawn(pts).unwrap();
        Self { pty, child }
    }

    /// What is shown until that text is, or to the end.
    pub(crate) fn until(&mut self, text: &str) -> String {
        let (mut shown, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = self.pty.read(&mut buffer) {
            shown.extend_from_slice(&buffer[..count]);
            if !text.is_empty() && String::from_utf8_lossy(&shown).contains(text) {
                break;
            }
        }
        String::from_utf8(shown).unwrap()
    }

    /// As a keyboard sends it.
    pub(crate) fn press(&mut self, keys: &str) {
        self.pty.write_all(keys.as_bytes()).unwrap();
    }

    /// Ctrl-C: the terminal makes a signal of it.
    pub(crate) fn interrupt(&mut self) {
        self.press("\x03");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn text_is_coloured_in_a_terminal_that_wants_it() {
    let dump = ["ior", "dump", OMNIORB];
    let plain = zorb(&dump, "").out;
    assert!(!plain.contains('\x1b'), "a pipe takes no colours");
    let shown = |args: &[&str], variables: &[(&str, &str)]| {
        let mut terminal = Terminal::start(args, variables);
        let text = terminal.until("").replace("\r\n", "\n");
        (terminal.child.wait().unwrap().code(), text)
    };
    let (code, coloured) = shown(&dump, &[]);
    assert!(code == Some(0) && coloured.contains("\x1b["), "{coloured}");
    let bare = |text: &str| anstream::adapter::strip_str(text).to_string();
    assert_eq!(bare(&coloured), plain, "the same but for its colours");
    assert_eq!(shown(&dump, &[("NO_COLOR", "1")]), (Some(0), plain.clone()));
    assert_eq!(shown(&[&dump[..], &["--color", "never"]].concat(), &[]), (Some(0), plain.clone()));
    assert_eq!(shown(&dump, &[("TERM", "dumb")]), (Some(0), plain));
    assert!(zorb(&[&dump[..], &["--color", "always"]].concat(), "").out.contains("\x1b["));
    // Errors too, and their codes.
    let (code, wrong) = shown(&["ior", "dump", "nonsense"], &[]);
    assert!(code == Some(3) && wrong.contains("\x1b["), "{wrong}");
    let (code, wrong) = shown(&["ior", "dump", "nonsense"], &[("NO_COLOR", "1")]);
    assert!(code == Some(3) && !wrong.contains('\x1b'), "{wrong}");
}

#[test]
fn ctrl_c_ends_what_serves_in_order() {
    beside(|account, _| {
        let idl = super::bank();
        let idl = idl.path().to_str().unwrap();
        let here = "iiop://127.0.0.1:0";
        let sniff = ["sniff", "--listen", "127.0.0.1:0", "--to", account];
        let serve = ["serve", "--idl", idl, "--object", "A=Bank::Account", "--listen", here];
        for (args, ready) in [
            (&sniff[..], "IOR:"),
            (&serve, "IDL:Bank/Account:1.0"),
            (&["names", "serve", "--memory", "--listen", here], "Ctrl-C"),
        ] {
            for by_keyboard in [true, false] {
                let mut terminal = Terminal::start(args, &[]);
                assert!(terminal.until(ready).contains(ready), "{args:?}");
                if by_keyboard {
                    // The terminal makes a signal of it.
                    terminal.interrupt();
                } else {
                    // As a service manager ends it.
                    let id = rustix::process::Pid::from_child(&terminal.child);
                    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
                }
                let rest = terminal.until("");
                assert_eq!(terminal.child.wait().unwrap().code(), Some(0), "{args:?}: {rest}");
            }
        }
    });
}

#[test]
fn a_password_is_asked_for_and_not_shown() {
    super::login::beside_a_vault(|vault, _, folder| {
        let idl = folder.join("idl");
        let args = ["call", vault, "look", "--idl", idl.to_str().unwrap(), "--timeout", "1000s"];
        let args = [&args[..], &["--user", "ann", "--plaintext-password"]].concat();
        let mut terminal = Terminal::start(&args, &[]);
        let shown = terminal.until("password of ann: ");
        assert!(shown.contains("password of ann: "), "{shown}");
        // The prompt comes before the terminal stops to show what is typed.
        while rustix::termios::tcgetattr(&terminal.pty).unwrap().local_modes.contains(LocalModes::ECHO) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        terminal.pty.write_all(b"sesame\r").unwrap();
        let rest = terminal.until("");
        assert_eq!(terminal.child.wait().unwrap().code(), Some(0), "{rest}");
        assert!(rest.contains("\"ann\"") && !rest.contains("sesame"), "{rest}");
    });
}

#[test]
fn a_load_shows_how_far_it_is() {
    beside(|account, _| {
        let idl = super::bank();
        let args = [
            "load",
            account,
            "owner",
            "--idl",
            idl.path().to_str().unwrap(),
            "--duration",
            "500ms",
            "--timeout",
            "1000s",
        ];
        let mut terminal = Terminal::start(&args, &[]);
        let shown = terminal.until("calls/s");
        assert!(shown.contains("% "), "{shown}");
        let rest = terminal.until("");
        assert_eq!(terminal.child.wait().unwrap().code(), Some(0), "{rest}");
        assert!(rest.contains("p99.9"), "{rest}");
    });
}
