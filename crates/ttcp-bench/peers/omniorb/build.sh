#!/bin/sh
# build.sh DIRECTORY: omniORB's bench-server and bench-client, where they are older than their sources. Ends with 3 where omniORB is not
# installed.
set -e
here=$(cd "$(dirname "$0")" && pwd)
idl=$here/../../idl
out=$1
mkdir -p "$out"
packages="apt-get install g++ omniidl libomniorb4-dev"
for tool in omniidl c++; do
  command -v $tool >/dev/null || { echo "no $tool: $packages" >&2; exit 3; }
done
echo '#include <omniORB4/CORBA.h>' | c++ -E -x c++ - >/dev/null 2>&1 || { echo "no headers of omniORB: $packages" >&2; exit 3; }
newest=$(ls -t "$idl"/bench.idl "$idl"/demux.idl "$idl"/thousand.idl "$here"/* | head -n 1)
if [ -x "$out/bench-server" ] && [ -x "$out/bench-client" ] && [ "$out/bench-client" -nt "$newest" ]; then exit 0; fi
gen=$(mktemp -d "$out/gen.XXXXXX")
trap 'rm -rf "$gen"' EXIT
for unit in bench demux thousand; do
  omniidl -bcxx -Wba -C"$gen" "$idl/$unit.idl"   # -Wba: with what anys take
  c++ -std=c++17 -O3 -Wall -I"$gen" -c -o "$gen/${unit}SK.o" "$gen/${unit}SK.cc"
done
c++ -std=c++17 -O3 -Wall -I"$gen" -c -o "$gen/benchDynSK.o" "$gen/benchDynSK.cc"
for program in server client; do
  c++ -std=c++17 -O3 -Wall -I"$gen" -o "$gen/$program" "$here/$program.cc" "$gen"/*SK.o -lomniDynamic4 -lomniORB4 -lomnithread -pthread
  mv "$gen/$program" "$out/bench-$program"
done
