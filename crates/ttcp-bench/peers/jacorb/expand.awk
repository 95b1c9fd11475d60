# Writes out the macros of macros.idl, which are interfaces of so many operations: as IDL, or with servants=1 as servants in Java that count their
# calls, that of Wide too.
BEGIN {
  count["TEN"] = 10; count["HUNDRED"] = 100; count["THOUSAND"] = 1000
  if (servants) servant("Wide", 100)
}
/^#/ || continued { continued = /\\$/; next }
/^interface .*[A-Z] \(/ {
  name = $2
  match($0, /(TEN|HUNDRED|THOUSAND) \(/)
  many = count[substr($0, RSTART, RLENGTH - 2)]
  if (servants) { servant(name, many); next }
  print "interface " name " {"
  for (i = 0; i < many; i++) printf "  %svoid m%03d ();\n", /oneway/ ? "oneway " : "", i
  print "};"
  next
}
!servants
function servant(name, many) {
  print "final class " name "Impl extends bench." name "POA {"
  for (i = 0; i < many; i++) printf "    public void m%03d() { BenchServer.%s.getAndIncrement(); }\n", i, i + 1 < many ? "others" : "lasts"
  print "}"
}
