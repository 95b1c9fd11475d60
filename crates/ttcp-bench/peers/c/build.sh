#!/bin/sh
# build.sh DIRECTORY: the socket baseline in C, as bench-server and bench-client, where they are older than their sources. Ends with 3
# where there is no compiler.
set -e
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
command -v cc >/dev/null || { echo "no cc: apt-get install gcc libc6-dev" >&2; exit 3; }
newest=$(ls -t "$here"/* | head -n 1)
if [ -x "$1/bench-server" ] && [ -x "$1/bench-client" ] && [ "$1/bench-client" -nt "$newest" ]; then exit 0; fi
for program in server client; do
  cc -std=gnu11 -O3 -Wall -Wextra -pthread -o "$1/bench-$program.new" "$here/$program.c"
  mv "$1/bench-$program.new" "$1/bench-$program"
done
