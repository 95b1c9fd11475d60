//! The terminal. It is restored in any case when the command ends.

use std::io::{self, Write};
use std::sync::Once;
use std::time::Duration;

use anstream::ColorChoice;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::{cursor, queue, style, terminal};
use giop_codec::OneLine;
use tokio::sync::mpsc;

use super::fetch::Endpoint;
use super::view::{Kind, Line, Status, View};
use crate::client::ended;

/// How often the thread that reads keys checks whether it is still needed.
const LOOK: Duration = Duration::from_millis(100);

/// Shows an ORB until the user presses q, or a signal ends the process.
///
/// # Errors
/// The terminal cannot be read or written.
pub(super) async fn show(endpoint: &Endpoint, first: Status, interval: Duration) -> anyhow::Result<()> {
    // Signals must be caught before the terminal is changed, so that it is restored.
    let over = ended()?;
    tokio::pin!(over);
    let mut screen = Screen::take()?;
    let (send, mut events) = mpsc::channel(16);
    std::thread::spawn(move || {
        while !send.is_closed() {
            match event::poll(LOOK).and_then(|there| if there { event::read().map(Some) } else { Ok(None) }) {
                Ok(Some(event)) if send.blocking_send(Ok(event)).is_err() => return,
                Ok(_) => {}
                Err(error) => {
                    let _ = send.blocking_send(Err(error));
                    return;
                }
            }
        }
    });
    let (mut last, mut view) = (Some(first.clone()), View::of(first, None));
    let mut trouble = None;
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks.tick().await;
    loop {
        screen.draw(&view.lines(endpoint.address()), trouble.as_deref())?;
        tokio::select! {
            () = &mut over => return Ok(()),
            event = events.recv() => match event {
                Some(Ok(event)) if ends(&event) => return Ok(()),
                // After a resize, the screen is drawn again.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Ok(()),
            },
            status = async { ticks.tick().await; endpoint.status().await } => match status {
                Ok(status) => {
                    trouble = None;
                    view = View::of(status.clone(), last.as_ref());
                    last = Some(status);
                }
                // The endpoint may become available again.
                Err(error) => trouble = Some(format!("{error:#}")),
            },
        }
    }
}

fn ends(event: &Event) -> bool {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => match key.code {
            KeyCode::Char('q' | 'Q') | KeyCode::Esc => true,
            KeyCode::Char('c') => key.modifiers.contains(KeyModifiers::CONTROL),
            _ => false,
        },
        _ => false,
    }
}

/// The terminal while this command uses it.
struct Screen {
    coloured: bool,
}

impl Screen {
    fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            // The message of a panic must be printed on the restored terminal.
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                before(panic);
            }));
        });
        terminal::enable_raw_mode()?;
        // From now on, dropping `screen` restores the terminal.
        let screen = Self { coloured: anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never };
        queue!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        io::stdout().flush()?;
        Ok(screen)
    }

    fn draw(&mut self, lines: &[Line], trouble: Option<&str>) -> io::Result<()> {
        let (width, height) = terminal::size()?;
        let mut out = io::stdout().lock();
        let room = usize::from(height).saturating_sub(1);
        queue!(out, terminal::BeginSynchronizedUpdate, terminal::Clear(terminal::ClearType::All))?;
        for (row, line) in (0..).zip(lines.iter().take(room)) {
            self.line(&mut out, row, line, width)?;
        }
        let last = match trouble {
            Some(trouble) => Line { text: trouble.to_owned(), kind: Kind::Bad },
            None if lines.len() > room => {
                Line { text: format!("{} more   q ends", lines.len() - room), kind: Kind::Plain }
            }
            None => Line { text: "q ends".to_owned(), kind: Kind::Plain },
        };
        self.line(&mut out, height.saturating_sub(1), &last, width)?;
        queue!(out, terminal::EndSynchronizedUpdate)?;
        out.flush()
    }

    fn line(&self, out: &mut impl Write, row: u16, line: &Line, width: u16) -> io::Result<()> {
        // Line breaks are escaped, so that a line stays one line.
        let text: String = OneLine::new(&line.text).to_string().chars().take(width.into()).collect();
        queue!(out, cursor::MoveTo(0, row))?;
        if !self.coloured {
            return queue!(out, style::Print(text));
        }
        match line.kind {
            Kind::Plain => queue!(out, style::Print(text)),
            Kind::Head => queue!(
                out,
                style::SetAttribute(style::Attribute::Bold),
                style::Print(text),
                style::SetAttribute(style::Attribute::Reset)
            ),
            Kind::Bad => queue!(
                out,
                style::SetForegroundColor(style::Color::Red),
                style::Print(text),
                style::ResetColor
            ),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    let _ = queue!(io::stdout(), terminal::LeaveAlternateScreen, cursor::Show);
    let _ = io::stdout().flush();
    let _ = terminal::disable_raw_mode();
}
