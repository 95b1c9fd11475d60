#!/usr/bin/env bash
# Instructions in user space for each message, by callgrind: benchmarks/instructions.sh [ttcp options...]
#
# Unlike times, they do not change from run to run. Each figure is the difference of a long and a short run, so starts and
# warm-ups fall out. Needs valgrind; prints a Markdown table.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo 'instructions: valgrind is missing (Debian: valgrind)' >&2; exit 2; }
cargo build --profile bench-lto -q -p ttcp-bench
target=$(cargo metadata --no-deps --format-version 1 | grep -oE '"target_directory":"[^"]*"' | cut -d'"' -f4)
ttcp=$target/bench-lto/ttcp
options=("$@")
dir=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server" 2>/dev/null; rm -rf "$dir"' EXIT

grind() { # program and arguments
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>"$dir/grind"
}
collected() { grep -oE 'Collected : [0-9]+' "$dir/grind" | grep -oE '[0-9]+$'; }
serve() { # command: sets server, waits until it is ready
  rm -f "$dir"/ior* "$dir/ready"
  "$@" "$ttcp" server --ior "$dir/ior" "${options[@]}" >"$dir/ready" 2>"$dir/served" &
  server=$!
  for _ in $(seq 100); do grep -qs READY "$dir/ready" && return; sleep 0.1; done
  echo 'instructions: the server does not start' >&2
  exit 1
}
stop() { kill "$server"; wait "$server" 2>/dev/null || true; server=; }

# Instructions of one run at the client, then at the server.
run() {
  serve env
  grind "$ttcp" client --ior "$dir/ior" "${options[@]}" "$@" >/dev/null
  client=$(collected)
  stop
  serve valgrind --tool=callgrind --callgrind-out-file=/dev/null
  "$ttcp" client --ior "$dir/ior" "${options[@]}" "$@" >/dev/null
  stop
  cp "$dir/served" "$dir/grind"
  served=$(collected)
}

counted() { # messages, arguments
  local n=$1
  shift
  set -- "${@/#N/$n}"
  run "${@/#KB/$((n * 64))K}"
}

row() { # name, messages of the short and the long run, arguments (N: messages, KB: of 64 KiB each)
  local name=$1 few=$2 many=$3
  shift 3
  counted "$few" "$@"
  local client_few=$client served_few=$served
  counted "$many" "$@"
  # A tenth more is sent to warm up.
  echo "| $name | $(((client - client_few) * 10 / (many - few) / 11)) | $(((served - served_few) * 10 / (many - few) / 11)) |"
}

echo '| message | client | server |'
echo '|---|--:|--:|'
row 'ping' 2000 12000 ping --n N
row 'last of 100 operations' 2000 12000 demux --n N
row 'pipelined ping, 64 under way' 6400 64000 pipeline --depth 64 --n N
row 'oneway of 1 KiB' 4000 20000 ttcp --type octet --size 1K --total NK
row 'oneway of 64 KiB of octets' 250 1250 ttcp --type octet --size 64K --total KB
row 'echo of 64 KiB of octets' 200 1200 echo --type octet --size 64K --n N
