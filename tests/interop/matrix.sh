#!/bin/bash
# matrix.sh [types|bench|all]: the foreign peers against each other, both ways, by IOR
# and by corbaloc of GIOP 1.0, 1.1 and 1.2, after scripts/build-peers.sh. Shows that a
# failure against zorb is not the peers' own. One line a run: ok, known or FAIL; status 0
# without FAIL. PORT=N: the first of four ports on 127.0.0.1.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
peers=$root/target/interop
port=${PORT:-47600}
tmp=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2> /dev/null; wait; rm -rf "$tmp"' EXIT
failed=0

start() {   # kind, orb, port
  "$peers/$2/$1-server" --ior "$tmp/$1.$2" --port "$3" --seconds 900 > "$tmp/$1.$2.out" 2>&1 &
  pids+=($!)
}
ready() { for _ in $(seq 150); do [ -s "$tmp/$1.omniorb" ] && [ -s "$tmp/$1.jacorb" ] && return; sleep 0.1; done; cat "$tmp"/*.out; exit 1; }
reach() {   # kind, server, way -> the value of --ior
  case $3 in
    ior) echo "$tmp/$1.$2" ;;
    *) echo "corbaloc:iiop:$3@127.0.0.1:$(port_of "$1" "$2")" ;;
  esac
}
port_of() { case $1.$2 in types.omniorb) echo "$port" ;; types.jacorb) echo $((port + 1)) ;; bench.omniorb) echo $((port + 2)) ;; *) echo $((port + 3)) ;; esac; }

types() {
  local client server way out status
  for server in omniorb jacorb; do
    "$peers/$server/peer-server" --ior "$tmp/types.$server" --port "$(port_of types $server)" --seconds 900 > "$tmp/types.$server.out" 2>&1 &
    pids+=($!)
  done
  ready types
  for client in omniorb jacorb; do for server in omniorb jacorb; do for way in ior 1.0 1.1 1.2 ior:1.0 ior:1.1; do
    local giop=()
    [ "$way" = ior ] || giop=(--giop "${way#ior:}")
    out=$(timeout 120 "$peers/$client/peer-client" --ior "$(reach types $server "${way%:*}")" "${giop[@]}" 2>&1); status=$?
    if [ $status = 0 ]; then
      echo "ok    types $client -> $server $way: $(grep -c '^ok' <<< "$out") checks, $(grep -c '^skip' <<< "$out") skipped"
    else
      echo "FAIL  types $client -> $server $way:"; grep -v -e '^ok' -e '^skip' -e '^INFO' <<< "$out" | head -20; failed=1
    fi
  done; done; done
}

bench() {
  local client server way out
  for server in omniorb jacorb; do start bench $server "$(port_of bench $server)"; done
  ready bench
  for client in omniorb jacorb; do for server in omniorb jacorb; do for way in ior 1.0 1.1 1.2; do
    one "$client" "$server" "$way" ping --n 500
    one "$client" "$server" "$way" demux --n 500
    one "$client" "$server" "$way" pipeline --depth 4 --n 1000
    local type size
    for type in octet char short long double struct; do for size in 24 65536; do
      one "$client" "$server" "$way" ttcp --type $type --size $size --total $((size * 40))
    done; done
    for type in octet struct; do for size in 24 65536 1048576; do one "$client" "$server" "$way" echo --type $type --size $size --n 10; done; done
  done; done; done
}
one() {     # client, server, way, test...
  local client=$1 server=$2 way=$3 out; shift 3
  if out=$(timeout 60 "$peers/$client/bench-client" "$1" --ior "$(reach bench "$server" "$way")" "${@:2}" 2>&1) && [[ $out == *'{"peer"'* ]]; then
    echo "ok    bench $client -> $server $way $*"
  elif [ "$way" = 1.1 ] && [[ $client$server == *omniorb* ]] && [[ $client$server == *jacorb* ]] && [[ $* == *65536* || $* == *1048576* ]]; then
    echo "known bench $client -> $server $way $*: JacORB takes no GIOP 1.1 fragments, which omniORB sends"
  else
    echo "FAIL  bench $client -> $server $way $*: ${out:0:600}"; failed=1
  fi
}

case ${1:-all} in
  types) types ;;
  bench) bench ;;
  all) types; bench ;;
  *) echo "matrix.sh [types|bench|all]" >&2; exit 2 ;;
esac
exit $failed
