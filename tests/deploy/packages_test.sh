#!/usr/bin/env bash
# Tests deploy/debian and deploy/systemd.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: tests/deploy/packages_test.sh [--quick] [--install] [--base DIR] [--help]

With --quick, in seconds: the systemd unit by systemd-analyze, and that versions and files of
deploy/debian agree with each other and with the source.

Without, in some minutes: builds the packages in build-debian/ (by ccache, if there is one); lintian;
the man pages; in a bare Debian 12, which debootstrap makes: installs, serves, rewrites, upgrades under
a running server, removes, purges, builds against the development package; with systemd, booted there by
systemd-nspawn: starts, settings, upgrades, failures. That other folders give the same bytes:
image_test.py --compare, which builds them again.

  --install    installs with apt what is missing: debhelper, dh-python, help2man, lintian, man-db,
               debootstrap, systemd-container
  --base DIR   a folder with Debian's minimal system, which is copied; made there if it is not there

Needs root for all but --quick. What cannot be had is skipped, with a line that says so. The last line
is `N passed, N failed` or `N passed, N failed, N skipped`. Exit code 0: nothing failed; 1: something
did; 2: bad usage.
USAGE
}

quick=no install=no base=''
while [[ $# -gt 0 ]]; do
  case $1 in
    --quick) quick=yes ;;
    --install) install=yes ;;
    --base)
      [[ $# -gt 1 ]] || { echo "tests/deploy/packages_test.sh: --base needs a folder" >&2; exit 2; }
      base=$(realpath -m "$2")
      shift ;;
    -h|--help) usage; exit ;;
    *) echo "tests/deploy/packages_test.sh: there is no $1; see --help" >&2; exit 2 ;;
  esac
  shift
done

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/deploy/checks.sh
source tests/deploy/checks.sh
readonly unit=deploy/systemd/spillwayd.service
readonly out=$PWD/build-debian
readonly suite=bookworm
# Ten times what systemd-analyze prints: below 2.5.
readonly exposure_limit=25
readonly tools=(dpkg-buildpackage:dpkg-dev dh:debhelper dh_python3:dh-python help2man:help2man
  lintian:lintian man:man-db debootstrap:debootstrap setpriv:util-linux unshare:util-linux
  openssl:openssl)
export PATH=$PATH:/usr/sbin:/sbin

skipped=0
skip() {
  echo "skipped: $1"
  skipped=$((skipped + 1))
}

finish() {
  echo
  if [[ $skipped == 0 ]]; then
    echo "$passed passed, $failed failed"
  else
    echo "$passed passed, $failed failed, $skipped skipped"
  fi
  [[ $failed == 0 ]] || exit 1
  exit 0
}

work=$(mktemp -d -t spillway-packages-XXXXXX)
readonly work
machine=
clean_up() {
  # The first process of a machine of ours: its end is that of all others in there.
  [[ -z $machine ]] || kill -KILL "$machine" 2>/dev/null || true
  wait
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

versions_agree() {
  local project changelog
  project=$(sed -nE 's/^project\(spillway VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
  changelog=$(sed -nE '1s/^spillway \(([^)]+)\) .*/\1/p' deploy/debian/changelog)
  echo "CMakeLists.txt has $project, deploy/debian/changelog has $changelog"
  [[ -n $project && $project == "$changelog" ]]
}

# Files that are named for a package belong to an existing one, and each package has files.
packages_have_files() {
  local packages file name
  packages=$(sed -nE 's/^Package: //p' deploy/debian/control)
  for file in deploy/debian/*.{install,docs,examples,manpages,postrm,lintian-overrides}; do
    [[ -e $file ]] || continue
    name=$(basename "${file%.*}")
    grep -qxF "$name" <<<"$packages" || { echo "$file is of no package"; return 1; }
  done
  for name in $packages; do
    [[ -e deploy/debian/$name.install ]] || grep -qF "debian/$name/" deploy/debian/rules ||
      { echo "$name has no files"; return 1; }
  done
}

# The source's build dependencies, for people and for packages.
build_depends_agree() {
  local package code=0
  while read -r package; do
    grep -qwF -- "$package" deploy/install_deps.sh ||
      { echo "deploy/install_deps.sh lacks $package"; code=1; }
  done < <(sed -nE '/^Build-Depends:/,/^[A-Z].*:/{s/^ ([a-z0-9+.-]+).*/\1/p}' deploy/debian/control |
    grep -v '^debhelper-compat$')
  return "$code"
}

# The program and its man page are another's affair: here they need not be installed.
unit_is_sound() {
  local said
  sed "s|^ExecStart=/usr/bin/spillwayd|ExecStart=$(command -v true)|" "$unit" >"$work/spillwayd.service"
  said=$(systemd-analyze verify --man=no "$work/spillwayd.service" 2>&1) || { echo "$said"; return 1; }
  # Of units of this machine it may complain, too.
  ! grep -F spillwayd <<<"$said"
}

unit_is_hardened() {
  systemd-analyze security --offline=true --no-pager --threshold="$exposure_limit" "$unit" |
    grep -F 'exposure level' | tee "$work/exposure"
  [[ ${PIPESTATUS[0]} == 0 ]]
}

seconds_of() {
  [[ $1 =~ ^([0-9]+)s$ ]] && echo "${BASH_REMATCH[1]}"
}

# As README and unit say: it may take the drain, and ten seconds for work to hear of it.
unit_waits_for_the_drain() {
  local stop drain
  stop=$(seconds_of "$(sed -nE 's/^TimeoutStopSec=//p' "$unit")")
  drain=$(seconds_of "$(sed -nE 's/.*`--drain-timeout DURATION` \| `([^`]*)`.*/\1/p' server/README.md)")
  echo "TimeoutStopSec is $stop s, the drain takes up to $drain s"
  ((stop > drain + 10))
}

check "the versions of CMakeLists.txt and deploy/debian/changelog agree" versions_agree
check "each file of deploy/debian is of a package" packages_have_files
check "install_deps.sh has what the packages are built with" build_depends_agree
check "systemd kills only after the drain" unit_waits_for_the_drain
if command -v systemd-analyze >/dev/null; then
  check "systemd-analyze finds the unit sound" unit_is_sound
  check "systemd-analyze finds it exposed below 2.5" unit_is_hardened
  [[ ! -s $work/exposure ]] || sed 's/^/        /' "$work/exposure"
else
  skip "no systemd-analyze here (Debian: package systemd): the unit is not looked at"
fi
[[ $quick == no ]] || finish

missing=()
find_missing() {
  missing=()
  for tool in "${tools[@]}"; do
    command -v "${tool%%:*}" >/dev/null || missing+=("${tool##*:}")
  done
}
find_missing
if [[ $install == yes && $(id -u) == 0 ]] &&
    { [[ ${#missing[@]} != 0 ]] || ! command -v systemd-nspawn >/dev/null; }; then
  echo "Installing: ${missing[*]} systemd-container"
  # The last is for the test under systemd, which is skipped if unavailable.
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
      --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}" systemd-container; } >/dev/null 2>&1 || true
  find_missing
fi
if [[ $(id -u) != 0 || ${#missing[@]} != 0 ]]; then
  skip "the packages are not built: it takes root${missing[*]:+, and ${missing[*]}}"
  finish
fi

build_packages() {
  local build=(deploy/debian/build.sh --out "$out" --work "$out/work")
  rm -rf "$out"
  if command -v ccache >/dev/null; then
    # In a folder that is always the same: earlier build results are found.
    build=(env CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER-ccache}" CCACHE_DEPEND=1
      "CCACHE_SLOPPINESS=pch_defines,time_macros" "${build[@]}")
  fi
  DEB_BUILD_OPTIONS=noautodbgsym "${build[@]}" >"$work/build.log" 2>&1 || { tail -n 30 "$work/build.log"; return 1; }
  ! grep -A 5 ' warning: ' "$work/build.log"
}

no_lint() {
  lintian --allow-root --tag-display-limit 0 --fail-on error,warning "$out"/*.changes
}

no_paths_of_the_build() {
  local deb
  for deb in "$out"/*.deb; do
    dpkg-deb -x "$deb" "$work/contents" || return 1
  done
  ! grep -rlaF -e "$out" -e "$PWD" "$work/contents"
}

# Each page is rendered without a complaint, and has each flag that --help-all has.
man_pages_are_right() {
  local page name command flag
  for page in "$work"/contents/usr/share/man/man1/*.gz; do
    name=$(basename "$page" .1.gz)
    MANWIDTH=100 man --warnings -l "$page" >"$work/page" 2>"$work/complaints"
    if [[ -s $work/complaints ]]; then
      echo "$name: $(head -n 3 "$work/complaints")"
      return 1
    fi
    command=("$work/contents/usr/bin/${name%%-*}")
    [[ $name == "${name%%-*}" ]] || command+=("${name#*-}")
    [[ $name == spillwayd ]] && command+=(--help) || command+=(--help-all)
    while read -r flag; do
      grep -qE -- "^ +(-.,)?$flag( |$|=|,)" "$work/page" || { echo "$name(1) has no $flag"; return 1; }
    done < <("${command[@]}" | grep -oE '^  (-.,)?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+')
  done
}

check "the packages are built, without a warning" build_packages
if [[ ! -e $(echo "$out"/spillway-server_*.deb) ]]; then
  finish
fi
(cd "$out" && ls -l ./*.deb | awk '{print "        " $9 ": " $5 " bytes"}')
check "lintian has nothing to say" no_lint
check "no file names the folder of the build" no_paths_of_the_build
check "the man pages have each flag, and are sound" man_pages_are_right

# The packages once more, with a higher version.
make_upgraded() {
  local deb version
  version=$(dpkg-deb -f "$(echo "$out"/spillway-server_*.deb)" Version)
  mkdir -p "$work/upgraded"
  for deb in "$out"/*.deb; do
    rm -rf "$work/raw"
    dpkg-deb -R "$deb" "$work/raw"
    sed -i "s/^Version: .*/Version: $version+1/; s/= $version)/= $version+1)/" "$work/raw/DEBIAN/control"
    dpkg-deb --root-owner-group -b "$work/raw" "$work/upgraded/$(basename "${deb/_$version/_$version+1}")" >/dev/null
  done
}

# This machine's apt source of Debian's main packages.
mirror() {
  local found
  # shellcheck disable=SC2016  # apt's variables, not ours.
  found=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' \
    2>/dev/null | sed -nE "s/^$suite main ([^ ]+)\$/\1/p" | head -n 1 || true)
  echo "${found:-http://deb.debian.org/debian}"
}

make_root() {
  [[ -n $base ]] || base=$work/base
  if [[ ! -x $base/usr/bin/apt-get ]]; then
    # Moved when it is whole: an interrupted one is not taken for a system.
    mkdir -p "$(dirname "$base")"
    debootstrap --variant=minbase "$suite" "$work/new" "$(mirror)" >"$work/debootstrap.log" 2>&1 &&
      mv "$work/new" "$base" || { tail -n 3 "$work/debootstrap.log"; return 1; }
  fi
  cp -a "$base" "$work/root" || return 1
  # This machine's way to the network.
  cp -L /etc/resolv.conf /etc/hosts "$work/root/etc/"
  apt-config dump | grep -E '^Acquire::(https?|ftp|Retries|Check-)' \
    >"$work/root/etc/apt/apt.conf.d/90network" || true
  mkdir -p "$work/root/try"
  cp -r "$work/upgraded" tests/deploy/packages_in_root.sh tests/integration/consumer \
    client_lib/samples/rewrite_graph.c "$work/root/try/" || return 1
  mkdir "$work/root/try/packages"
  cp "$out"/*.deb "$work/root/try/packages/"
  cp tests/graphs/cond_v1/graph_shapes.pb "$work/root/try/graph.pb"
  cp tests/graphs/mnist_deep/graph_shapes.pb "$work/root/try/mnist.pb"
  cp tests/graphs/resnet50_tf1/graph_shapes.pb "$work/root/try/resnet50.pb"
}

# Mounts and processes that end with the step. Without an init, and so without a systemd that runs.
# /sys: a new thread's first allocation looks there for the number of CPUs, and gRPC 1.51 takes its
# failure for one of a connection that is just being made (1 of 300 calls; tcp_client_posix.cc reads
# errno late).
in_root() {
  local variables=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
    "no_proxy=127.0.0.1,localhost") name
  for name in http_proxy https_proxy HTTP_PROXY HTTPS_PROXY; do
    [[ -z ${!name-} ]] || variables+=("$name=${!name}")
  done
  # shellcheck disable=SC2016
  unshare --mount --pid --fork --kill-child bash -euc '
    root=$1
    shift
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    exec chroot "$root" /usr/bin/env -i "$@"' in_root "$work/root" "${variables[@]}" \
    bash /try/packages_in_root.sh "$1" </dev/null
}

make_upgraded
check "a bare Debian 12 is made" make_root
[[ -x $work/root/usr/bin/apt-get ]] || finish
check "server, client and Python install" in_root installs
check "a server and a rewrite by it" in_root serves_and_rewrites
check "Python rewrites, with the same bytes" in_root python_rewrites
check "man pages, completions and the unit are there" in_root has_its_documents
check "an upgrade under a running server loses nothing" in_root upgrades_under_a_server
check "removed, settings stay" in_root removes
check "purged, nothing stays" in_root purges
check "programs build against the development package" in_root builds_against_dev

# The root as a system of its own, with systemd, and a network that is its own.
boot() {
  systemd-nspawn --quiet --directory="$work/root" --boot --register=no --keep-unit --private-network \
    --console=pipe >"$work/boot.log" 2>&1 </dev/null &
  local nspawn=$! tries
  for tries in {1..150}; do
    machine=$(cut -d ' ' -f 1 "/proc/$nspawn/task/$nspawn/children" 2>/dev/null || true)
    if [[ -n $machine && $(on_machine systemctl is-system-running 2>/dev/null) == @(running|degraded) ]]; then
      return 0
    fi
    [[ -e /proc/$nspawn ]] || break
    sleep 0.2
  done
  machine=
  echo "it does not boot, after $tries looks"
  cat "$work/boot.log"
  return 1
}

on_machine() {
  nsenter --target "$machine" --mount --uts --ipc --net --pid --cgroup --root --wd=/ \
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    no_proxy=127.0.0.1,localhost "$@" </dev/null
}

# As after a plug that is pulled: nothing in there is needed any more.
power_off() {
  [[ -n $machine ]] || return 0
  kill -KILL "$machine" 2>/dev/null || true
  wait
  machine=
}

step() {
  on_machine bash /try/packages_in_root.sh "$1"
}

if ! command -v systemd-nspawn >/dev/null; then
  skip "no systemd-nspawn here (Debian: package systemd-container): no service is started by systemd"
  finish
fi
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost -keyout "$work/root/try/ours.key" \
  -out "$work/root/try/ours.pem" 2>/dev/null
check "systemd and the server install" in_root installs_systemd
# Not a check in a subshell: it sets the machine's variables.
if boot >"$work/booted" 2>&1; then
  check "systemd starts the server, which says when it listens" step starts_at_boot
  check "settings, socket, TLS and a limit of memory" step takes_settings
  check "an upgrade restarts it, and no call fails" step restarts_when_upgraded
  check "it starts again when it is killed" step starts_again_when_killed
  check "but not with wrong flags, which the log tells" step wrong_flags_are_told_once
  check "purged while it runs, nothing stays" step purges_what_runs
  power_off
else
  cat "$work/booted"
  skip "no systemd boots here: no service is started by it"
fi
finish
