//! The recorded spans of a test.
//!
//! For the whole process, `tracing` caches for each callsite whether any subscriber is interested. With a
//! subscriber for each test, a callsite that is first reached while another test begins or ends could stay
//! disabled. Therefore the process has one subscriber, which checks the thread each time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, Once};

use tracing::Metadata;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// A span in its final or current state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) name: &'static str,
    pub(crate) id: u64,
    pub(crate) parent: Option<u64>,
    pub(crate) fields: HashMap<&'static str, String>,
    pub(crate) ended: bool,
}

impl Seen {
    #[track_caller]
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map(String::as_str).unwrap_or_default()
    }
}

/// All spans of this thread since [`Spans::watch`], in order.
#[derive(Clone, Default)]
pub(crate) struct Spans(Arc<Mutex<Vec<Seen>>>);

thread_local! {
    /// The record of this thread's spans; without it spans are disabled here.
    static WATCHING: RefCell<Option<Spans>> = const { RefCell::new(None) };
}

/// Disables the spans of its thread when it is dropped.
pub(crate) struct Watching;

impl Drop for Watching {
    fn drop(&mut self) {
        WATCHING.set(None);
    }
}

impl Spans {
    /// Enables and records the spans of this thread.
    pub(crate) fn watch() -> (Self, Watching) {
        static SUBSCRIBER: Once = Once::new();
        SUBSCRIBER.call_once(|| {
            tracing::subscriber::set_global_default(Registry::default().with(OfThread)).unwrap();
        });
        let spans = Self::default();
        WATCHING.set(Some(spans.clone()));
        (spans, Watching)
    }

    pub(crate) fn all(&self) -> Vec<Seen> {
        self.0.lock().unwrap().clone()
    }

    /// Returns the spans of that name.
    pub(crate) fn named(&self, name: &str) -> Vec<Seen> {
        self.all().into_iter().filter(|span| span.name == name).collect()
    }

    /// Returns the only span of that name.
    #[track_caller]
    pub(crate) fn one(&self, name: &str) -> Seen {
        let mut found = self.named(name);
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        found.remove(0)
    }

    fn change(&self, id: &Id, change: impl FnOnce(&mut Seen)) {
        let mut all = self.0.lock().unwrap();
        // Ids are reused.
        if let Some(span) = all.iter_mut().rfind(|span| span.id == id.into_u64()) {
            change(span);
        }
    }
}

/// Records spans for the threads that enabled them.
struct OfThread;

impl OfThread {
    fn with(keep: impl FnOnce(&Spans)) {
        WATCHING.with_borrow(|spans| {
            if let Some(spans) = spans {
                keep(spans);
            }
        });
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for OfThread {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>, _: Context<'_, S>) -> bool {
        WATCHING.with_borrow(Option::is_some)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut seen = Seen { name: attributes.metadata().name(), id: id.into_u64(), ..Seen::default() };
        seen.parent = context.span(id).and_then(|span| span.parent()).map(|span| span.id().into_u64());
        attributes.record(&mut seen);
        Self::with(|spans| spans.0.lock().unwrap().push(seen));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        Self::with(|spans| spans.change(id, |seen| values.record(seen)));
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        Self::with(|spans| spans.change(&id, |seen| seen.ended = true));
    }
}

impl Visit for Seen {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}
