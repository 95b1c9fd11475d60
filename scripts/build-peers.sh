#!/bin/bash
# build-peers.sh [--java-ee] [DIRECTORY]: builds the foreign peers of the interoperability tests
# (sources: tests/interop, of the bench crates/ttcp-bench/peers) into the directory, target/interop of this checkout if none
# is given. Only what is out of date is built again. JacORB's jars come by Maven, once.
#
#   omniorb/{peer,bench,value}-{server,client}    programs
#   omniorb/{any,idl4,ties}-peer                  programs, server and client
#   omniorb/ir-browser                            program
#   jacorb/{peer,bench,value}-{server,client}     programs (shell, which starts java)
#   jacorb/{any,login,ties}-peer                  programs, server and client
#   jacorb/ir-browser                             program
#   tango/{device,client}                         programs (shell, which starts python)
#
# and with --java-ee also, which needs JacORB for its IDL compiler,
#
#   glassfish/{peer,value}-{server,client}        programs (shell, which starts java)
#   glassfish/any-peer                            program, server and client
#   yoko/...                                      the same
#
# A peer whose tools or jars are missing is skipped, loudly; with CI=true that is a failure.
# What does not compile is a failure always.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
src=$root/tests/interop
bench=$root/crates/ttcp-bench/peers
java_ee=
if [ "${1:-}" = --java-ee ]; then java_ee=true; shift; fi
out=${1:-$root/target/interop}
mkdir -p "$out"
out=$(cd "$out" && pwd)
exec 9> "$out/.lock"      # two test runs do not build at the same time
flock 9
status=0

skip() {   # peer, why
  echo "build-peers: SKIPPED $1: $2" >&2
  [ "${CI:-}" = true ] && status=1
  return 0
}

have() {   # peer, its tools...
  local peer=$1 tool; shift
  for tool; do
    command -v "$tool" > /dev/null 2>&1 && continue
    skip "$peer" "no $tool (scripts/install-peers.sh installs it)"
    return 1
  done
}

# newer TARGET SOURCE...: is a source newer than the target, or the target missing?
newer() {
  local target=$1 s; shift
  [ -e "$target" ] || return 0
  for s; do [ "$s" -nt "$target" ] && return 0; done
  return 1
}

# Files that do not compile leave no target behind: each is made beside and moved.
omniorb() {
  local dir=$out/omniorb unit
  local flags=(-std=c++17 -O2 -Wall -Wno-switch-bool -I"$dir/gen" -I"$src/omniorb")
  local libs=(-lomniDynamic4 -lomnisslTP4 -lomniORB4 -lomnithread -lomniCodeSets4 -lssl -lcrypto -pthread)
  mkdir -p "$dir/gen" "$dir/obj"
  for unit in types extras anys values idl4 ties; do
    local any=()
    case $unit in anys | idl4) any=(-Wba) ;; esac   # with anys and type codes
    if newer "$dir/gen/$unit.hh" "$src/idl/$unit.idl"; then
      rm -f "$dir/gen/$unit.hh"
      mkdir -p "$dir/gen.new"   # made beside, so that a failure leaves nothing behind
      omniidl -bcxx "${any[@]}" -C"$dir/gen.new" "$src/idl/$unit.idl"
      mv "$dir/gen.new/$unit"*SK.cc "$dir/gen.new/$unit.hh" "$dir/gen/"
    fi
    compile "$dir/obj/${unit}SK.o" "$dir/gen/${unit}SK.cc" "$dir/gen/$unit.hh"
  done
  for unit in anys idl4; do
    compile "$dir/obj/${unit}DynSK.o" "$dir/gen/${unit}DynSK.cc" "$dir/gen/$unit.hh"
  done
  local headers=("$src"/omniorb/*.h "$dir"/gen/*.hh)
  for unit in "$src"/omniorb/*.cc; do
    compile "$dir/obj/$(basename "$unit" .cc).o" "$unit" "${headers[@]}"
  done
  link peer-server peer_server peer typesSK extrasSK
  link peer-client peer_client peer record probes checks_echo checks_calls checks_references typesSK extrasSK
  link value-server value_server valuesSK
  link value-client value_client valuesSK
  link any-peer any_peer anysSK anysDynSK
  link idl4-peer idl4_peer idl4SK idl4DynSK
  link ties-peer ties_peer tiesSK
  link ir-browser ir_browser
  nice "$bench/omniorb/build.sh" "$dir"
}
compile() {   # object, source, headers...
  newer "$@" || return 0
  echo "build-peers: $(basename "$2")"
  nice c++ "${flags[@]}" -c "$2" -o "$1.new" 2> "$1.log" || { cat "$1.log" >&2; return 1; }
  mv "$1.new" "$1"
}
link() {      # program, objects...
  local program=$dir/$1; shift
  local objects=("${@/#/$dir/obj/}")
  objects=("${objects[@]/%/.o}")
  newer "$program" "${objects[@]}" || return 0
  c++ -o "$program.new" "${objects[@]}" "${libs[@]}"
  mv "$program.new" "$program"
}

# jars NAME POM: an ORB's jars, in the directory lib of its peers.
jars() {
  newer "$dir/lib" "$2" || return 0
  echo "build-peers: $1's jars by Maven"
  rm -rf "${dir:?}/lib" "$dir/lib.new"
  if ! mvn -B -q -f "$2" dependency:copy-dependencies -DoutputDirectory="$dir/lib.new" > "$dir/mvn.log" 2>&1; then
    skip "$1" "Maven cannot fetch its jars ($dir/mvn.log)"
    return 1
  fi
  mv "$dir/lib.new" "$dir/lib"
  touch "$dir/lib"
}

jacorb() {
  local dir=$out/jacorb unit
  mkdir -p "$dir"
  jars JacORB "$bench/jacorb/pom.xml" || return 0
  if newer "$dir/classes" "$dir/lib" "$src"/idl/{types,guard,values,anys,orb,ties,login}.idl "$src"/jacorb/src/*.java; then
    echo "build-peers: JacORB's peers"
    rm -rf "$dir/gen" "$dir/classes" "$dir/classes.new"
    mkdir -p "$dir/gen" "$dir/classes.new"
    for unit in types guard values ties login; do
      java -cp "$dir/lib/*" org.jacorb.idl.parser -all -forceOverwrite -I"$src/idl" -d "$dir/gen" "$src/idl/$unit.idl"
    done
    # Without what it includes, which JacORB has.
    java -cp "$dir/lib/*" org.jacorb.idl.parser -DJACORB -forceOverwrite -I"$src/idl" -d "$dir/gen" "$src/idl/anys.idl"
    find "$dir/gen" "$src/jacorb/src" -name '*.java' > "$dir/sources"
    nice javac -nowarn -XDignore.symbol.file -Xlint:none --release 17 -encoding UTF-8 -cp "$dir/lib/*" -d "$dir/classes.new" @"$dir/sources"
    mv "$dir/classes.new" "$dir/classes"
    touch "$dir/classes"
  fi
  launcher peer-server PeerServer
  launcher peer-client PeerClient
  launcher value-server ValueServer
  launcher value-client ValueClient
  nice "$bench/jacorb/build.sh" "$dir"
  launcher any-peer AnyPeer
  launcher login-peer LoginPeer
  launcher ties-peer TiesPeer
  launcher ir-browser IrBrowser
}
launcher() {   # program, class
  cat > "$dir/$1.new" <<END
#!/bin/sh
# JAVA_OPTS: options of the virtual machine, and -D settings of the ORB. It starts faster where it does not verify the classes of the ORB
here=\$(dirname "\$0")
exec java -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -XX:TieredStopAtLevel=\${JAVA_TIER:-4} \${JAVA_OPTS:-} -cp "\$here/classes:\$here/lib/*" $2 "\$@"
END
  chmod +x "$dir/$1.new"
  mv "$dir/$1.new" "$dir/$1"
}

# An ORB of Java EE servers runs the peers of JacORB, with a class Orbs of its own.
java_ee() {   # its directory, its name
  local dir=$out/$1 unit
  mkdir -p "$dir"
  jars "$2" "$src/$1/pom.xml" || return 0
  local sources=("$src/$1/src/Orbs.java" "$src"/java_ee/src/*.java)
  for unit in AnyPeer Checks Echo Forwarding GuardImpl Options PeerClient PeerImpl PeerServer Recorder Reference ReferenceChecks Samples \
      ValueClient ValueServer; do
    sources+=("$src/jacorb/src/$unit.java")
  done
  if newer "$dir/classes" "$dir/lib" "$out/jacorb/classes" "${sources[@]}"; then
    echo "build-peers: $2's peers"
    rm -rf "$dir/gen" "$dir/classes" "$dir/classes.new"
    mkdir -p "$dir/gen" "$dir/classes.new"
    cp -r "$out"/jacorb/gen/{Anys,Interop,InteropValues} "$dir/gen/"
    # What only JacORB has: fixed values with so many digits, anys that take what is written to their streams, and know an object's type.
    find "$dir/gen" -name '*Helper.java' -print0 | xargs -0 sed -i -E \
      -e 's/(_in)\.read_fixed\(/decimal.Packed.read(\1, /; s/(_out)\.write_fixed\(/decimal.Packed.write(\1, /' \
      -e 's/write ?\( ?any\.create_output_stream ?\(\), ?s\);/var out = any.create_output_stream(); write(out, s); any.read_value(out.create_input_stream(), type());/' \
      -e 's/insert_Object ?\(s\)/insert_Object(s, type())/'
    find "$dir/gen" -name '*.java' > "$dir/sources"
    printf '%s\n' "${sources[@]}" >> "$dir/sources"
    nice javac -nowarn -XDignore.symbol.file -Xlint:none --release 17 -encoding UTF-8 -cp "$dir/lib/*" -d "$dir/classes.new" @"$dir/sources"
    mv "$dir/classes.new" "$dir/classes"
    touch "$dir/classes"
  fi
  launcher peer-server PeerServer
  launcher peer-client PeerClient
  launcher value-server ValueServer
  launcher value-client ValueClient
  launcher any-peer AnyPeer
}

# PyTango brings Tango's library and an omniORB of its own, which stay in this directory.
tango() {
  local dir=$out/tango program
  mkdir -p "$dir"
  if newer "$dir/venv" "$src/tango/requirements.txt"; then
    echo "build-peers: PyTango by pip"
    rm -rf "$dir/venv" "$dir/venv.new"
    if ! { python3 -m venv "$dir/venv.new" && "$dir/venv.new/bin/python" -m pip install -q --disable-pip-version-check \
        --only-binary :all: -r "$src/tango/requirements.txt"; } > "$dir/pip.log" 2>&1; then
      skip Tango "pip can not install PyTango ($dir/pip.log)"
      rm -rf "$dir/venv.new" "$dir/device" "$dir/client"
      return
    fi
    mv "$dir/venv.new" "$dir/venv"
    touch "$dir/venv"
  fi
  for program in device client; do
    cat > "$dir/$program.new" <<END
#!/bin/sh
exec "\$(dirname "\$0")/venv/bin/python" -B "$src/tango/$program.py" "\$@"
END
    chmod +x "$dir/$program.new"
    mv "$dir/$program.new" "$dir/$program"
  done
}

if have omniORB omniidl c++; then
  if echo '#include <omniORB4/CORBA.h>' | c++ -E -x c++ - > /dev/null 2>&1; then omniorb
  else skip omniORB "no headers (scripts/install-peers.sh installs libomniorb4-dev)"; fi
fi
if have JacORB java javac mvn; then
  jacorb
  if [ -n "$java_ee" ] && [ -d "$out/jacorb/classes" ]; then
    java_ee glassfish GlassFish
    java_ee yoko Yoko
  fi
fi
if have Tango python3; then
  if python3 -c 'import ensurepip, venv' 2> /dev/null; then tango
  else skip Tango "python3 has no venv (scripts/install-peers.sh installs python3-venv)"; fi
fi
exit $status
