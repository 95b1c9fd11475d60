#!/bin/sh
# build.sh DIRECTORY: JacORB's bench-server and bench-client, where they are older than their sources. Its jars come by Maven into
# DIRECTORY/lib unless they are there. Ends with 3 where Java or Maven is missing, or the jars can not be had.
set -e
here=$(cd "$(dirname "$0")" && pwd)
idl=$here/../../idl
mkdir -p "$1"
out=$(cd "$1" && pwd)
for tool in java javac mvn; do
  command -v $tool >/dev/null || { echo "no $tool: apt-get install default-jdk-headless maven" >&2; exit 3; }
done
if [ ! -d "$out/lib" ]; then
  rm -rf "$out/lib.new"
  mvn -B -q -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$out/lib.new" >"$out/mvn.log" 2>&1 ||
    { echo "Maven can not fetch JacORB's jars: $out/mvn.log" >&2; exit 3; }
  mv "$out/lib.new" "$out/lib"
fi
newest=$(ls -td "$idl/bench.idl" "$idl/demux.idl" "$idl/thousand.idl" "$here"/* "$here"/src/* | head -n 1)
if [ -x "$out/bench-client" ] && [ "$out/bench-client" -nt "$newest" ]; then exit 0; fi
new=$(mktemp -d "$out/bench.XXXXXX")
trap 'rm -rf "$new"' EXIT
mkdir "$new/classes"
# JacORB's IDL compiler knows no macros with arguments, and Java none at all.
awk -f "$here/expand.awk" "$idl/demux.idl" "$idl/thousand.idl" >"$new/expanded.idl"
awk -v servants=1 -f "$here/expand.awk" "$idl/demux.idl" "$idl/thousand.idl" | (cd "$new" && awk '/^final class/ { file = $3 ".java" } { print >file }')
java -cp "$out/lib/*" org.jacorb.idl.parser -all -forceOverwrite -I"$idl" -I"$new" -d "$new/gen" "$here/bench-java.idl"
find "$new" "$here/src" -name '*.java' >"$new/sources"
javac -nowarn -XDignore.symbol.file -Xlint:none --release 17 -encoding UTF-8 -cp "$out/lib/*" -d "$new/classes" "@$new/sources"
rm -rf "$out/bench-classes"
mv "$new/classes" "$out/bench-classes"
for program in Server Client; do
  name=bench-$(echo $program | tr SC sc)
  cat >"$new/$name" <<END
#!/bin/sh
# JAVA_OPTS: options of the virtual machine, and -Djacorb.* settings. It starts faster where it does not verify the classes of JacORB
here=\$(dirname "\$0")
exec java -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -XX:TieredStopAtLevel=\${JAVA_TIER:-4} \${JAVA_OPTS:-} -cp "\$here/bench-classes:\$here/lib/*" Bench$program "\$@"
END
  chmod +x "$new/$name"
  mv "$new/$name" "$out/$name"
done
