#!/usr/bin/env bash
# Copies the files for an image of Spillway out of the Debian that it runs in, which has
# spillway-server, spillway-client and haproxy installed: make_root.sh FOLDER. The Dockerfile runs
# it.
#
# That is the programs, the libraries that they load, a shell with the few tools that hooks of a pod
# use, and for each package with a copied file: its copyright file, and its entry of dpkg's
# database, where scanners of images look (/var/lib/dpkg/status.d). No package manager, no
# documents, no locales.
set -euo pipefail

readonly to=$1
readonly programs=(/usr/bin/spillway /usr/bin/spillwayd /usr/sbin/haproxy)
readonly tools=(/bin/sh /bin/cat /bin/chmod /bin/cp /bin/ln /bin/ls /bin/mkdir /bin/mv /bin/rm /bin/sleep
  /usr/bin/env /usr/bin/test /usr/bin/id /usr/bin/touch)
# spillwayd's user in the image: the Dockerfile's USER.
readonly user=65532

packages=()
# put FILE: FILE, or the file that it links to, at FILE's place; /bin and /lib are links to those of
# /usr.
put() {
  local file=$1 real place owner
  real=$(realpath "$file")
  place=$(realpath "$(dirname "$file")")/$(basename "$file")
  install -D -m "$(stat -c %a "$real")" "$real" "$to$place"
  # dpkg knows a file by either name.
  owner=$(dpkg-query -S "$real" 2>/dev/null || dpkg-query -S "${real#/usr}" 2>/dev/null)
  packages+=("${owner%%:*}")
}

mkdir -p "$to"/{dev,etc,proc,run,sys,usr/bin,usr/sbin,usr/lib,var/lib/dpkg/status.d}
mkdir -m 1777 "$to/tmp"
for folder in bin sbin lib lib64; do
  [[ ! -L /$folder ]] || ln -s "usr/$folder" "$to/$folder"
done
# The loader and the libraries, by their paths; the kernel's vDSO has none.
mapfile -t libraries < <(ldd "${programs[@]}" "${tools[@]}" | grep -oE '/[^ ]+\.so[^ :]*' | sort -u)
for file in "${programs[@]}" "${tools[@]}" "${libraries[@]}"; do
  put "$file"
done
install -m 644 /etc/nsswitch.conf "$to/etc/nsswitch.conf"
install -m 644 /usr/lib/os-release "$to/usr/lib/os-release"
ln -s ../usr/lib/os-release "$to/etc/os-release"
: >"$to/etc/hosts"
printf '%s\n' "root:x:0:0:root:/:/bin/sh" "spillway:x:$user:$user:Spillway:/:/bin/sh" >"$to/etc/passwd"
printf '%s\n' "root:x:0:" "spillway:x:$user:" >"$to/etc/group"

mapfile -t packages < <(printf '%s\n' "${packages[@]}" base-files | sort -u)
for package in "${packages[@]}"; do
  dpkg-query -s "$package" >"$to/var/lib/dpkg/status.d/$package"
  install -D -m 644 "/usr/share/doc/$package/copyright" "$to/usr/share/doc/$package/copyright"
done
# The packages' sources, build tools and checksums.
install -m 644 -t "$to/usr/share/doc/spillway-server" /usr/share/doc/spillway-server/*.buildinfo
# Licenses that copyright files refer to.
cp -rL /usr/share/common-licenses "$to/usr/share/common-licenses"
[[ -z ${SOURCE_DATE_EPOCH-} ]] || find "$to" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
