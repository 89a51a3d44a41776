#!/usr/bin/env bash
# Installs the build into a folder, moves it, and builds and runs an outside project against it: with
# CMake and pkg-config, shared and static, without a warning; with the recipes of the documents.
# Usage: install_test.sh BUILD_DIR SOURCE_DIR CMAKE
set -euo pipefail

readonly build=$1 source=$2 cmake=$3
readonly consumer=$source/tests/integration/consumer
readonly graph=$source/tests/graphs/mnist_deep/graph_shapes.pb
work=$(mktemp -d)
readonly work
server=
trap '[[ -z $server ]] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
unset LD_LIBRARY_PATH PKG_CONFIG_PATH DESTDIR

step() {
  echo "== $1"
}

fail() {
  echo "FAILED: $1" >&2
  exit 1
}

# run_all FOLDER: the three programs work.
run_all() {
  "$1/consumer_cc" "$graph" | grep -q '^tensors swapped: [1-9]' || fail "$1/consumer_cc"
  "$1/consumer_c" "$graph" | grep -q '^bytes: [1-9]' || fail "$1/consumer_c"
  "$1/consumer_message" "$graph" | grep -q '^bytes: [1-9]' || fail "$1/consumer_message"
}

# links FILE LIBRARY yes|no
links() {
  local found=no
  if readelf -d "$1" | grep -q "NEEDED.*\[$2\]"; then found=yes; fi
  [[ $found == "$3" ]] || fail "$1 links $2: $found"
}

# with_cmake KIND
with_cmake() {
  "$cmake" -S "$consumer" -B "$work/$1" -DKIND="$1" -DCMAKE_PREFIX_PATH="$work/moved" \
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_COMPILE_WARNING_AS_ERROR=ON >"$work/log" 2>&1 &&
    "$cmake" --build "$work/$1" >>"$work/log" 2>&1 || { cat "$work/log"; fail "CMake, $1"; }
  run_all "$work/$1"
}

# with_pkg_config PREFIX FOLDER [--static]
with_pkg_config() {
  local prefix=$1 out=$2 rpath=()
  shift 2
  PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name spillway.pc)")
  export PKG_CONFIG_PATH
  local c cc
  read -ra c < <(pkg-config "$@" --cflags --libs spillway)
  read -ra cc < <(pkg-config "$@" --cflags --libs spillway-client)
  rpath=("-Wl,-rpath,$(pkg-config --variable=libdir spillway)")
  mkdir "$out"
  gcc -std=c99 -pedantic -Wall -Wextra -Werror "$consumer/main.c" -o "$out/consumer_c" \
    "${c[@]}" "${rpath[@]}"
  g++ -std=c++11 -pedantic -Wall -Wextra -Werror "$consumer/message.cc" \
    -o "$out/consumer_message" "${c[@]}" "${rpath[@]}"
  g++ -std=c++17 -pedantic -Wall -Wextra -Werror "$consumer/main.cc" -o "$out/consumer_cc" \
    "${cc[@]}" "${rpath[@]}"
  run_all "$out"
}

step "install, and move the tree"
"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/moved"
"$work/moved/bin/spillway" --version | grep -q '^spillway [0-9]' || fail "spillway --version"
"$work/moved/bin/spillwayd" --version >/dev/null || fail "spillwayd --version"
[[ -f $work/moved/share/spillway/proto/spillway/v1/rewrite_service.proto ]] || fail "no .proto files"
for script in bash-completion/completions/spillway zsh/site-functions/_spillway \
    fish/vendor_completions.d/spillway.fish; do
  grep -q -e already-rewritten "$work/moved/share/$script" || fail "no completion $script"
done
! grep -rqF -e "$build" -e "$work/first" "$work/moved/lib" --include='*.cmake' --include='*.pc' ||
  fail "an installed file names the build folder"

step "CMake, shared"
with_cmake shared
links "$work/shared/consumer_cc" libspillway_client.so.0 yes
links "$work/shared/consumer_c" libspillway.so.0 yes
links "$work/shared/consumer_c" libspillway_client.so.0 no
links "$work/shared/consumer_c" libprotobuf.so.32 no

step "CMake, static"
with_cmake static
links "$work/static/consumer_cc" libspillway_client.so.0 no
links "$work/static/consumer_c" libspillway.so.0 no

step "CMake refuses another minor version"
sed 's/find_package(spillway 0.1 /find_package(spillway 0.9 /' "$consumer/CMakeLists.txt" \
  >"$work/CMakeLists.txt"
cp "$consumer"/*.c* "$work/"
! "$cmake" -S "$work" -B "$work/wrong" -DCMAKE_PREFIX_PATH="$work/moved" >"$work/log" 2>&1 ||
  fail "version 0.9 was found"
grep -q 'requested version "0.9"' "$work/log" || fail "no word of the version"

step "pkg-config, shared"
with_pkg_config "$work/moved" "$work/pc_shared"
links "$work/pc_shared/consumer_cc" libspillway_client.so.0 yes
links "$work/pc_shared/consumer_c" libspillway.so.0 yes

step "recipes"
"$source/tests/integration/recipes.py" "$source/client_lib/RECIPES.md" "unix:$work/server" \
  >"$work/recipes.cc"
read -ra cc < <(pkg-config --cflags --libs spillway-client)
g++ -std=c++17 -pedantic -Wall -Wextra -Werror "$work/recipes.cc" -o "$work/recipes" "${cc[@]}" \
  "-Wl,-rpath,$(pkg-config --variable=libdir spillway)"
mkfifo "$work/ready"
"$work/moved/bin/spillwayd" --listen "unix:$work/server" --metrics-listen none \
  >"$work/ready" 2>"$work/log" &
server=$!
read -r _ <"$work/ready" || { cat "$work/log"; fail "spillwayd"; }
"$work/recipes" "$graph" >"$work/recipes.out" 2>&1 || { cat "$work/recipes.out"; fail "recipes"; }
kill "$server"
wait "$server" || true
server=

step "as a part of another project's tree"
"$cmake" -S "$consumer" -B "$work/subdirectory" -DKIND="$source" >"$work/log" 2>&1 ||
  { cat "$work/log"; fail "add_subdirectory"; }
"$cmake" --build "$work/subdirectory" --target help >"$work/targets"
grep -q consumer_cc "$work/targets" || fail "no consumer_cc"
! grep -q cli_unit_test "$work/targets" || fail "spillway's tests are built in another project"

step "pkg-config, static"
cp -r "$work/moved" "$work/archives"
find "$work/archives" -name '*.so*' -delete
with_pkg_config "$work/archives" "$work/pc_static" --static
links "$work/pc_static/consumer_cc" libspillway_client.so.0 no
links "$work/pc_static/consumer_c" libspillway.so.0 no

step "without the client library the C API says so"
cp -r "$work/moved" "$work/alone"
find "$work/alone" -name 'libspillway_client.so*' -delete
alone=$(dirname "$(find "$work/alone" -name 'libspillway.so.0')")
code=0
LD_LIBRARY_PATH=$alone "$work/pc_shared/consumer_c" "$graph" 2>"$work/log" || code=$?
# The rpath of the program comes after LD_LIBRARY_PATH, as the linker writes DT_RUNPATH.
[[ $code == 1 ]] && grep -q 'client library cannot be loaded' "$work/log" ||
  { cat "$work/log"; fail "exit code $code without libspillway_client.so.0"; }

step "DESTDIR"
DESTDIR=$work/dest "$cmake" --install "$build" --prefix /opt/spillway >/dev/null
[[ -x $work/dest/opt/spillway/bin/spillway && ! -e /opt/spillway ]] || fail "DESTDIR"

echo "passed"
