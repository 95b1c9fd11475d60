#!/usr/bin/env bash
# Measures what docs/BENCHMARKING.md has targets for: benchmarks/targets.sh DIRECTORY [ROUNDS]
#
# All peers take turns in each round; the tables show medians. Wanted: a quiet machine with two cores to itself. The C
# sockets are measured too where RAW_C names the folder of their programs (raw-c-server, raw-c-client), omniORB where
# scripts/build-peers.sh built its programs. Writes DIRECTORY/{latency,flood,large}.{md,json}.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?usage: benchmarks/targets.sh DIRECTORY [ROUNDS]}
rounds=${2:-5}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$root"
cargo build --release -p ttcp-bench
# By names without paths, which would stand in the records.
target=$(cargo metadata --no-deps --format-version 1 | grep -oE '"target_directory":"[^"]*"' | cut -d'"' -f4)
export PATH=$target/release:$target/interop/omniorb:${RAW_C:+$RAW_C:}$PATH

congestion=$(sysctl -n net.ipv4.tcp_congestion_control 2>/dev/null || echo unknown)
[[ $congestion == cubic ]] || echo "targets: congestion control is $congestion; the recorded runs have cubic" >&2

peer() { # name, options of both sides, options of the client
  echo "$1=ttcp server --ior {dir}/$1.ior $2::ttcp client {args} --ior {dir}/$1.ior $2 ${3:-}"
}
have() { command -v "$1" >/dev/null; }

others=()
if have raw-c-server; then
  others+=(--peer 'raw-c=raw-c-server --fresh --port 47109::raw-c-client {args} --port 47109')
fi
if [[ -x $target/interop/omniorb/bench-server ]]; then
  others+=(--peer 'omniORB=bench-server --ior {dir}/omni.ior::bench-client {args} --ior {dir}/omni.ior')
fi

measure() { # file, arguments...
  local file=$1
  shift
  ttcp run --pin --repeat "$rounds" --json "$out/$file.json" "$@" "${others[@]}" | tee "$out/$file.md"
}

measure latency --tests ping,demux,echo,pipeline --processor \
  --peer "$(peer blocking '' '--runtime blocking')" --peer "$(peer spin '--spin 50')" --peer "$(peer copying '--copying')"
measure flood --tests ttcp --sizes 1K,4K,8K,64K,1M --processor --peer "$(peer copying '--copying')"
measure large --tests ttcp --sizes 16M --types octet,double,struct --total 2G --processor
