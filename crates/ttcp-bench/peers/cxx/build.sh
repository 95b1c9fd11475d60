#!/bin/sh
# build.sh DIRECTORY: a thin C++ wrapper of sockets, as bench-server and bench-client, where they are older than their sources. Ends
# with 3 where there is no compiler.
set -e
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
command -v c++ >/dev/null || { echo "no c++: apt-get install g++" >&2; exit 3; }
newest=$(ls -t "$here"/* "$here"/../c/peer.h | head -n 1)
if [ -x "$1/bench-server" ] && [ -x "$1/bench-client" ] && [ "$1/bench-client" -nt "$newest" ]; then exit 0; fi
for program in server client; do
  c++ -std=c++17 -O3 -Wall -Wextra -pthread -o "$1/bench-$program.new" "$here/$program.cc"
  mv "$1/bench-$program.new" "$1/bench-$program"
done
