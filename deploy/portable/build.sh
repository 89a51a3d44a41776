#!/usr/bin/env bash
# Builds wheels and programs that need nothing of the system but glibc. `build.sh --help` says more.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: deploy/portable/build.sh [--tensorflow PYTHON] [--jobs N] [--mirror URL]

Makes, in build-portable/dist/, for any Linux on x86-64 with glibc 2.31 or later:

  spillway_lms-VERSION-py3-none-manylinux_....whl          the Python package and the command spillway
  spillway-VERSION-linux-x86_64.tar.gz                     spillway and spillwayd
  spillway_tensorflow-VERSION-py3-none-manylinux_....whl   the plug-in, with --tensorflow
  sources.txt                                              the versions of the libraries linked in

All that they need is linked in and hidden: gRPC, protobuf, Abseil, RE2, c-ares, OpenSSL, zlib,
prometheus-cpp, CivetWeb and the C++ library. Debian's archives of these are not
position-independent, so they are built from Debian 12's source packages, with clang 14 and the
headers and libraries of Debian 11. It takes Debian 12 (deploy/install_deps.sh tests), its package
mirror, PyPI, some 3 GB and, the first time, about an hour of one core. What has been built stays
in build-portable/ and is not built again.

  --tensorflow PYTHON   a Python with TensorFlow 2.15 or later, whose C headers the plug-in needs
  --jobs N              the maximum number of compilers at a time (default: one for each core)
  --mirror URL          Debian's packages (default: the source of bookworm in this machine's apt, or
                        http://deb.debian.org/debian)

deploy/portable/test.sh tests the files. Exit code 0: all was made; 1: something failed; 2: bad
usage.
USAGE
}

fail() {
  echo "deploy/portable/build.sh: $1" >&2
  exit "${2:-1}"
}

tensorflow='' mirror='' jobs=$(nproc)
while [[ $# -gt 0 ]]; do
  case $1 in
    -h|--help) usage; exit ;;
    --tensorflow|--jobs|--mirror)
      [[ $# -gt 1 ]] || fail "$1 needs a value; see deploy/portable/build.sh --help" 2 ;;
    *) fail "unknown argument $1; see deploy/portable/build.sh --help" 2 ;;
  esac
  case $1 in
    --tensorflow) tensorflow=$2 ;;
    --jobs) jobs=$2 ;;
    --mirror) mirror=$2 ;;
  esac
  shift 2
done
[[ $jobs =~ ^[1-9][0-9]*$ ]] || fail "--jobs needs a number of at least 1, not '$jobs'" 2
[[ -z $tensorflow ]] || tensorflow=$(command -v "$tensorflow") || fail "--tensorflow: no such program" 2
[[ $(uname -m) == x86_64 ]] || fail "it needs x86-64, and builds for x86-64"

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=deploy/steps.sh
source deploy/steps.sh
readonly root=$PWD folder=$PWD/build-portable tensorflow jobs
readonly prefix=$folder/prefix sysroot=$folder/sysroot logs=$folder/logs dist=$folder/dist
# The source of the C library: the oldest Debian on the mirrors. Its glibc is 2.31.
readonly old_suite=bullseye
readonly old_packages=(libc6 libc6-dev linux-libc-dev libcrypt1 libcrypt-dev libstdc++-10-dev
  libgcc-10-dev gcc-10-base)
# The suite of the sources: that of other builds.
readonly suite=bookworm
readonly sources=(abseil c-ares civetweb grpc openssl prometheus-cpp protobuf re2 zlib)
# Headers alone, as deploy/install_deps.sh installs them.
readonly headers=(CLI fmt nlohmann spdlog)
readonly header_configs=(CLI11 nlohmann_json)
# Libraries of the system that may be needed: all are glibc's.
readonly glibc='^(libc\.so\.6|libm\.so\.6|libpthread\.so\.0|libdl\.so\.2|librt\.so\.1|ld-linux-x86-64\.so\.2)$'

for tool in clang-14 clang++-14 cmake ninja dpkg-source apt-get protoc grpc_cpp_plugin \
    grpc_python_plugin perl make python3 readelf strip; do
  command -v "$tool" >/dev/null || fail "$tool is missing: deploy/install_deps.sh tests"
done
for name in "${headers[@]}"; do
  [[ -d /usr/include/$name ]] || fail "/usr/include/$name is missing: deploy/install_deps.sh tests"
done

mkdir -p "$folder"/{bin,src,build,stamps} "$prefix"/{include,lib/pkgconfig,share/cmake} "$logs"
export PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig PKG_CONFIG_PATH=
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
  export CCACHE_DEPEND=${CCACHE_DEPEND-1}
  export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS-pch_defines,time_macros}
  # The compiler is a script here, rewritten with each sysroot.
  export CCACHE_COMPILERCHECK='%compiler% -v'
fi

# once NAME COMMAND...: unless it has been done before; the end of its log is shown if it fails.
once() {
  local name=$1 log=$logs/$1.log
  shift
  [[ ! -e $folder/stamps/$name ]] || return 0
  heading "$name (log: build-portable/logs/$name.log)"
  local code=0
  # Not in a condition: `set -e` would not hold in there.
  set +e
  (set -e; "$@") >"$log" 2>&1 </dev/null
  code=$?
  set -e
  if [[ $code != 0 ]]; then
    grep -E -A 3 -m 5 '(error|Error)[: ]' "$log" || tail -n 30 "$log"
    fail "$name failed; the full log is $log"
  fi
  touch "$folder/stamps/$name"
  end_section "$name"
}

# apt with its own lists and cache: the machine's stay unchanged.
own_apt() {
  local tool=$1
  shift
  "$tool" -o Dir::Etc::SourceList="$folder/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State="$folder/apt/state" -o Dir::State::status=/dev/null -o Dir::Cache="$folder/apt/cache" \
    -o APT::Sandbox::User=root -o APT::Architectures=amd64 "$@"
}

fetch_lists() {
  local from=$mirror security=http://deb.debian.org/debian-security
  if [[ -z $from ]]; then
    # shellcheck disable=SC2016  # apt's variables, not ours.
    from=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' \
      2>/dev/null | sed -nE "s/^$suite main ([^ ]+)\$/\1/p" | head -n 1 || true)
    from=${from:-http://deb.debian.org/debian}
  fi
  [[ $from != */debian?(/) ]] || security=${from%/}-security
  local signed='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
  mkdir -p "$folder"/apt/{state/lists/partial,cache/archives/partial}
  cat >"$folder/apt/sources.list" <<LIST
deb $signed $from $old_suite main
deb $signed $from $suite main
deb-src $signed $from $suite main
deb-src $signed $security $suite-security main
LIST
  own_apt apt-get update
}

# The headers and libraries that are compiled and linked with.
fetch_sysroot() {
  rm -rf "$sysroot" "$folder/debs"
  mkdir -p "$sysroot" "$folder/debs"
  cd "$folder/debs"
  own_apt apt-get download "${old_packages[@]/%//$old_suite}"  # apt checks their sums, signed.
  local package link
  for package in *.deb; do
    dpkg-deb -x "$package" "$sysroot"
  done
  # Links that begin with / would lead to this machine's libraries.
  find "$sysroot" -type l -lname '/*' | while read -r link; do
    ln -sfr "$sysroot$(readlink "$link")" "$link"
  done
  local compiler
  for compiler in cc:clang-14 c++:clang++-14; do
    cat >"$folder/bin/${compiler%%:*}" <<SCRIPT
#!/bin/sh
exec ${compiler#*:} --sysroot=$sysroot --gcc-toolchain=$sysroot/usr "\$@"
SCRIPT
    chmod +x "$folder/bin/${compiler%%:*}"
  done
}

fetch_sources() {
  rm -rf "$folder/src"
  mkdir -p "$folder/src/packages"
  cd "$folder/src/packages"
  local name
  for name in "${sources[@]}"; do
    # apt checks the sums of the signed lists. Mirrors may not yet have sources that they announce.
    if ! own_apt apt-get source --download-only "$name"; then
      echo "$name: nothing newer than the last point release is available" >>"$folder/src/older"
      rm -f "${name}"_*
      own_apt apt-get source --download-only "$name/$suite"
    fi
    dpkg-source --no-check -x "$name"_*.dsc "$folder/src/$name"
    echo "$name $(dpkg-parsechangelog -l "$folder/src/$name/debian/changelog" -S Version)" \
      >>"$folder/src/versions"
  done
  local ours theirs
  ours=$(protoc --version | grep -oE '[0-9.]+$')
  theirs=$(grep -m 1 -oE '\[3\.[0-9.]+\]' "$folder/src/protobuf/configure.ac" | tr -d '[]')
  [[ $ours == "$theirs" ]] ||
    fail "protoc here is $ours and the source package protobuf $theirs: update one of them"
}

copy_headers() {
  local name
  for name in "${headers[@]}"; do
    cp -rL "/usr/include/$name" "$prefix/include/"
  done
  for name in "${header_configs[@]}"; do
    cp -rL "/usr/share/cmake/$name" "$prefix/share/cmake/"
  done
}

configure() {
  local name=$1 source=$2
  shift 2
  cmake -G Ninja -S "$source" -B "$folder/build/$name" --toolchain "$root/deploy/portable/toolchain.cmake" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_PREFIX_PATH="$prefix" -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF \
    -DCMAKE_CXX_STANDARD=17 -DOPENSSL_ROOT_DIR="$prefix" -DOPENSSL_USE_STATIC_LIBS=ON "$@"
}

# library NAME FLAG...: one that CMake builds and installs.
library() {
  local name=$1
  shift
  configure "$name" "$folder/src/$name" "$@"
  ninja -C "$folder/build/$name" -j "$jobs" install
}

# Neither its configuration nor its modules are looked for at run time: they would be those of some
# other OpenSSL.
build_openssl() {
  rm -rf "$folder/build/openssl"
  mkdir -p "$folder/build/openssl"
  cd "$folder/build/openssl"
  CC="$folder/bin/cc" "$folder/src/openssl/Configure" linux-x86_64 --prefix="$prefix" --libdir=lib \
    --openssldir=/etc/ssl no-shared no-tests no-module no-legacy no-autoload-config no-async \
    -O2 -fPIC -fvisibility=hidden -fstack-protector-strong
  make -j "$jobs" build_libs
  make install_dev
}

build_zlib() {
  rm -rf "$folder/build/zlib"
  cp -r "$folder/src/zlib" "$folder/build/zlib"
  cd "$folder/build/zlib"
  CC="$folder/bin/cc" CFLAGS="-O2 -fPIC -fvisibility=hidden" ./configure --static --prefix="$prefix"
  make -j "$jobs" libz.a
  install -m 644 libz.a "$prefix/lib/"
  install -m 644 zlib.h zconf.h "$prefix/include/"
}

build_re2() {
  # Debian's sources lack files generated from Debian's Unicode data.
  local unicode=$folder/src/unicode
  mkdir -p "$unicode"
  (cd "$unicode" && own_apt apt-get download "unicode-data/$suite" && dpkg-deb -x unicode-data_*.deb .)
  sed -i "s|^_UNICODE_DIR = .*|_UNICODE_DIR = '$unicode/usr/share/unicode'|" "$folder/src/re2/re2/unicode.py"
  make -C "$folder/src/re2" REBUILD_TABLES=1 re2/{perl_groups,unicode_casefold,unicode_groups}.cc
  library re2 -DRE2_BUILD_TESTING=OFF
  # CMake writes no .pc here.
  cat >"$prefix/lib/pkgconfig/re2.pc" <<PC
Name: re2
Description: RE2 is a fast, safe, thread-friendly regular expression engine.
Version: 0.0.0
Cflags: -pthread -I$prefix/include
Libs: -pthread -L$prefix/lib -lre2
PC
}

build_protobuf() {
  library protobuf -Dprotobuf_BUILD_TESTS=OFF -Dprotobuf_BUILD_PROTOC_BINARIES=OFF \
    -Dprotobuf_WITH_ZLIB=OFF
  # As on Debian, CMake's own module finds it: Spillway's build asks for that.
  rm -rf "$prefix/lib/cmake/protobuf"
}

# Only libraries that Spillway links; cmake/gRPCConfig.cmake finds them. protoc's library, which it
# does not link, must be named, too.
build_grpc() {
  local provider plugin flags=()
  for provider in ABSL CARES PROTOBUF RE2 SSL ZLIB; do
    flags+=("-DgRPC_${provider}_PROVIDER=package")
  done
  for plugin in CPP CSHARP NODE OBJECTIVE_C PHP PYTHON RUBY; do
    flags+=("-DgRPC_BUILD_GRPC_${plugin}_PLUGIN=OFF")
  done
  configure grpc "$folder/src/grpc" "${flags[@]}" -DgRPC_PROTOBUF_PACKAGE_TYPE=MODULE \
    -DgRPC_INSTALL=OFF -DgRPC_BUILD_TESTS=OFF -DgRPC_BUILD_CODEGEN=ON \
    -DProtobuf_PROTOC_LIBRARY="$prefix/lib/libprotobuf.a" \
    -D_gRPC_PROTOBUF_PROTOC_EXECUTABLE="$(command -v protoc)" \
    -D_gRPC_CPP_PLUGIN="$(command -v grpc_cpp_plugin)"
  ninja -C "$folder/build/grpc" -j "$jobs" grpc++ grpc++_reflection
}

build_spillway() {
  local targets=(spillway_self_contained spillway spillwayd spillway_completions) more=()
  if [[ -n $tensorflow ]]; then
    more=("-DSPILLWAY_TENSORFLOW_PLUGIN=$tensorflow")
    targets+=(spillway_tensorflow_cpu spillway_tensorflow_gpu)
  else
    more=(-USPILLWAY_TENSORFLOW_PLUGIN)
  fi
  local cmake_files=$root/deploy/portable/cmake
  configure spillway "$root" -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16 \
    -DSPILLWAY_PCH=ON -DSPILLWAY_TESTS=OFF -DSPILLWAY_SELF_CONTAINED=ON \
    -DgRPC_DIR="$cmake_files" -Dspdlog_DIR="$cmake_files" "${more[@]}"
  ninja -C "$folder/build/spillway" -j "$jobs" "${targets[@]}"
}

# Copies a program or library without its symbols, once it is known to need glibc alone.
take() {
  local from=$1 to=$2 needed
  needed=$(readelf -dW "$from" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]$/\1/p')
  if grep -qvE "$glibc" <<<"$needed"; then
    fail "$from needs more than glibc: $(grep -vE "$glibc" <<<"$needed" | tr '\n' ' ')"
  fi
  mkdir -p "$(dirname "$to")"
  cp -L "$from" "$to"
  strip --strip-unneeded "$to"
}

# The files that licenses of linked libraries require.
copy_licenses() {
  local name
  mkdir -p "$1"
  for name in "${sources[@]}"; do
    cp "$folder/src/$name/debian/copyright" "$1/$name"
  done
  for name in libcli11-dev libfmt-dev libspdlog-dev nlohmann-json3-dev; do
    cp "/usr/share/doc/$name/copyright" "$1/$name"
  done
  cp "$sysroot/usr/share/doc/gcc-10-base/copyright" "$1/libstdc++"
}

make_venv() {
  rm -rf "$folder/venv"
  python3 -m venv "$folder/venv"
  "$folder/venv/bin/pip" install --disable-pip-version-check -r "$root/deploy/portable/requirements.txt"
}

# wheel NAME: from a copy, so that the tree stays unchanged. auditwheel names the oldest sufficient
# glibc, by the versions of the symbols, and refuses a library that needs more.
wheel() {
  local tree=$folder/tree raw=$folder/raw-wheels
  rm -rf "$tree" "$raw"
  mkdir -p "$tree/client_lib" "$raw"
  cp -r CMakeLists.txt proto "$tree/"
  cp -r "client_lib/$1" "$tree/client_lib/"
  rm -rf "$tree/client_lib/$1"/{build,*.egg-info}
  "$folder/venv/bin/pip" wheel --no-deps --no-build-isolation --disable-pip-version-check \
    -w "$raw" "$tree/client_lib/$1"
  PATH=$folder/venv/bin:$PATH auditwheel repair --plat auto -w "$dist" "$raw"/*.whl
  ! ls "$dist"/*-linux_x86_64.whl 2>/dev/null || fail "auditwheel gave the wheel no manylinux tag"
}

make_python_wheel() {
  local place=$folder/wheel-library
  rm -rf "$place"
  take "$folder/build/spillway/lib/self-contained/libspillway.so.0" "$place/lib/libspillway.so.0"
  take "$folder/build/spillway/bin/spillway" "$place/bin/spillway"
  copy_licenses "$place/lib/licenses"
  SPILLWAY_LIBRARY=$place/lib/libspillway.so.0 wheel python
}

make_plugin_wheel() {
  local place=$folder/wheel-plugins name
  rm -rf "$place"
  for name in cpu gpu; do
    take "$folder/build/spillway/lib/tensorflow-plugins/libspillway_tensorflow_$name.so" \
      "$place/libspillway_tensorflow_$name.so"
  done
  SPILLWAY_TENSORFLOW_PLUGINS=$place wheel tensorflow_plugin
}

make_tar() {
  local name
  name=spillway-$(sed -nE 's/^project\(spillway VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)-linux-x86_64
  local place=$folder/tar/$name built=$folder/build/spillway
  rm -rf "$folder/tar"
  take "$built/bin/spillway" "$place/bin/spillway"
  take "$built/bin/spillwayd" "$place/bin/spillwayd"
  copy_licenses "$place/share/doc/spillway/licenses"
  cp LICENSE CHANGELOG.md "$place/share/doc/spillway/"
  install -D -m 644 -t "$place/share/bash-completion/completions" \
    "$built/client_lib/completions/bash/spillway"
  install -D -m 644 -t "$place/share/zsh/site-functions" "$built/client_lib/completions/zsh/_spillway"
  install -D -m 644 -t "$place/share/fish/vendor_completions.d" \
    "$built/client_lib/completions/fish/spillway.fish"
  # The same bytes for the same files.
  tar -C "$folder/tar" --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw \
    --mtime="@$(git log -1 --format=%ct 2>/dev/null || echo 0)" -c "$name" | gzip -n -9 >"$dist/$name.tar.gz"
}

# again NAME COMMAND...: like once, but each time.
again() {
  rm -f "$folder/stamps/$1"
  once "$@"
  rm -f "$folder/stamps/$1"
}

once lists fetch_lists
once sysroot fetch_sysroot
once sources fetch_sources
once headers copy_headers
once venv make_venv
once abseil library abseil -DABSL_PROPAGATE_CXX_STD=ON -DABSL_ENABLE_INSTALL=ON
once protobuf build_protobuf
once zlib build_zlib
once c-ares library c-ares -DCARES_STATIC=ON -DCARES_SHARED=OFF -DCARES_STATIC_PIC=ON \
  -DCARES_BUILD_TOOLS=OFF
once re2 build_re2
once openssl build_openssl
once civetweb library civetweb -DCIVETWEB_ENABLE_CXX=ON -DCIVETWEB_BUILD_TESTING=OFF \
  -DCIVETWEB_ENABLE_SSL=OFF -DCIVETWEB_ENABLE_SERVER_EXECUTABLE=OFF -DCIVETWEB_ENABLE_ASAN=OFF \
  -DCIVETWEB_ALLOW_WARNINGS=ON
once prometheus-cpp library prometheus-cpp -DENABLE_PUSH=OFF -DENABLE_COMPRESSION=ON \
  -DENABLE_TESTING=OFF -DUSE_THIRDPARTY_LIBRARIES=OFF -DGENERATE_PKGCONFIG=OFF
once grpc build_grpc
again spillway build_spillway
rm -rf "$dist"
mkdir -p "$dist"
again python-wheel make_python_wheel
[[ -z $tensorflow ]] || again plugin-wheel make_plugin_wheel
again tar make_tar
cp "$folder/src/versions" "$dist/sources.txt"
print_times
if [[ -e $folder/src/older ]]; then
  printf '\nNot the newest sources:\n'
  cat "$folder/src/older"
fi
echo
ls -l "$dist"
