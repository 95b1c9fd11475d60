#!/usr/bin/env bash
# The octets of machine code and the time that each type of tests/interop/idl/types.idl takes compiled and interpreted, and which types
# deserve compiled code by their uses: scripts/code-size.sh
#
# Sizes are those of functions in a release without LTO; what is inlined counts for the function that it is in. A function belongs to the
# first type that its name has. More in examples/hybrid.rs.
set -euo pipefail
cd "$(dirname "$0")/.."

# Flags of its own would have everything compiled anew in the usual directory.
target="${CARGO_TARGET_DIR:-target}/code-size"
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
# Names with the types that generic functions are made for.
RUSTFLAGS='-C symbol-mangling-version=v0' cargo build -q --release --example hybrid --target-dir "$target"
program="$target/release/examples/hybrid"

# Address, size, kind, name; the kinds of code are t, T, w and W.
nm -S -C --defined-only "$program" | awk '
  function number(hex,   i, n) {
    for (i = 1; i <= length(hex); i++) n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
    return n
  }
  $3 !~ /^[tTwW]$/ { next }
  # What marshalling needs: its traits and functions, values to begin with, vectors that grow.
  !/giop_codec::|core::default::Default|alloc::raw_vec/ { next }
  /core::fmt::|core::clone::|core::cmp::/ { next }
  match($0, /hybrid::(compiled|interpreted)::[A-Za-z0-9_]+::interop::(names::)?[A-Z][A-Za-z0-9]*/) {
    split(substr($0, RSTART, RLENGTH), part, "::")
    name = part[2] " " (part[5] == "names" ? part[6] : part[5])
    octets[name] += number($2)
    next
  }
  /giop_codec::dynamic::reflect/ && !/hybrid::/ { octets["shared interpreter"] += number($2) }
  END { for (name in octets) print name, octets[name] }' | sort >"$target/sizes"
[[ -s $target/sizes ]] || { echo 'no function of a type was found' >&2; exit 1; }

"$program" "$target/sizes"
