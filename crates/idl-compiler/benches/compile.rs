//! Compilation time of IDL texts. The first is a corpus of 20,000 lines, through preprocessor, parser and
//! checks, with and without the emitter. The others have shapes whose cost might grow faster than their size:
//! each is compiled at one size and at four times that size.
//!
//! `cargo bench -p idl-compiler`

#![allow(missing_docs, reason = "criterion's macros document nothing")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use idl_compiler::emit::{Options, emit};
use idl_compiler::{Source, compile};

#[path = "../tests/compiler/common/corpus.rs"]
mod corpus;
#[path = "../tests/compiler/common/shapes.rs"]
mod shapes;

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

fn shapes(c: &mut Criterion) {
    let mut group = c.benchmark_group("shapes");
    group.sample_size(10);
    for (name, shape) in shapes::SHAPES {
        for parts in [60, 240] {
            let text = shape(parts);
            let emitted = || {
                let model = compile(Source::text("shape.idl", text.as_str())).ok();
                model.and_then(|model| emit(&model, &Options::default()).ok())
            };
            assert!(emitted().is_some(), "{name} has no errors");
            group.throughput(Throughput::Elements(parts as u64));
            group.bench_function(BenchmarkId::new(*name, parts), |b| b.iter(emitted));
        }
    }
    group.finish();
}

criterion_group!(benches, compiling, shapes);
criterion_main!(benches);
