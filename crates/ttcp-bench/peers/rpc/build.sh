#!/bin/sh
# build.sh DIRECTORY: ONC RPC's bench-server and bench-client, by rpcgen and libtirpc, where they are older than their sources.
# Ends with 3 where one of them is not installed.
set -e
here=$(cd "$(dirname "$0")" && pwd)
out=$1
mkdir -p "$out"
packages="apt-get install gcc libc6-dev rpcsvc-proto libtirpc-dev"
for tool in cc rpcgen; do
  command -v $tool >/dev/null || { echo "no $tool: $packages" >&2; exit 3; }
done
tirpc=$(pkg-config --cflags libtirpc 2>/dev/null || echo -I/usr/include/tirpc)
echo '#include <rpc/rpc.h>' | cc $tirpc -E -x c - >/dev/null 2>&1 || { echo "no headers of libtirpc: $packages" >&2; exit 3; }
newest=$(ls -t "$here"/* "$here"/../c/peer.h | head -n 1)
if [ -x "$out/bench-server" ] && [ -x "$out/bench-client" ] && [ "$out/bench-client" -nt "$newest" ]; then exit 0; fi
gen=$(mktemp -d "$out/gen.XXXXXX")
trap 'rm -rf "$gen"' EXIT
cp "$here/ttcp.x" "$gen"
cd "$gen"
for part in "-h ttcp.h" "-c ttcp_xdr.c" "-m ttcp_svc.c"; do
  set -- $part
  rpcgen -C "$1" -o "$2" ttcp.x || { echo "rpcgen fails (it needs a C preprocessor): $packages" >&2; exit 1; }
done
# What rpcgen writes has variables that it does not use, and the library's way to pass functions is a cast.
flags="-std=gnu11 -O3 $tirpc -I$gen -Wno-cast-function-type"
for unit in xdr svc; do cc $flags -w -c -o "$unit.o" "ttcp_$unit.c"; done
cc $flags -Wall -Wextra -o server "$here/server.c" xdr.o svc.o -ltirpc -pthread
cc $flags -Wall -Wextra -o client "$here/client.c" xdr.o -ltirpc -pthread
for program in server client; do mv $program "$out/bench-$program"; done
