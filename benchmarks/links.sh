#!/usr/bin/env bash
# Measures processor time on slow links: benchmarks/links.sh DIRECTORY [ROUNDS]
#
# As root on Linux, with ip and tc. Two network namespaces with a veth pair between them, whose sender is held at 1 and at
# 10 Gbit/s (tc tbf) with packets of 1,500 and of 9,000 octets; segments arrive one by one, as from a wire. Each peer is zorb
# by another way to wait: plain epoll, epoll with SO_RCVLOWAT, io_uring. Then floods of small messages and many connections.
# Writes DIRECTORY/links.md and one JSON file for each table. Takes about ten minutes, and ends by itself after forty;
# what it made is removed at its end, also after ^C.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?usage: benchmarks/links.sh DIRECTORY [ROUNDS]}
rounds=${2:-3}
longest=$((SECONDS + 40 * 60))
tables=0

die() {
  echo "links: $*" >&2
  exit 1
}
[[ $(id -u) == 0 ]] || die 'network namespaces need root'
for tool in ip tc; do
  command -v "$tool" >/dev/null || die "there is no $tool (Debian: iproute2)"
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$root"
cargo build --profile bench-lto -p ttcp-bench --features uring
target=$(cargo metadata --no-deps --format-version 1 | grep -oE '"target_directory":"[^"]*"' | cut -d'"' -f4)
export PATH=$target/bench-lto:$PATH
# A thousand connections have a descriptor each, and more in the client's runtime.
ulimit -n 8192 2>/dev/null || echo "links: no more than $(ulimit -n) descriptors" >&2

# ---- the link: names of this run alone, so that only what it made is removed

sender=zorb-s-$$ receiver=zorb-r-$$ near=zs$$ far=zr$$
from=198.18.0.1 to=198.18.0.2 # set aside for benchmarks (RFC 2544)
remove() {
  ip netns del "$sender" 2>/dev/null || true
  ip netns del "$receiver" 2>/dev/null || true
}
trap remove EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

ip netns add "$sender"
ip netns add "$receiver"
ip link add "$near" netns "$sender" type veth peer name "$far" netns "$receiver"
ip -n "$sender" addr add "$from/30" dev "$near"
ip -n "$receiver" addr add "$to/30" dev "$far"
for end in "$sender $near" "$receiver $far"; do
  read -r space device <<<"$end"
  ip -n "$space" link set lo up
  ip -n "$space" link set "$device" up
done

# Each segment is a packet of its own, as on a wire: veth would hand over 64 KiB at a time.
link() { # rate, MTU
  ip -n "$sender" link set "$near" mtu "$2" gso_max_segs 1
  ip -n "$receiver" link set "$far" mtu "$2" gso_max_segs 1
  tc -n "$sender" qdisc replace dev "$near" root tbf rate "$1" burst 256kb latency 50ms
}

# ---- peers and tables

peers=()
peer() { # name, options of both, options of the client
  peers+=(--peer "$1=ip netns exec $receiver ttcp server --host $to --ior {dir}/$1.ior $2::ip netns exec $sender ttcp client {args} --ior {dir}/$1.ior $2 ${3:-}")
}
ways() { # options of the client
  peers=()
  peer plain '--no-low-water' "${1:-}"
  peer rcvlowat '' "${1:-}"
  peer io_uring '--transport uring' "${1:-}"
}
table() { # file, title, arguments of ttcp run
  local file=$1 title=$2
  shift 2
  if ((SECONDS > longest)); then
    echo "links: no time is left for: $title" >&2
    return
  fi
  echo "links: $title" >&2
  # The machine is described once.
  local first=$((tables == 0))
  tables=$((tables + 1))
  (cd "$out" && timeout $((longest - SECONDS + 60)) ttcp run --peers none --processor --repeat "$rounds" --json "$file.json" "$@" "${peers[@]}") |
    awk -v title="$title" -v first="$first" '
      /^(machine|tcp): |^ttcp / { if (first) print; next }
      /^\|/ { if (!rows++) printf "\n## %s\n\n", title; else if (/^\| (processor) /) print ""; print }'
}

{
  printf '# Slow links\n\nProcessor time of both sides, and of sender + receiver. Rounds: %s.\n\n' "$rounds"
  ways
  for mtu in 1500 9000; do
    link 1gbit "$mtu"
    table "link-1g-$mtu" "1 Gbit/s, MTU $mtu, one connection" --tests ttcp --types octet --sizes 64K,1M --total 256M
    link 10gbit "$mtu"
    table "link-10g-$mtu" "10 Gbit/s, MTU $mtu, one connection" --tests ttcp --types octet --sizes 64K,1M --total 1G
  done
  link 10gbit 1500
  table small-10g "10 Gbit/s, MTU 1500, small messages" --tests ttcp,pipeline,ping --types octet --sizes 64,1K --total 64M --n 20000
  for n in 1 100 1000; do
    link 1gbit 1500
    ways "--connections $n"
    table "connections-1g-$n" "1 Gbit/s, MTU 1500, connections used in turn: $n" --tests ttcp,pipeline --types octet --sizes 1K,64K --total 128M --n 50000
  done
} | tee "$out/links.md"
