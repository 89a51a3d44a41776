#!/usr/bin/env bash
# Runs deploy/demo.sh and tests/run.sh in a bare Debian 12. `tests/bare_root.sh --help` says how.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: tests/bare_root.sh [--root DIR] [--reuse] [--keep] [--only demo|tests] [--mirror URL]
                          [--ccache DIR] [-- COMMAND...]

Makes a root of Debian 12 with debootstrap's smallest set of packages, unpacks an archive of the
last commit in it (there is no git in there), and runs deploy/demo.sh and then tests/run.sh there, as root and with an empty
environment: what a newcomer's machine has, and nothing of this one but its network, its certificates
and its settings of proxies and package registries. Says at the end what each ended with and how long
it took. Not part of tests/run.sh: some 25 minutes on 2 cores, 8 GB of disk. Run it when what is
installed or how changes, and before a release. Needs root, git and debootstrap (Debian's package).

  --root DIR       the folder of the root (default: a new one below TMPDIR or /tmp)
  --reuse          DIR has such a root already, as --keep left it: what was installed is there; the
                   archive is unpacked anew
  --keep           leaves the root there, and says where
  --only WHICH     just one of the two commands
  --mirror URL     Debian's packages (default: where this machine's apt has bookworm from, or
                   http://deb.debian.org/debian)
  --ccache DIR     a compiler cache for the builds in there, to try something quickly; times say
                   nothing then
  -- COMMAND...    runs this in the unpacked folder instead of the two

Mounts and processes are in namespaces of their own and end with the script, also after Ctrl-C. The
output of each command is kept in build/bare_root/. Exit code 0: both commands ended with 0; 1: one
did not; 2: bad usage, or no root could be made.
USAGE
}

fail() {
  echo "tests/bare_root.sh: $1" >&2
  exit 2
}

readonly suite=bookworm
root='' reuse=no keep=no only=both mirror='' ccache=''
while [[ $# -gt 0 ]]; do
  case $1 in
    -h|--help) usage; exit ;;
    --reuse) reuse=yes; shift; continue ;;
    --keep) keep=yes; shift; continue ;;
    --) shift; break ;;
    --root|--only|--mirror|--ccache)
      [[ $# -gt 1 ]] || fail "$1 needs a value; see tests/bare_root.sh --help" ;;
    *) fail "there is no $1; see tests/bare_root.sh --help" ;;
  esac
  case $1 in
    --root) root=$2 ;;
    --only) only=$2 ;;
    --mirror) mirror=$2 ;;
    --ccache) ccache=$2 ;;
  esac
  shift 2
done
readonly command=("$@") reuse keep only ccache
[[ $only == @(both|demo|tests) ]] || fail "--only takes demo or tests, not '$only'"
[[ $reuse == no || -n $root ]] || fail "--reuse needs --root DIR"
[[ $(id -u) == 0 ]] || fail "it takes root to make a root of Debian and to enter it"
for tool in git debootstrap unshare chroot; do
  command -v "$tool" >/dev/null || fail "$tool is missing here (Debian: apt-get install $tool)"
done

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=deploy/steps.sh
source deploy/steps.sh
readonly logs=$PWD/build/bare_root
# Variables that say how registries are reached; all others stay outside.
readonly network_variables=(
  http_proxy https_proxy no_proxy all_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY
  SSL_CERT_FILE NODE_EXTRA_CA_CERTS
  PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST PIP_CERT NPM_CONFIG_REGISTRY
  npm_config_registry GOPROXY GOSUMDB GONOSUMDB GOPRIVATE)
# And files that do. Those of the user are root's.
readonly network_files=(
  /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/npmrc /usr/etc/npmrc
  "$HOME/.npmrc" "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf" "$HOME/.config/go/env")

# This machine's apt source of Debian's main packages.
own_mirror() {
  # shellcheck disable=SC2016  # apt's variables, not ours.
  apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' \
    2>/dev/null | sed -nE "s/^$suite main ([^ ]+)\$/\1/p" | head -n 1 || true
}

make_root() {
  mkdir -p "$root"
  [[ -z $(ls -A "$root") ]] || fail "$root is not empty: --reuse takes a root as it is"
  if ! debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$logs/debootstrap.log" 2>&1; then
    tail -n 5 "$logs/debootstrap.log"
    fail "debootstrap made no root of $mirror (log: $logs/debootstrap.log)"
  fi
}

# Gives the root this machine's way to the network.
copy_network() {
  local file
  for file in "${network_files[@]}"; do
    [[ -e $file ]] || continue
    local to=$root${file/#"$HOME"\//\/root\/}
    mkdir -p "$(dirname "$to")"
    cp -L "$file" "$to"
  done
  # Certificates that this machine was given: the package ca-certificates takes them up from here.
  if [[ -d /usr/local/share/ca-certificates ]]; then
    mkdir -p "$root/usr/local/share/ca-certificates"
    cp -RL /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
  fi
  apt-config dump | grep -E '^Acquire::(https?|ftp|Retries|Check-)' \
    >"$root/etc/apt/apt.conf.d/90network" || true
}

unpack() {
  rm -rf "$root/root/spillway"
  mkdir "$root/root/spillway"
  git archive HEAD | tar -x -C "$root/root/spillway"
  git --no-pager log -1 --format='%h %s'
  [[ -z $(git status --porcelain) ]] ||
    echo "What is not committed here is not in the archive."
}

# inside COMMAND...: in that folder, with an environment that only has the registries' needs. Its
# own process becomes the one whose end ends all others in there.
inside() {
  local variables=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
    LANG=C.UTF-8) name
  for name in "${network_variables[@]}"; do
    [[ -z ${!name-} ]] || variables+=("$name=${!name}")
  done
  [[ -z $ccache ]] || variables+=(CCACHE_DIR=/root/ccache)
  # The mounts are this process's: nothing has to be taken down, and the root can always be removed.
  # shellcheck disable=SC2016
  exec unshare --mount --pid --fork --kill-child bash -euc '
    root=$1 ccache=$2
    shift 2
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    if [[ -n $ccache ]]; then
      mkdir -p "$ccache" "$root/root/ccache"
      mount --bind "$ccache" "$root/root/ccache"
    fi
    chroot "$root" /usr/bin/env -i "$@" || exit $?' inside "$root" "$ccache" "${variables[@]}" \
    bash -c 'cd /root/spillway && exec "$@"' spillway "$@" </dev/null
}

rows=()
code=0
running=
# run NAME COMMAND...: with a heading, a log and a row for the end.
run() {
  local name=$1 log=$logs/${1//\//_}.log ended=0 seconds
  shift
  heading "$name, in the root (log: $log)"
  inside "$@" > >(tee "$log") 2>&1 &
  running=$!
  wait "$running" || ended=$?
  running=
  end_section "$name"
  [[ $ended == 0 ]] || code=1
  seconds=$((section_times[-1] / 1000))
  rows+=("$(printf '%-15s  exit code %d  %d:%02d  %s' "$name" "$ended" $((seconds / 60)) \
    $((seconds % 60)) "$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)")")
}

clean_up() {
  # KILL: the first process of a namespace ignores weaker signals.
  if [[ -n $running ]]; then
    kill -KILL "$running" 2>/dev/null || true
    wait "$running" 2>/dev/null || true
  fi
  if [[ $keep == yes || $reuse == yes ]]; then
    [[ ! -d $root/etc ]] || printf '\nThe root is %s\n' "$root"
  elif [[ -n $root ]]; then
    rm -rf --one-file-system "$root"
  fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

rm -rf "$logs"
mkdir -p "$logs"
[[ -n $mirror ]] || mirror=$(own_mirror)
mirror=${mirror:-http://deb.debian.org/debian}
if [[ -z $root ]]; then
  root=$(mktemp -d -t spillway-root-XXXXXX)
  chmod 755 "$root"
fi

heading "A root of Debian 12 in $root"
if [[ $reuse == yes ]]; then
  [[ -x $root/usr/bin/apt-get ]] || fail "$root has no Debian: leave --reuse out"
else
  make_root
fi
copy_network
end_section "debootstrap"
heading "An archive of the last commit"
unpack
end_section "archive"

if [[ ${#command[@]} -gt 0 ]]; then
  run command "${command[@]}"
else
  [[ $only == tests ]] || run deploy/demo.sh deploy/demo.sh
  [[ $only == demo ]] || run tests/run.sh tests/run.sh
fi

print_times
echo
printf '%s\n' "${rows[@]}"
exit "$code"
