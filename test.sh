#!/usr/bin/env bash
# Runs every test of the workspace, those against live foreign ORBs included: ./test.sh [OPTIONS OF cargo test]
#
# Needs Rust. Installs and builds the foreign peers where it can (as root on Debian and its kin); what it can not get is
# skipped, loudly, and so is io_uring (REQUIRE_URING=1: an error). With CI=true a missing peer is an error.
set -euo pipefail
cd "$(dirname "$0")"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
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
status=0
cargo test --workspace --all-features --no-fail-fast "$@" 2>&1 | tee -a "$log" || status=$?
((status == 0)) || problems+=("cargo test failed ($status)")

# The suites with TCP connections once more, over io_uring: in the runtimes of the tests, then on threads of the ORBs' own.
# Every ORB that falls back to epoll there fails its test. Where the kernel refuses io_uring, or a container forbids it, they say so.
printf '\n==== over io_uring\n'
status=0
ring=(--workspace --all-features --no-fail-fast)
cargo test "${ring[@]}" --test uring --test uring_threads -- --nocapture 2>&1 | tee -a "$log" || status=$?
if grep -q 'SKIPPED: no io_uring' "$log"; then
  printf '%s\n' '' '********' \
    'SKIPPED: the kernel refuses io_uring, nothing was tested over it (REQUIRE_URING=1 makes that an error)' '********' '' | tee -a "$log"
else
  suites=(calls blocking alloc runtime_faults copies zero_copy blocks streams elements flow deposits sources idl_calls metrics system_calls requests values poa_managers poa poa_servants poa_destroy poa_activators poa_threads fragments bidirectional unix)
  for transport in uring uring-threads; do
    printf '\n==== ZORB_TEST_TRANSPORT=%s\n' "$transport"
    tests=("${suites[@]/#/--test=}")
    # Other ORBs are tried over one of the two.
    [[ $transport != uring ]] || tests+=(--test=interop)
    ZORB_TEST_TRANSPORT=$transport REQUIRE_URING=1 cargo test "${ring[@]}" "${tests[@]}" "$@" 2>&1 | tee -a "$log" || status=$?
  done
fi
((status == 0)) || problems+=("cargo test over io_uring failed ($status)")

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
if grep -E 'SKIPPED|WITHOUT' "$log" >"$log.skipped"; then
  printf 'left out:\n'
  sort -u "$log.skipped" | sed 's/^/  /'
fi
rm -f "$log.skipped"
printf '\n==== interoperability\n'
scripts/interop-matrix.sh target/interop/matrix.tsv || problems+=('cells of the interoperability matrix are missing')
if ((${#problems[@]})); then
  printf 'PROBLEM: %s\n' "${problems[@]}"
  exit 1
fi
printf 'all is well\n'
