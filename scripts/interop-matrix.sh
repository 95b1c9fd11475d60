#!/bin/bash
# interop-matrix.sh [FILE]: the matrix of the interoperability tests as a table. FILE (target/interop/matrix.tsv) has a line for each cell
# that was tried, and one for each time: peer, its role, GIOP version, feature, outcome, with tabs between them.
#
#   ok      all went well
#   known   all but what the peer is known not to do (tests/interop/README.md)
#   skip    not tried: the other side has none of it
#   -       no such cell
#   MISSING nobody wrote the cell: its test failed, or its peer is not here. With CI=true that is an error.
set -eu
file=${1:-$(dirname "$0")/../target/interop/matrix.tsv}
[ -e "$file" ] || file=/dev/null
awk -F'\t' -v ci="${CI:-}" '
  function expect(peer, role, versions, features,   v, f, i, j, n, m) {
    n = split(versions, v, ","); m = split(features, f, ",")
    for (i = 1; i <= n; i++) for (j = 1; j <= m; j++) wanted[peer FS role FS v[i], f[j]] = 1
    for (i = 1; i <= n; i++) row(peer FS role FS v[i])
  }
  function row(name) { if (!(name in known)) { known[name] = ++rows; names[rows] = name } }
  function column(name) { if (!(name in place)) { place[name] = ++columns; titles[columns] = name } }
  function width(name) { return length(name) > 5 ? length(name) : 5 }
  BEGIN {
    all = "ior,corbaloc,types,text,wide text,references,exceptions,oneways,large,forward,forward perm"
    n = split(all ",locate forward,bidirectional,restart,fragments,code sets,ucs-4,unix,tls,anys,dynamic,repository,values,idl 4", first, ",")
    for (i = 1; i <= n; i++) column(first[i])
    for (i = 1; i <= split("omniORB JacORB", peers, " "); i++) {
      expect(peers[i], "server", "1.0,1.1,1.2", all ",restart")
      expect(peers[i], "client", "1.0,1.1,1.2", all ",restart,locate forward")
      expect(peers[i], "server", "1.2", "bidirectional,fragments,tls,anys,dynamic,values")
      expect(peers[i], "client", "1.2", "bidirectional,fragments,tls,anys,dynamic,repository,values")
    }
    expect("omniORB", "server", "1.2", "unix,idl 4,code sets,ucs-4")
    expect("omniORB", "client", "1.2", "unix,idl 4,code sets,ucs-4")
    expect("JacORB", "server", "1.2", "login")
    expect("JacORB", "client", "1.2", "login")
    expect("Tango", "server", "1.0,1.1,1.2", "ior,corbaloc,types,exceptions,anys")
    expect("Tango", "client", "1.0", "corbaloc,types,exceptions,anys")
    expect("zorb", "server", "1.0,1.1,1.2", all)
    rank["ok"] = 1; rank["known"] = 2; rank["skip"] = 3
  }
  NF == 5 {
    name = $1 FS $2 FS $3
    row(name); column($4)
    # Several runs of a cell: what is worst of them.
    if (!((name, $4) in cell) || rank[$5] > rank[cell[name, $4]]) cell[name, $4] = $5
  }
  END {
    for (key in wanted) { split(key, part, SUBSEP); column(part[2]) }
    line = sprintf("%-16s %-4s", "", "GIOP")
    for (c = 1; c <= columns; c++) line = line sprintf("  %-*s", width(titles[c]), titles[c])
    sub(/ +$/, "", line)
    print line
    for (r = 1; r <= rows; r++) {
      split(names[r], part, FS)
      who = part[2] == "server" ? "zorb -> " part[1] : part[1] " -> zorb"
      line = sprintf("%-16s %-4s", who, part[3])
      for (c = 1; c <= columns; c++) {
        what = (names[r], titles[c]) in cell ? cell[names[r], titles[c]] : (names[r], titles[c]) in wanted ? "MISSING" : "-"
        if (what == "MISSING") missing++
        line = line sprintf("  %-*s", width(titles[c]), what)
      }
      sub(/ +$/, "", line)
      print line
    }
    if (missing) printf "%d cells of the matrix are MISSING\n", missing
    exit missing && ci == "true"
  }' "$file"
