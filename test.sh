#!/usr/bin/env bash
# Runs every test of the workspace, those against live foreign ORBs included: ./test.sh [OPTIONS OF cargo test]
#
# Needs Rust. Installs and builds the foreign peers where it can (as root on Debian and its kin); what it can not get is
# skipped, loudly, and so is io_uring (REQUIRE_URING=1: an error). With CI=true a missing peer is an error.
set -euo pipefail
cd "$(dirname "$0")"

logs=$(mktemp -d)
log=$logs/log second=$logs/second ring=$logs/ring
other=
trap '[[ -z $other ]] || kill -- "-$other" 2>/dev/null; rm -rf "$logs"' EXIT
problems=()
peers() { # script
  local status=0
  "scripts/$1" 2>&1 | tee -a "$log" || status=$?
  ((status == 0)) || problems+=("scripts/$1 failed ($status)")
}

peers install-peers.sh
peers build-peers.sh
rm -f target/interop/matrix.tsv # The interoperability tests write it anew, a line for each cell.

# Without --no-fail-fast the first file of tests that fails would hide the others.
all=(--workspace --all-features --no-fail-fast)
cargo test "${all[@]}" --no-run "$@"

# JacORB's programs run for a second or two: the second compiler of the virtual machine would cost more than it saves.
export JAVA_TIER=${JAVA_TIER:-1}

# In CI a test that hangs is a failure, and the last lines of the log name it. (By hand that would take Ctrl-C away from the tests.)
run() { # options of cargo test
  if [[ ${CI:-} == true ]]; then
    timeout 40m cargo test "${all[@]}" "$@"
  else
    cargo test "${all[@]}" "$@"
  fi
}

# The suites with TCP connections once more, over io_uring: on threads of the ORBs' own, then in the runtimes of the tests.
# Every ORB that falls back to epoll there fails its test. Where the kernel refuses io_uring, or a container forbids it, they say so.
over_uring() { # options of cargo test
  local status=0 transport tests suites once pipes
  printf '\n==== over io_uring\n'
  run --test transport "$@" -- uring:: uring_threads:: --nocapture 2>&1 | tee "$ring" || status=$?
  if grep -q 'SKIPPED: no io_uring' "$ring"; then
    printf '%s\n' '' '********' \
      'SKIPPED: the kernel refuses io_uring, nothing was tested over it (REQUIRE_URING=1 makes that an error)' '********' ''
    return "$status"
  fi
  # What the kind of ring makes a difference to, and what breaks but for what is in memory.
  tests=(bidirectional bulk limits_and_faults poa runtime security transport)
  suites=(blocking:: callbacks:: calls:: deposits:: flow:: gateway:: limits:: managers:: results:: runtime_faults:: streams:: system_calls::
    threads:: tls:: unix:: faults::crowd:: faults::processes:: faults::drops::binds_over_tcp faults::servants::a_servant_that_blocks
    faults::endings::who_ faults::shutdown::a_server_that_restarts)
  # What is above it, counts of one thread, and messages cut into pieces: only where the ring is in the runtime.
  once=(activators:: allocations:: blocks:: copies:: csi:: destroy:: elements:: fragments:: idl_calls:: metrics:: policies:: requests::
    servants:: sources:: values:: zero_copy::)
  # These go over pipes in memory, whatever the variable says.
  pipes=(ends::a_connection_cut_anywhere ends::pipes_ collocated:: cuts:: deadlines:: uring::)
  for transport in uring-threads uring; do
    printf '\n==== ZORB_TEST_TRANSPORT=%s\n' "$transport"
    ZORB_TEST_TRANSPORT=$transport REQUIRE_URING=1 run "${tests[@]/#/--test=}" "$@" -- "${suites[@]}" "${pipes[@]/#/--skip=}" 2>&1 || status=$?
    tests+=(alloc calls observability)
    suites+=("${once[@]}")
  done
  printf '\n==== ZORB_TEST_TRANSPORT=uring, other ORBs\n'
  # Over one of the two, and without JacORB, whose virtual machines would take as long as all other tests here.
  ZORB_TEST_TRANSPORT=uring REQUIRE_URING=1 run --test interop "$@" -- --skip jacorb --skip wire:: --skip anys:: --skip idl4:: --skip dissect:: 2>&1 || status=$?
  return "$status"
}

# Tests that start other programs run in parallel with those of libraries and of the ORB, since each of them leaves a processor idle at times.
programs=(compile ttcp)
beside() { # options of cargo test
  local status=0
  # First, because one rustc compiles all examples of a crate's documentation for more than a minute.
  run --doc "$@" 2>&1 || status=$?
  run "${programs[@]/#/--test=}" "$@" 2>&1 || status=$?
  over_uring "$@" || status=$?
  return "$status"
}

# The names of all other files of tests.
others() {
  cargo metadata --no-deps --format-version 1 | grep -oE '\{"kind":\["test"\],"crate_types":\["bin"\],"name":"[^"]*"' |
    awk -F'"' '{ print $(NF - 1) }' | sort -u | grep -vxF "$(printf '%s\n' "${programs[@]}")"
}
mapfile -t tests < <(others)
((${#tests[@]} > 10)) || { echo 'test.sh: cargo metadata names no tests' >&2; exit 1; }

# Its output is printed after that of the others.
set -m # In a process group of its own, which ends with this script.
beside "$@" >"$second" &
other=$!
set +m
status=0
run --lib --bins "${tests[@]/#/--test=}" "$@" 2>&1 | tee -a "$log" || status=$?
((status == 0)) || problems+=("cargo test failed ($status)")
status=0
wait "$other" || status=$?
other=
tee -a "$log" <"$second"
((status == 0)) || problems+=("cargo test of examples, of programs and over io_uring failed ($status)")

printf '\n==== summary\n'
awk '
  / Running | Doc-tests / { name = $0; sub(/^ +(Running )?/, "", name); sub(/ \(.*/, "", name) }
  /^test result: / {
    files++
    for (i = 1; i < NF; i++) {
      if ($(i + 1) ~ /^passed/) passed += $i
      if ($(i + 1) ~ /^failed/) failed += $i
      if ($(i + 1) ~ /^ignored/) ignored += $i
    }
  }
  /^test .* \.\.\. FAILED$/ { sub(/^test /, ""); sub(/ \.\.\. FAILED$/, ""); broken[++n] = name ": " $0 }
  END {
    printf "%d tests in %d files: %d passed, %d failed, %d ignored\n", passed + failed + ignored, files, passed, failed, ignored
    for (i = 1; i <= n; i++) print "  FAILED " broken[i]
  }' "$log"
if grep -E 'SKIPPED|WITHOUT' "$log" >"$logs/skipped"; then
  printf 'left out:\n'
  sort -u "$logs/skipped" | sed 's/^/  /'
fi
printf '\n==== interoperability\n'
scripts/interop-matrix.sh target/interop/matrix.tsv || problems+=('cells of the interoperability matrix are missing')
if ((${#problems[@]})); then
  printf 'PROBLEM: %s\n' "${problems[@]}"
  exit 1
fi
printf 'all is well\n'
