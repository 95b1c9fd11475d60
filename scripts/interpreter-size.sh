#!/usr/bin/env bash
# Says how many bytes of machine code the interpreter of type codes takes, and fails if they are more than 100 KiB: scripts/interpreter-size.sh
#
# Counted are all functions of giop-codec that compile a type code to a program and run programs over bytes, trees and Rust types:
# `typecode::compile`, `program`, `walk`, `dynamic::program` and `dynamic::reflect`, with the values of value types; optimised as in a
# release, without LTO, which would take away what a program does not use. Not counted is what compiled code takes too: the decoder and the
# encoder, type codes themselves, and what a Rust type brings along to be reached by its place (`dynamic::reflect::leaf`). Nor are custom
# values in anys (`walk::custom`): no type code says what is in them, they are carried as the bytes that they came as.
#
# Compiles giop-codec once, in a directory of its own. With -v every function, the largest first.
set -euo pipefail
cd "$(dirname "$0")/.."

most=$((100 * 1024))
# Flags of its own would have everything compiled anew in the usual directory.
target=${CARGO_TARGET_DIR:-target}/size
# Without its fingerprint: cargo does not know of the object file, and would not see that it is gone.
rm -rf "$target"/release/deps/giop_codec-*.o "$target"/release/.fingerprint/giop-codec-*
CARGO_PROFILE_RELEASE_LTO=off cargo rustc -q --release -p giop-codec --lib --target-dir "$target" -- --emit=obj -C codegen-units=1
objects=("$target"/release/deps/giop_codec-*.o)

# Address, size, kind and name; the kinds of code are t, T, w and W.
functions=$(nm -S -C --defined-only "${objects[@]}" |
  awk '$3 ~ /^[tTwW]$/ && /giop_codec::(program|walk|typecode::compile|dynamic::(program|reflect)|cdr::swapped::swap_in_place)/ && !/program::labels|reflect::leaf|walk::custom/' |
  while read -r _ size _ name; do printf '%d %s\n' "0x$size" "$name"; done | sort -rn)
[[ -n $functions ]] || { echo 'no function of the interpreter was found' >&2; exit 1; }
[[ ${1:-} != -v ]] || printf '%s\n' "$functions"
bytes=$(awk '{ sum += $1 } END { print sum }' <<<"$functions")
echo "interpreter: $bytes bytes of machine code in $(wc -l <<<"$functions") functions, of $most"
((bytes <= most))
