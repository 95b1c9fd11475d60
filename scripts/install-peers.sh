#!/bin/bash
# install-peers.sh: the Debian packages of the foreign ORBs that the interoperability
# tests talk to: omniORB (C++), and a JDK and Maven for JacORB (Java), which
# build-peers.sh fetches by Maven; Python for PyTango, which it fetches by pip; and
# tshark, whose dissector reads captures, and tcpdump; Combat, an ORB in Tcl that knows no IDL but
# what an interface repository says; etcd, in which several naming services keep
# their names. And for the benchmarks rpcgen with libtirpc, for ONC
# RPC, strace, which counts system calls, and Chromium, which opens their report.
#
# Installs only as root or by `sudo -n` without a password. Elsewhere it says loudly
# what stays away (the tests then skip it) and succeeds. With CI=true a peer that is
# missing in the end is a failure.
set -u

missing=()
want() { command -v "$1" > /dev/null 2>&1 || missing+=("${@:2}"); }
need() { [ -e "$1" ] || missing+=("${@:2}"); }

want c++ g++
want strace strace
want ip iproute2
want rpcgen rpcsvc-proto
need /usr/include/tirpc/rpc/rpc.h libtirpc-dev
want omniidl omniidl
want omniNames omniorb-nameserver
want catior omniorb
need /usr/include/omniORB4/CORBA.h libomniorb4-dev
need /usr/include/openssl/ssl.h libssl-dev # omniORB by TLS
need /usr/share/idl/omniORB omniorb-idl
want openssl openssl # a key store for JacORB
want javac default-jdk-headless
want mvn maven
want tshark tshark
want tcpdump tcpdump
want etcd etcd-server
want chromium chromium
need /usr/share/tcltk/combat0.8 tcl-combat
python3 -c 'import ensurepip, venv' > /dev/null 2>&1 || missing+=(python3 python3-venv)

if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  if ! command -v apt-get > /dev/null; then
    as_root=(no)
    echo "install-peers: no apt-get here: install by hand: ${missing[*]}" >&2
  elif [ "$(id -u)" != 0 ]; then
    if command -v sudo > /dev/null && sudo -n true 2> /dev/null; then
      as_root=(sudo -n)
    else
      as_root=(no)
      echo "install-peers: not root, and sudo asks for a password: run as root: apt-get install ${missing[*]}" >&2
    fi
  fi
  if [ "${as_root[*]}" != no ]; then
    echo "install-peers: installing ${missing[*]}"
    install() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" > /dev/null; }
    # The package lists may be missing or old.
    install || { "${as_root[@]}" apt-get update -q > /dev/null; install; } ||
      echo "install-peers: apt-get failed" >&2
  fi
fi

status=0
check() {   # peer, its tools and files...
  local peer=$1 tool; shift
  for tool; do
    { command -v "$tool" > /dev/null 2>&1 || [ -e "$tool" ]; } && continue
    echo "install-peers: WITHOUT $peer: no $tool. Its interoperability tests will be SKIPPED." >&2
    [ "${CI:-}" = true ] && status=1
    return
  done
  echo "install-peers: $peer is here"
}
check omniORB omniidl c++ /usr/include/omniORB4/CORBA.h
check JacORB java javac mvn
check Tango python3
check tshark tshark
check tcpdump tcpdump dumpcap
check etcd etcd setpriv
check 'ONC RPC' rpcgen cc /usr/include/tirpc/rpc/rpc.h
check Chromium chromium
check Combat tclsh /usr/share/tcltk/combat0.8
exit $status
