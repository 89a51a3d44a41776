#!/usr/bin/env bash
# Run by packages_test.sh in a bare Debian, in /try: packages/ and upgraded/ have the packages of two
# versions. Each step is a function, whose name is the argument.
set -euo pipefail
cd /try
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
readonly options=(--quiet --strategy scope --fuse-swapins --lb 5 --min-tensor-bytes 4096)
readonly names=(spillway-server spillway-client libspillway0 libspillway-dev python3-spillway)

# apt_get ARGUMENT...: prints its output only if it fails; no warning of a maintainer script passes.
apt_get() {
  if ! apt-get -y -q --no-install-recommends -o Dpkg::Use-Pty=0 "$@" >log 2>&1; then
    tail -n 30 log
    return 1
  fi
  ! grep -iE '(spillway.*(warning|error)|dpkg: (warning|error))' log
}

# ours ACTION: on those of ours that dpkg knows of.
ours() {
  local known
  mapfile -t known < <(dpkg-query -W -f '${Package}\n' "${names[@]}" 2>/dev/null)
  [[ ${#known[@]} == 0 ]] || apt_get "$1" "${known[@]}"
}

is() {
  [[ $1 == "$2" ]] || { echo "is '$1' and not '$2'"; return 1; }
}

version_of() {
  dpkg-query -W -f '${Version}' "$1"
}

# Everything except the files of apt and dpkg themselves, and of Python's own cache.
files() {
  find / -xdev \( -path /try -o -path /proc -o -path /sys -o -path /dev -o -path /var/lib/dpkg \
    -o -path /var/lib/apt -o -path /var/cache -o -path /var/log/apt \) -prune -o -print |
    grep -vE '^/(var/log/(dpkg|alternatives)\.log|etc/ld\.so\.cache|tmp)$|/__pycache__' | sort
}

installs() {
  apt_get update
  # Dependencies of ours come first, so that our remaining files can be recognized in the end.
  apt_get install ./packages/{spillway-server,spillway-client,libspillway0,python3-spillway}_*.deb
  ours remove
  ours purge
  files >before
  apt_get install ./packages/{spillway-server,spillway-client,libspillway0,python3-spillway}_*.deb
  is "$(version_of spillway-server)" "$(dpkg-deb -f packages/spillway-server_*.deb Version)"
  spillway version
  spillwayd --version
}

# As user nobody, in the background: `server` is its process, `address` its address.
start_server() {
  rm -f out
  mkfifo out
  setpriv --reuid=65534 --regid=65534 --clear-groups \
    spillwayd --listen 127.0.0.1:0 --metrics-listen none >out 2>server.log &
  server=$!
  read -r line <out || { cat server.log; return 1; }
  address=${line##* }
}

stop_server() {
  kill -TERM "$server"
  wait "$server"
}

serves_and_rewrites() {
  start_server
  spillway health --server "$address"
  spillway rewrite graph.pb -o served.pb --server "$address" "${options[@]}"
  stop_server
  spillway rewrite graph.pb -o local.pb "${options[@]}"
  cmp served.pb local.pb
  if cmp -s graph.pb local.pb; then echo 'nothing was rewritten'; return 1; fi
}

python_rewrites() {
  [[ ! -e /usr/lib/python3/dist-packages/spillway/lib ]]
  python3 - <<'PYTHON'
import pathlib
import spillway
result = spillway.rewrite(pathlib.Path("graph.pb").read_bytes(), strategy="scope", fuse_swapins=True,
                          lb=5, min_tensor_bytes=4096)
assert bytes(result.graph_def) == pathlib.Path("local.pb").read_bytes(), "other bytes than the program's"
print(spillway.__version__)
PYTHON
}

has_its_documents() {
  local page
  for page in spillway-client:spillway.1 spillway-client:spillway-rewrite.1 spillway-server:spillwayd.1; do
    dpkg -L "${page%%:*}" | grep -qxF "/usr/share/man/man1/${page##*:}.gz" ||
      { echo "no $page"; return 1; }
  done
  test -s /usr/share/bash-completion/completions/spillway
  test -s /lib/systemd/system/spillwayd.service
}

# A running server continues unchanged without systemd; no call fails, and settings stay.
upgrades_under_a_server() {
  start_server
  sed -i 's/^SPILLWAYD_OPTIONS=.*/SPILLWAYD_OPTIONS="--log-level warn"/' /etc/default/spillwayd
  touch go-on
  (
    calls=0
    while [[ -e go-on ]]; do
      spillway health --server "$address" --timeout 20s || exit 1
      calls=$((calls + 1))
    done
    echo "$calls" >calls
  ) >calls.log 2>&1 &
  local caller=$!
  apt_get install ./upgraded/{spillway-server,spillway-client,libspillway0,python3-spillway}_*.deb
  is "$(version_of spillway-server)" "$(dpkg-deb -f upgraded/spillway-server_*.deb Version)"
  grep -qx 'SPILLWAYD_OPTIONS="--log-level warn"' /etc/default/spillwayd
  spillway rewrite graph.pb -o served.pb --server "$address" "${options[@]}"
  cmp served.pb local.pb
  rm go-on
  wait "$caller" || { cat calls.log; return 1; }
  [[ $(cat calls) -gt 0 ]]
  stop_server
  start_server
  spillway health --server "$address"
  stop_server
}

removes() {
  ours remove
  [[ -z $(type -P spillwayd spillway) ]]
  grep -qx 'SPILLWAYD_OPTIONS="--log-level warn"' /etc/default/spillwayd
}

# A journal's files, too.
purges() {
  mkdir -p /var/log/private/spillway
  echo '{}' >/var/log/private/spillway/journal.jsonl
  ln -s private/spillway /var/log/spillway
  ours purge
  rmdir /var/log/private
  files >after
  diff before after
}

builds_against_dev() {
  apt_get install ./packages/{libspillway0,libspillway-dev}_*.deb g++ cmake make pkg-config
  local flags
  read -ra flags < <(pkg-config --cflags --libs spillway)
  gcc -std=c99 -pedantic -Wall -Wextra -Werror rewrite_graph.c -o sample "${flags[@]}"
  ./sample resnet50.pb sample.pb
  test -s sample.pb
  cmake -S consumer -B built -DKIND=shared -DCMAKE_COMPILE_WARNING_AS_ERROR=ON >log 2>&1 &&
    cmake --build built >>log 2>&1 || { tail -n 20 log; return 1; }
  built/consumer_c mnist.pb | grep '^bytes: [1-9]'
  built/consumer_cc mnist.pb | grep '^tensors swapped: [1-9]'
}

# ---- Under systemd, which runs here then.

installs_systemd() {
  ours purge
  apt_get install systemd systemd-sysv
  apt_get install ./packages/{spillway-server,spillway-client,libspillway0}_*.deb
}

main_pid() {
  systemctl show --property MainPID --value spillwayd
}

# The unit is enabled, and active once the server listens.
starts_at_boot() {
  timeout 60 systemctl is-system-running --wait || [[ $(systemctl is-failed spillwayd) != failed ]]
  systemctl start spillwayd
  is "$(systemctl is-enabled spillwayd)" enabled
  is "$(systemctl show --property Type --value spillwayd)" notify
  spillway health --server 127.0.0.1:7070
  local user
  user=$(stat -c %u "/proc/$(main_pid)")
  [[ $user -gt 60000 ]] || { echo "it runs as $user"; return 1; }
}

# A socket in the folder that the unit makes, TLS with a key that a group may read, a limit of memory.
takes_settings() {
  openssl_key
  mkdir -p /etc/systemd/system/spillwayd.service.d
  printf '[Service]\nSupplementaryGroups=shadow\nMemoryMax=1G\n' \
    >/etc/systemd/system/spillwayd.service.d/ours.conf
  echo 'SPILLWAYD_OPTIONS="--listen unix:/run/spillway/spillwayd.sock --listen 0.0.0.0:7071 --tls-cert /etc/ours.pem --tls-key /etc/ours.key"' \
    >/etc/default/spillwayd
  systemctl daemon-reload
  systemctl restart spillwayd
  spillway health --server unix:/run/spillway/spillwayd.sock
  spillway rewrite graph.pb -o served.pb --server localhost:7071 --tls-ca /etc/ours.pem "${options[@]}"
  cmp served.pb local.pb
}

# Made outside, which has an openssl.
openssl_key() {
  install -m 644 ours.pem /etc/ours.pem
  install -m 640 -g shadow ours.key /etc/ours.key
}

# The old server answers its requests, the new one the rest: no call fails.
restarts_when_upgraded() {
  local before caller
  before=$(main_pid)
  touch go-on
  (
    calls=0
    while [[ -e go-on ]]; do
      spillway rewrite graph.pb -o called.pb --server unix:/run/spillway/spillwayd.sock "${options[@]}"
      cmp called.pb local.pb
      calls=$((calls + 1))
    done
    echo "$calls" >calls
  ) >calls.log 2>&1 &
  caller=$!
  apt_get install ./upgraded/{spillway-server,spillway-client,libspillway0}_*.deb
  rm go-on
  wait "$caller" || { cat calls.log; return 1; }
  [[ $(cat calls) -gt 0 ]]
  is "$(systemctl is-active spillwayd)" active
  [[ $(main_pid) != "$before" ]] || { echo "the old server still runs"; return 1; }
  # It ended by itself: neither killed nor with an error.
  if journalctl -u spillwayd --no-pager | grep -E 'Killing|timed out|Failed with'; then return 1; fi
}

starts_again_when_killed() {
  local before=0 tries
  before=$(main_pid)
  kill -KILL "$before"
  for tries in {1..100}; do
    [[ $(main_pid) == @(0|"$before") || $(systemctl is-active spillwayd) != active ]] || break
    sleep 0.2
  done
  echo "after $tries looks"
  is "$(systemctl show --property NRestarts --value spillwayd)" 1
  spillway health --server unix:/run/spillway/spillwayd.sock
}

wrong_flags_are_told_once() {
  echo 'SPILLWAYD_OPTIONS="--no-such-flag"' >/etc/default/spillwayd
  if systemctl restart spillwayd; then echo "it starts"; return 1; fi
  sleep 3  # Longer than RestartSec.
  is "$(systemctl is-active spillwayd || true)" failed
  is "$(systemctl show --property NRestarts --value spillwayd)" 0
  journalctl -u spillwayd --no-pager | grep -F -- --no-such-flag
  echo 'SPILLWAYD_OPTIONS=""' >/etc/default/spillwayd
  systemctl start spillwayd
}

purges_what_runs() {
  local pid
  pid=$(main_pid)
  [[ $pid -gt 0 && -d /var/log/private/spillway ]]
  ours purge
  [[ ! -e /proc/$pid && ! -e /var/log/private/spillway && ! -e /run/spillway && ! -e /etc/default/spillwayd ]]
  if systemctl cat spillwayd; then return 1; fi
}

"$1"
