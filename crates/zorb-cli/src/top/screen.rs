//! The display of `zorb top` on a terminal. The terminal is restored even after a signal or panic.

use std::io::{self, Write};
use std::sync::Once;
use std::time::Duration;

use anstream::ColorChoice;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::{cursor, queue, style, terminal};
use giop_codec::OneLine;
use tokio::sync::mpsc;

use super::fetch::Endpoint;
use super::view::{Line, LineKind, Status, View};
use crate::client::termination_signal;

/// The interval at which the thread that reads keys checks whether the display has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(super) async fn show(endpoint: &Endpoint, first: Status, interval: Duration) -> anyhow::Result<()> {
    // Signals are caught before the terminal is changed, so that it is restored after a signal.
    let signal = termination_signal()?;
    tokio::pin!(signal);
    let mut screen = Screen::enter()?;
    let (sender, mut events) = mpsc::channel(16);
    std::thread::spawn(move || {
        while !sender.is_closed() {
            match event::poll(POLL_INTERVAL)
                .and_then(|has_event| if has_event { event::read().map(Some) } else { Ok(None) })
            {
                Ok(Some(event)) if sender.blocking_send(Ok(event)).is_err() => return,
                Ok(_) => {}
                Err(error) => {
                    let _ = sender.blocking_send(Err(error));
                    return;
                }
            }
        }
    });
    let (mut last, mut view) = (Some(first.clone()), View::new(first, None));
    let mut error_text = None;
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks.tick().await;
    loop {
        screen.draw(&view.lines(&endpoint.address), error_text.as_deref())?;
        tokio::select! {
            () = &mut signal => return Ok(()),
            event = events.recv() => match event {
                Some(Ok(event)) if is_quit_key(&event) => return Ok(()),
                // After other events, such as a resize, the screen is only drawn again.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Ok(()),
            },
            status = async { ticks.tick().await; endpoint.fetch_status().await } => match status {
                Ok(status) => {
                    error_text = None;
                    view = View::new(status.clone(), last.as_ref());
                    last = Some(status);
                }
                // The display continues, because the endpoint may become available again.
                Err(error) => error_text = Some(format!("{error:#}")),
            },
        }
    }
}

fn is_quit_key(event: &Event) -> bool {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => match key.code {
            KeyCode::Char('q' | 'Q') | KeyCode::Esc => true,
            KeyCode::Char('c') => key.modifiers.contains(KeyModifiers::CONTROL),
            _ => false,
        },
        _ => false,
    }
}

/// The terminal in raw mode, with an alternate screen. Dropping this value restores the terminal.
struct Screen {
    has_colours: bool,
}

impl Screen {
    fn enter() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let previous_hook = std::panic::take_hook();
            // A panic message must be printed after the terminal is restored.
            std::panic::set_hook(Box::new(move |panic| {
                restore_terminal();
                previous_hook(panic);
            }));
        });
        terminal::enable_raw_mode()?;
        // If a call below fails, dropping `screen` restores the terminal.
        let screen = Self { has_colours: anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never };
        queue!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        io::stdout().flush()?;
        Ok(screen)
    }

    fn draw(&mut self, lines: &[Line], error_text: Option<&str>) -> io::Result<()> {
        let (width, height) = terminal::size()?;
        let mut out = io::stdout().lock();
        let max_lines = usize::from(height).saturating_sub(1);
        queue!(out, terminal::BeginSynchronizedUpdate, terminal::Clear(terminal::ClearType::All))?;
        for (row, line) in (0..).zip(lines.iter().take(max_lines)) {
            self.draw_line(&mut out, row, line, width)?;
        }
        let last = match error_text {
            Some(text) => Line { text: text.to_owned(), kind: LineKind::Bad },
            None if lines.len() > max_lines => Line {
                text: format!("{} more lines   q: quit", lines.len() - max_lines),
                kind: LineKind::Plain,
            },
            None => Line { text: "q: quit".to_owned(), kind: LineKind::Plain },
        };
        self.draw_line(&mut out, height.saturating_sub(1), &last, width)?;
        queue!(out, terminal::EndSynchronizedUpdate)?;
        out.flush()
    }

    fn draw_line(&self, out: &mut impl Write, row: u16, line: &Line, width: u16) -> io::Result<()> {
        // `OneLine` escapes line breaks and other control characters.
        let text: String = OneLine::new(&line.text).to_string().chars().take(width.into()).collect();
        queue!(out, cursor::MoveTo(0, row))?;
        if !self.has_colours {
            return queue!(out, style::Print(text));
        }
        match line.kind {
            LineKind::Plain => queue!(out, style::Print(text)),
            LineKind::Head => queue!(
                out,
                style::SetAttribute(style::Attribute::Bold),
                style::Print(text),
                style::SetAttribute(style::Attribute::Reset)
            ),
            LineKind::Bad => queue!(
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
        restore_terminal();
    }
}

fn restore_terminal() {
    let _ = queue!(io::stdout(), terminal::LeaveAlternateScreen, cursor::Show);
    let _ = io::stdout().flush();
    let _ = terminal::disable_raw_mode();
}
