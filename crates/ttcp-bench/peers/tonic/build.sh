#!/bin/sh
# build.sh DIRECTORY: gRPC's bench-server and bench-client, by tonic. Ends with 3 where there is no cargo, or its crates can not be had.
# Takes minutes the first time.
set -e
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
command -v cargo >/dev/null || { echo "no cargo: see https://rustup.rs" >&2; exit 3; }
# What ttcp itself was built with is none of its business.
unset CARGO_TARGET_DIR CARGO_MANIFEST_DIR CARGO_PKG_NAME
if ! cargo fetch --manifest-path "$here/Cargo.toml"; then
  echo "the crates of tonic can not be had" >&2
  exit 3
fi
cargo build --release --manifest-path "$here/Cargo.toml" --target-dir "$1/target"
for program in server client; do
  cp "$1/target/release/bench-$program" "$1/bench-$program.new"
  mv "$1/bench-$program.new" "$1/bench-$program"
done
