#!/usr/bin/env bash
# Measures marshalling by type codes beside compiled code, and calls and servants by name beside compiled ones:
# benchmarks/dynamic.sh DIRECTORY [ROUNDS]
#
# Wanted: a quiet machine with two cores. Writes DIRECTORY/codec.{md,json} (benches/dynamic.rs), DIRECTORY/calls.{md,json} (ttcp: floods and
# pings by the four pairs of --invocation and --skeleton) and DIRECTORY/echo.{md,json} (echoes), and all in DIRECTORY/dynamic.json. Takes about
# a minute and a half with five rounds. ONLY=codec and ONLY=calls make a part, QUICK=1 a tenth of the work in one round, BUILT=1 builds nothing.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?usage: benchmarks/dynamic.sh DIRECTORY [ROUNDS]}
rounds=${2:-5} total=256M calls=10000 echoes=2000
[[ ! ${QUICK:-} ]] || { rounds=1 total=4M calls=400 echoes=50; }
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$root"
[[ ${BUILT:-} ]] || {
  cargo build --profile bench-lto -p ttcp-bench
  cargo bench --bench dynamic --no-run
}
# By names without paths, which would stand in the records.
target=$(cargo metadata --no-deps --format-version 1 | grep -oE '"target_directory":"[^"]*"' | cut -d'"' -f4)
export PATH=$target/bench-lto:$PATH

case ${ONLY:-} in '' | codec)
  cargo bench --quiet --bench dynamic -- --rounds $((2 * rounds + 1)) --json "$out/codec.json" | tee "$out/codec.md"
esac

case ${ONLY:-} in '' | calls)
  peers=()
  for pair in 'sii ssi' 'dii ssi' 'sii dsi' 'dii dsi'; do
    read -r invocation skeleton <<<"$pair"
    name=$invocation-$skeleton
    peers+=(--peer "$name=ttcp server --ior {dir}/$name.ior --skeleton $skeleton::ttcp client {args} --ior {dir}/$name.ior --invocation $invocation")
  done
  common=(--peers none --pin --repeat "$rounds" "${peers[@]}")
  ttcp run "${common[@]}" --tests ttcp,ping --types octet,double,struct --sizes 1K,64K,1M --total "$total" --n "$calls" \
    --json "$out/calls.json" | tee "$out/calls.md"
  ttcp run "${common[@]}" --tests echo --types octet,struct --sizes 1K,64K --n "$echoes" --json "$out/echo.json" | tee "$out/echo.md"
esac

if [[ -f $out/codec.json && -f $out/calls.json && -f $out/echo.json ]]; then
  printf '{"codec":%s,"calls":%s,"echo":%s}\n' "$(<"$out/codec.json")" "$(<"$out/calls.json")" "$(<"$out/echo.json")" >"$out/dynamic.json"
fi
