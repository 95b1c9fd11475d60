//! A subscriber that keeps what it is told of spans.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// A span as it was when it ended, or is now.
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

/// All spans of this thread since it was made, in their order.
#[derive(Clone, Default)]
pub(crate) struct Spans(Arc<Mutex<Vec<Seen>>>);

impl Spans {
    /// Begins to look on, on this thread.
    pub(crate) fn watch() -> (Self, DefaultGuard) {
        let spans = Self::default();
        (spans.clone(), tracing::subscriber::set_default(Registry::default().with(spans)))
    }

    pub(crate) fn all(&self) -> Vec<Seen> {
        self.0.lock().unwrap().clone()
    }

    /// The spans of that name.
    pub(crate) fn named(&self, name: &str) -> Vec<Seen> {
        self.all().into_iter().filter(|span| span.name == name).collect()
    }

    /// The only span of that name.
    #[track_caller]
    pub(crate) fn one(&self, name: &str) -> Seen {
        let mut found = self.named(name);
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        found.remove(0)
    }

    fn change(&self, id: &Id, change: impl FnOnce(&mut Seen)) {
        let mut all = self.0.lock().unwrap();
        // Ids are used again.
        if let Some(span) = all.iter_mut().rfind(|span| span.id == id.into_u64()) {
            change(span);
        }
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut seen = Seen { name: attributes.metadata().name(), id: id.into_u64(), ..Seen::default() };
        seen.parent = context.span(id).and_then(|span| span.parent()).map(|span| span.id().into_u64());
        attributes.record(&mut seen);
        self.0.lock().unwrap().push(seen);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        self.change(id, |seen| values.record(seen));
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        self.change(&id, |seen| seen.ended = true);
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
