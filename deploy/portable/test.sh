#!/usr/bin/env bash
# Tests build.sh's output. `test.sh --help` says how. The last line is `N passed, N failed`.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: deploy/portable/test.sh [--tensorflow PYTHON] [--suite SUITE]... [--mirror URL]

Tests the files of build.sh in build-portable/dist/:

  - each library and program needs glibc 2.31 or older and nothing else, and libspillway.so
    shows the functions of spillway.h alone
  - on a bare Debian with Python (made with debootstrap, kept in build-portable/roots/): the wheel
    is installed without a network, rewrites in process and on the tar file's server, and gives the
    bytes that the program gives
  - the program gives the bytes that build/bin/spillway gives, also from a server over TLS; the tests
    of the Python package pass with this library and these programs
  - beside TensorFlow, with --tensorflow: in one process with it, loaded before and after it, a
    rewritten graph trains to the same bits, and the stubs call a server by grpcio; the plug-in's
    wheel is found and plans

  --tensorflow PYTHON   a Python with TensorFlow 2.15 or later
  --suite SUITE         Debian's suites to test on (default: bullseye, bookworm, trixie)
  --mirror URL          Debian's packages (default: as build.sh)

Needs root and debootstrap for the bare systems, and build/bin/spillway to compare with. Exit code
0: all passed; 1: something failed; 2: bad usage.
USAGE
}

fail() {
  echo "deploy/portable/test.sh: $1" >&2
  exit "${2:-1}"
}

tensorflow='' mirror='' suites=()
while [[ $# -gt 0 ]]; do
  case $1 in
    -h|--help) usage; exit ;;
    --tensorflow|--suite|--mirror)
      [[ $# -gt 1 ]] || fail "$1 needs a value; see deploy/portable/test.sh --help" 2 ;;
    *) fail "unknown argument $1; see deploy/portable/test.sh --help" 2 ;;
  esac
  case $1 in
    --tensorflow) tensorflow=$2 ;;
    --suite) suites+=("$2") ;;
    --mirror) mirror=$2 ;;
  esac
  shift 2
done
[[ ${#suites[@]} -gt 0 ]] || suites=(bullseye bookworm trixie)
[[ -z $tensorflow ]] || tensorflow=$(command -v "$tensorflow") || fail "--tensorflow: no such program" 2

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/deploy/checks.sh
source tests/deploy/checks.sh
readonly here=deploy/portable folder=$PWD/build-portable
readonly dist=$folder/dist
readonly newest_glibc=2.31
readonly options=(--quiet --strategy scope --fuse-swapins --lb 5 --min-tensor-bytes 4096)
readonly small=tests/graphs/cond_v1/graph_shapes.pb large=tests/graphs/resnet50_tf1/graph_shapes.pb
# The tests talk to servers on this machine, never through a proxy.
export no_proxy=127.0.0.1,localhost no_grpc_proxy=127.0.0.1,localhost

wheels=("$dist"/spillway_lms-*-manylinux*_x86_64.whl)
tars=("$dist"/spillway-*-linux-x86_64.tar.gz)
[[ -e ${wheels[0]} && -e ${tars[0]} ]] || fail "there is no wheel and tar file in $dist: run build.sh first"
[[ ${#wheels[@]} == 1 && ${#tars[@]} == 1 ]] || fail "$dist has several versions: remove the old ones"
if [[ -n $tensorflow ]]; then
  ls "$dist"/spillway_tensorflow-*-manylinux*_x86_64.whl >/dev/null 2>&1 ||
    fail "there is no wheel of the plug-in in $dist: run build.sh --tensorflow PYTHON first"
fi

work=$(mktemp -d -t spillway-portable-XXXXXX)
readonly work
server=
clean_up() {
  if [[ -n $server ]]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

tar -C "$work" -xzf "${tars[0]}"
# The package alone, and with the plug-in, which TensorFlow looks for in folders of sys.path of this name.
mkdir "$work"/{alone,site-packages}
for wheel in "$dist"/*.whl; do
  python3 -m zipfile -e "$wheel" "$work/site-packages"
done
python3 -m zipfile -e "${wheels[0]}" "$work/alone"
programs=$(echo "$work"/spillway-*/bin)
library=$work/alone/spillway/lib/libspillway.so.0

needs_glibc_alone() {
  local needed
  needed=$(readelf -dW "$1" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]$/\1/p')
  [[ -n $needed ]] || { echo "readelf found no dependency"; return 1; }
  echo "$needed"
  ! grep -vE '^(lib(c|m|pthread|dl|rt)\.so\.[0-9]|ld-linux-x86-64\.so\.2)$' <<<"$needed"
}

# The newest version of a symbol that it requires.
glibc_of() {
  readelf -VW "$1" | grep -oE 'GLIBC_2\.[0-9]+' | sort -uV | tail -n 1 | sed 's/GLIBC_//'
}

asks_for_old_glibc() {
  local version
  version=$(glibc_of "$1")
  echo "it needs glibc $version"
  [[ -n $version && $(printf '%s\n' "$version" "$newest_glibc" | sort -V | tail -n 1) == "$newest_glibc" ]]
}

shows_the_c_api() {
  diff <(grep -oE '\bspillway_[a-z0-9_]+\(' client_lib/include/spillway/spillway.h | tr -d '(' | sort -u) \
    <(nm -D --defined-only "$1" | sed -E 's/^[0-9a-f]+ . //; s/@.*//' | sort -u)
}

same_bytes() {
  rm -f "$work/ours.pb"
  "$programs/spillway" rewrite "$1" -o "$work/ours.pb" "${@:2}" &&
    build/bin/spillway rewrite "$1" -o "$work/theirs.pb" "${@:2}" &&
    cmp "$work/ours.pb" "$work/theirs.pb" || return 1
  ! cmp -s "$work/ours.pb" "$1" || { echo "nothing was rewritten"; return 1; }
}

# The linked OpenSSL and c-ares: a server by its name, with a certificate.
speaks_tls() {
  local place=$work/tls code=0
  mkdir "$place"
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout "$place/key.pem" -out "$place/cert.pem" 2>"$place/openssl" ||
    { cat "$place/openssl"; return 1; }
  mkfifo "$place/out"
  "$programs/spillwayd" --listen 127.0.0.1:0 --metrics-listen none --tls-cert "$place/cert.pem" \
    --tls-key "$place/key.pem" >"$place/out" 2>"$place/log" &
  local pid=$! line
  read -r line <"$place/out" || { cat "$place/log"; return 1; }
  "$programs/spillway" rewrite "$small" -o "$place/tls.pb" "${options[@]}" \
    --server "localhost:${line##*:}" --tls-ca "$place/cert.pem" &&
    cmp "$place/tls.pb" "$work/expected.pb" || code=1
  # The certificate is checked: without it, no call is made.
  ! "$programs/spillway" rewrite "$small" -o "$place/none.pb" "${options[@]}" --timeout 5s \
    --server "localhost:${line##*:}" --tls >"$place/refused" 2>&1 || { echo "it accepts any certificate"; code=1; }
  kill "$pid"
  wait "$pid" || code=1
  return "$code"
}

# The tests of the Python package, with this library and these programs. Tests of the library's
# other half must fail: it is missing.
passes_the_package_tests() {
  local build=$work/build
  mkdir -p "$build/lib"
  cp "$library" "$build/lib/"
  cp -r "$programs" "$build/bin"
  SPILLWAY_BUILD=$build python3 tests/client_lib/python/run.py >"$work/package" 2>&1 || true
  tail -n 1 "$work/package"
  grep -qE '^[1-9][0-9]+ passed' "$work/package" || { tail -n 20 "$work/package"; return 1; }
  diff <(sed -nE 's/^(test_[a-z_]+) .*\.\.\. (FAIL|ERROR)$/\1/p' "$work/package" | sort) - <<'HALVES'
test_a_library_of_something_else
test_an_incomplete_library_is_refused
test_it_works_in_a_clean_environment
test_without_the_client_library_beside_it
HALVES
}

# A root of SUITE with Python, made before or new.
bare_root() {
  local suite=$1 root=$folder/roots/$1 from=$mirror
  [[ ! -e $root/etc/os-release || ! -x $root/usr/bin/python3 ]] || return 0
  if [[ -z $from ]]; then
    # shellcheck disable=SC2016  # apt's variables, not ours.
    from=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' \
      2>/dev/null | sed -nE 's/^bookworm main ([^ ]+)$/\1/p' | head -n 1 || true)
  fi
  rm -rf --one-file-system "$root"
  mkdir -p "$root"
  debootstrap --variant=minbase --include=python3-venv "$suite" "$root" \
    "${from:-http://deb.debian.org/debian}" >"$folder/logs/debootstrap-$suite.log" 2>&1 ||
    { tail -n 3 "$folder/logs/debootstrap-$suite.log"; rm -rf --one-file-system "$root"; return 1; }
}

in_root() {
  local root=$folder/roots/$1
  rm -rf "$root/try"
  mkdir "$root/try"
  cp "${wheels[0]}" "${tars[0]}" "$here/in_root.sh" "$here/use_wheel.py" "$root/try/"
  cp "$small" "$root/try/graph.pb"
  cp "$work/expected.pb" "$root/try/expected.pb"
  # shellcheck disable=SC2016
  unshare --mount --pid --fork --kill-child bash -euc '
    mount -t proc proc "$1/proc"
    mount --bind /dev "$1/dev"
    exec chroot "$1" /usr/bin/env -i PATH=/usr/bin:/bin LANG=C.UTF-8 HOME=/root \
      bash /try/in_root.sh' in_root "$root" </dev/null
}

beside_tensorflow() {
  env -u SPILLWAY_LIBRARY PYTHONPATH="$work/alone" CUDA_VISIBLE_DEVICES=-1 TF_CPP_MIN_LOG_LEVEL=2 \
    TF_ENABLE_ONEDNN_OPTS=0 "$tensorflow" "$here/beside_tensorflow.py" "$1" "$address"
}

# The session of tests/, unchanged, with only the settings for a machine without a GPU.
plugin_plans() {
  local program=tests/client_lib/tensorflow_plugin/programs/session.py
  local variables=(PYTHONPATH="$work/site-packages" CUDA_VISIBLE_DEVICES=-1 TF_CPP_MIN_LOG_LEVEL=2
    TF_ENABLE_ONEDNN_OPTS=0)
  local drive=(tests/client_lib/tensorflow_plugin/drive.py "$program")
  env -u SPILLWAY_LIBRARY "${variables[@]}" SPILLWAY_PLUGIN=off "$tensorflow" "${drive[@]}" \
    >"$work/plain" 2>&1 || { tail -n 5 "$work/plain"; return 1; }
  env -u SPILLWAY_LIBRARY "${variables[@]}" SPILLWAY_GPU_STAND_IN=CPU:0 SPILLWAY_CPU_DEVICE=CPU:1 \
    SPILLWAY_GPU_MEMORY_BYTES=310KiB SPILLWAY_JOB_BATCH_SIZE=128 "$tensorflow" "${drive[@]}" \
    >"$work/planned" 2>&1 || { tail -n 5 "$work/planned"; return 1; }
  grep '^spillway: graph of .*: fits with [0-9]* swap' "$work/planned" || { cat "$work/planned"; return 1; }
  diff <(grep '^RESULT' "$work/plain") <(grep '^RESULT' "$work/planned")
}

check "the library needs glibc alone" needs_glibc_alone "$library"
check "the library needs no newer glibc" asks_for_old_glibc "$library"
check "the library shows the C API alone" shows_the_c_api "$library"
for program in spillway spillwayd; do
  check "$program needs glibc alone" needs_glibc_alone "$programs/$program"
  check "$program needs no newer glibc" asks_for_old_glibc "$programs/$program"
done
for plugin in "$work"/site-packages/tensorflow-plugins/*.so; do
  [[ -e $plugin ]] || continue
  check "${plugin##*/} needs glibc alone" needs_glibc_alone "$plugin"
  check "${plugin##*/} needs no newer glibc" asks_for_old_glibc "$plugin"
done
echo "        newest glibc needed: $(glibc_of "$library") (library), $(glibc_of "$programs/spillwayd") (spillwayd)"
check "the licenses are in the wheel" test -s "$work/alone/spillway/lib/licenses/grpc"

"$programs/spillway" rewrite "$small" -o "$work/expected.pb" "${options[@]}"
if [[ -x build/bin/spillway ]]; then
  check "the bytes of Debian's build: scope" same_bytes "$small" "${options[@]}"
  check "the bytes of Debian's build: level" same_bytes "$large" --quiet --strategy level --hardware p100_pcie
  check "the bytes of Debian's build: budget" same_bytes "$large" --quiet --hardware p100_pcie
else
  echo "skipped: there is no build/bin/spillway to compare with"
fi

check "TLS, and a server by its name" speaks_tls
check "the tests of the Python package" passes_the_package_tests
for suite in "${suites[@]}"; do
  check "a bare Debian $suite is made" bare_root "$suite"
  check "wheel, program and server on a bare Debian $suite" in_root "$suite"
done

if [[ -n $tensorflow ]]; then
  mkfifo "$work/out"
  "$programs/spillwayd" --listen 127.0.0.1:0 --metrics-listen none >"$work/out" 2>"$work/log" &
  server=$!
  read -r line <"$work/out" || fail "spillwayd did not start: $(cat "$work/log")"
  address=${line##* }
  check "beside TensorFlow, loaded before it" beside_tensorflow spillway
  check "beside TensorFlow, loaded after it" beside_tensorflow tensorflow
  check "the plug-in is found, and plans" plugin_plans
fi

echo
echo "$passed passed, $failed failed"
[[ $failed == 0 ]]
