// The part of the crates `opentelemetry` and `tracing-opentelemetry` that the example of
// docs/OBSERVABILITY.md uses, with the same signatures.

mod opentelemetry {
    #[derive(Clone)]
    pub struct Context(pub trace::SpanContext);
    impl Context {
        pub fn new() -> Self {
            Context(trace::SpanContext::new(
                trace::TraceId([1; 16]),
                trace::SpanId([2; 8]),
                trace::TraceFlags::SAMPLED,
                false,
                Default::default(),
            ))
        }
    }
    pub mod trace {
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct TraceId(pub [u8; 16]);
        impl TraceId {
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                TraceId(bytes)
            }
            pub const fn to_bytes(self) -> [u8; 16] {
                self.0
            }
        }
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct SpanId(pub [u8; 8]);
        impl SpanId {
            pub const fn from_bytes(bytes: [u8; 8]) -> Self {
                SpanId(bytes)
            }
            pub const fn to_bytes(self) -> [u8; 8] {
                self.0
            }
        }
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct TraceFlags(u8);
        impl TraceFlags {
            pub const SAMPLED: TraceFlags = TraceFlags(1);
        }
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct TraceState(String);
        impl TraceState {
            pub fn header(&self) -> String {
                self.0.clone()
            }
        }
        impl std::str::FromStr for TraceState {
            type Err = std::convert::Infallible;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Ok(TraceState(text.to_owned()))
            }
        }
        #[derive(Clone, Debug, PartialEq)]
        pub struct SpanContext {
            trace: TraceId,
            span: SpanId,
            flags: TraceFlags,
            remote: bool,
            state: TraceState,
        }
        impl SpanContext {
            pub fn new(
                trace: TraceId,
                span: SpanId,
                flags: TraceFlags,
                remote: bool,
                state: TraceState,
            ) -> Self {
                SpanContext { trace, span, flags, remote, state }
            }
            pub fn trace_id(&self) -> TraceId {
                self.trace
            }
            pub fn span_id(&self) -> SpanId {
                self.span
            }
            pub fn is_sampled(&self) -> bool {
                self.flags == TraceFlags::SAMPLED
            }
            pub fn trace_state(&self) -> &TraceState {
                &self.state
            }
        }
        pub struct SpanRef<'a>(&'a SpanContext);
        impl SpanRef<'_> {
            pub fn span_context(&self) -> &SpanContext {
                self.0
            }
        }
        pub trait TraceContextExt {
            fn span(&self) -> SpanRef<'_>;
            fn with_remote_span_context(&self, span_context: SpanContext) -> Self;
        }
        impl TraceContextExt for super::Context {
            fn span(&self) -> SpanRef<'_> {
                SpanRef(&self.0)
            }
            fn with_remote_span_context(&self, span_context: SpanContext) -> Self {
                super::Context(span_context)
            }
        }
    }
}
mod tracing_opentelemetry {
    pub trait OpenTelemetrySpanExt {
        fn context(&self) -> super::opentelemetry::Context;
        fn set_parent(&self, context: super::opentelemetry::Context) -> Result<(), std::convert::Infallible>;
    }
    impl OpenTelemetrySpanExt for tracing::Span {
        fn context(&self) -> super::opentelemetry::Context {
            super::opentelemetry::Context::new()
        }
        fn set_parent(&self, _: super::opentelemetry::Context) -> Result<(), std::convert::Infallible> {
            Ok(())
        }
    }
}
