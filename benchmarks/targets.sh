#!/usr/bin/env bash
# Measures what docs/BENCHMARKING.md has targets for: benchmarks/targets.sh DIRECTORY [ROUNDS]
#
# All peers take turns in each round; the tables show medians. Wanted: a quiet machine with two cores to itself. C sockets and
# omniORB are measured too where they can be built. Writes DIRECTORY/{latency,flood,large}.{md,json}.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?usage: benchmarks/targets.sh DIRECTORY [ROUNDS]}
rounds=${2:-5}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$root"
cargo build --profile bench-lto -p ttcp-bench
# By names without paths, which would stand in the records.
target=$(cargo metadata --no-deps --format-version 1 | grep -oE '"target_directory":"[^"]*"' | cut -d'"' -f4)
export PATH=$target/bench-lto:$PATH

congestion=$(sysctl -n net.ipv4.tcp_congestion_control 2>/dev/null || echo unknown)
[[ $congestion == cubic ]] || echo "targets: congestion control is $congestion; the recorded runs have cubic" >&2

peer() { # name, options of both sides, options of the client
  echo "$1=ttcp server --ior {dir}/$1.ior $2::ttcp client {args} --ior {dir}/$1.ior $2 ${3:-}"
}
peers=raw,zorb
ttcp peers build c omniorb
for rival in c omniorb; do
  [[ ! -x $target/ttcp-peers/$rival/bench-client ]] || peers+=,$rival
done

measure() { # file, arguments...
  local file=$1
  shift
  ttcp run --pin --peers "$peers" --repeat "$rounds" --json "$out/$file.json" "$@" | tee "$out/$file.md"
}

measure latency --tests ping,demux,echo,pipeline --processor \
  --peer "$(peer blocking '' '--runtime blocking')" --peer "$(peer spin '--spin 50')" --peer "$(peer copying '--copying')"
measure flood --tests ttcp --sizes 1K,4K,8K,64K,1M --processor --peer "$(peer copying '--copying')"
measure large --tests ttcp --sizes 16M --types octet,double,struct --total 2G --processor
