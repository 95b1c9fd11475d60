#!/usr/bin/env bash
# What it costs to find what a request is for, by way and by how many there are: benchmarks/demux.sh DIRECTORY [counts|times]
#
# Instructions of a call, counted by callgrind in the thread of one side alone, and times of a call by criterion.
# Fails where a call by the default way takes over 2 % more at one size than at another. Writes DIRECTORY/demux.md and demux.json.
# Takes about ten minutes. RUN is put before what is timed, such as RUN='taskset -c 0,1'. Needs valgrind.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?usage: benchmarks/demux.sh DIRECTORY [counts|times]}
only=${2:-counts times}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$root"
command -v valgrind >/dev/null || { echo 'demux: valgrind is missing (Debian: valgrind)' >&2; exit 2; }
program=$(cargo bench -q -p zorb --bench demux --no-run --message-format=json |
  grep -oE '"executable":"[^"]*/demux-[^"]*"' | cut -d'"' -f4)
said=$(mktemp)
trap 'rm -f "$said"' EXIT
record=()
apart=()

# Instructions of a side for a call: side, calls, KEY=VALUE...
count() {
  local side=$1 calls=$2
  shift 2
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "--toggle-collect=*count_${side}_here*" \
    "$program" count "$side" "calls=$calls" "$@" 2>"$said" || { cat "$said" >&2; exit 1; }
  awk -v calls="$calls" '/Collected : / { printf "%.0f", $NF / calls }' "$said"
}

# A row of a table: the table, the way, what varies, the sizes, what else is so. Instructions of the server.
row() {
  local table=$1 way=$2 key=$3 sizes=$4
  shift 4
  local size counted calls cells=''
  for size in $sizes; do
    calls=1000
    # A search through many takes long to count, and is worth no more calls.
    if [[ $way == linear ]] && ((size >= 1000)); then calls=80; fi
    counted=$(count server "$calls" "$key=$size" "$@")
    cells+=" $counted |"
    record+=("{\"table\":\"$table\",\"way\":\"$way\",\"size\":$size,\"server\":$counted}")
  done
  echo "| $way |$cells"
}

# The same by the default way, and a row with the client's added: these may not differ.
default() {
  local table=$1 way=$2 key=$3 sizes=$4
  shift 4
  local size server client both least=0 most=0 cells='' sums=''
  for size in $sizes; do
    server=$(count server 1000 "$key=$size" "$@")
    client=$(count client 1000 "$key=$size" "$@")
    both=$((server + client))
    if ((least == 0 || both < least)); then least=$both; fi
    if ((both > most)); then most=$both; fi
    cells+=" $server |"
    sums+=" $both |"
    record+=("{\"table\":\"$table\",\"way\":\"$way\",\"size\":$size,\"server\":$server,\"client\":$client}")
  done
  printf '| %s |%s\n| %s, with the client |%s\n' "$way" "$cells" "$way" "$sums"
  if ((most * 100 > least * 102)); then apart+=("$table, $way: $least to $most"); fi
}

header() { # name, sizes
  local sizes=("${@:2}")
  printf '\n### %s\n\n' "$1"
  printf '| |'
  printf ' %s |' "${sizes[@]}"
  printf '\n|---|'
  printf -- '--:|%.0s' "${sizes[@]}"
  printf '\n'
}

counts() {
  printf '\n## Instructions of the server for a call in user space\n'
  header 'The last of so many operations' 1 10 100 1000
  default operations perfect operations '1 10 100 1000'
  for way in linear sorted hash numeric; do
    row operations "$way" operations '1 10 100 1000' "find=operations:$way"
  done
  row operations de-layered operations '1 10 100 1000' find=path:delayered
  header 'One object of so many, called again and again' 1 100 10000 1000000
  default 'one object' active objects '1 100 10000 1000000'
  header 'Eight objects of so many, in turns' 8 100 10000 1000000
  default objects active objects '8 100 10000 1000000' turns=8
  row objects hash objects '8 100 10000 1000000' turns=8 find=objects:hash
  # A million one by one are timed, and would take long to count.
  row objects linear objects '8 100 10000' turns=8 find=objects:linear
  header 'Eight objects below so many POAs, in turns' 1 2 4 8 16 32
  default POAs flat depth '1 2 4 8 16 32' objects=8 turns=8
  for way in layered delayered; do
    row POAs "${way/delayered/de-layered}" depth '1 2 4 8 16 32' objects=8 turns=8 "find=path:$way"
  done
  local number
  number=$(count client 1000 operations=100 find=operations:numeric)
  printf '\nThe client takes %s for a call by number.\n' "$number"
}

# Times of criterion's groups, as tables: `GROUP/WAY/SIZE` and `time: [LOW MEDIAN HIGH]`, which long names have in a line of their own.
times() {
  printf '\n## Microseconds of a call\n\nMedians, and the ends of their confidence intervals.\n'
  local group way
  for group in operations:perfect,linear,sorted,hash,numeric,delayered 'one object:active' objects:active,hash,linear \
    POAs:flat,layered,delayered; do
    : >"$said"
    for way in $(tr , ' ' <<<"${group#*:}"); do
      # shellcheck disable=SC2086 # it is a command with its arguments
      ${RUN:-} "$program" --bench "^${group%%:*}/$way/" >>"$said"
    done
    awk -v json="$out/demux.times" '
      function us(value, unit) { return unit == "ns" ? value / 1000 : unit == "ms" ? value * 1000 : unit == "s" ? value * 1e6 : value }
      match($0, /^[A-Za-z ]+\/[a-z]+\/[0-9]+/) { split(substr($0, RSTART, RLENGTH), id, "/") }
      match($0, /time: +\[[^]]*\]/) {
        split(substr($0, RSTART, RLENGTH), t, /[][ ]+/)
        low = us(t[2], t[3]); mid = us(t[4], t[5]); high = us(t[6], t[7])
        if (!(id[2] in seen)) { ways[++w] = id[2]; seen[id[2]] }
        if (!(id[3] in sizes)) { order[++s] = id[3]; sizes[id[3]] }
        cell[id[2], id[3]] = sprintf("%.1f (%.1f to %.1f)", mid, low, high)
        printf "{\"table\":\"%s\",\"way\":\"%s\",\"size\":%d,\"us\":[%.3f,%.3f,%.3f]}\n", id[1], id[2], id[3], low, mid, high >>json
      }
      END {
        printf "\n### %s\n\n| |", id[1]
        for (j = 1; j <= s; j++) printf " %s |", order[j]
        printf "\n|---|"
        for (j = 1; j <= s; j++) printf "--:|"
        for (i = 1; i <= w; i++) {
          printf "\n| %s |", ways[i]
          for (j = 1; j <= s; j++) printf " %s |", cell[ways[i], order[j]]
        }
        printf "\n"
      }' "$said"
  done
}

machine() {
  printf '# What it costs to find what a request is for\n\n'
  printf 'machine: %s, %s cores, %s\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$(uname -sr)"
  printf 'zorb: commit %s, %s, %s\n' "$(git rev-parse HEAD)" "$(rustc --version)" "$(valgrind --version)"
}

for what in $only; do
  case $what in
    counts | times) ;;
    *) echo "demux: neither counts nor times: $what" >&2; exit 2 ;;
  esac
done
rm -f "$out/demux.times"
{
  machine
  for what in $only; do "$what"; done
} >"$out/demux.md"
cat "$out/demux.md"
[[ ! -e $out/demux.times ]] || mapfile -t -O "${#record[@]}" record <"$out/demux.times"
rm -f "$out/demux.times"
(IFS=,; echo "[${record[*]}]") | sed 's/},{/},\n{/g' >"$out/demux.json"
if ((${#apart[@]})); then
  printf 'demux: further apart than 2 %%: %s\n' "${apart[@]}" >&2
  exit 1
fi
