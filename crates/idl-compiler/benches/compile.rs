//! How long a large file takes: 20,000 lines through preprocessor, parser and checks, and through the emitter as well.
//!
//! `cargo bench -p idl-compiler`

#![allow(missing_docs, reason = "criterion's macros document nothing")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use idl_compiler::emit::{Options, emit};
use idl_compiler::{Source, compile};

#[path = "../tests/common/corpus.rs"]
mod corpus;

fn compiling(c: &mut Criterion) {
    let text = corpus::idl(20_000);
    let mut group = c.benchmark_group("compile");
    group.sample_size(10);
    group.throughput(Throughput::Elements(text.lines().count() as u64));
    let model = || compile(Source::text("corpus.idl", text.as_str())).ok();
    assert!(model().is_some(), "the corpus has no errors");
    group.bench_function("check", |b| b.iter(model));
    group.bench_function("check and emit", |b| {
        b.iter(|| model().and_then(|model| emit(&model, &Options::default()).ok()));
    });
    group.finish();
}

criterion_group!(benches, compiling);
criterion_main!(benches);
