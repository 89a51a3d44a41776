#!/usr/bin/env python3
"""Writes the SBOM (SPDX 2.3, JSON) of what was built: Spillway's files, and what they are linked with.

    deploy/sbom.py build-debian/*.deb -o spillway.spdx.json
    deploy/sbom.py build/bin/spillway build/bin/spillwayd -o programs.spdx.json
    deploy/sbom.py build-portable/dist/*.whl build-portable/dist/*.tar.gz \\
        --sources build-portable/dist/sources.txt -o portable.spdx.json

Packages (.deb, .whl, .tar.gz) and programs are looked at file by file. The libraries that they load
are those of this machine, which must be a Debian, and so have the versions that it built with: each
is named with its Debian package, version, source package and license, as far as its copyright file is
machine-readable; otherwise the license is NOASSERTION. What the self-contained build has linked in is
in its sources.txt. Header-only libraries, which no program shows, are named from the packages here.

The same files give the same bytes: the time is that of SOURCE_DATE_EPOCH, or of the last entry of
deploy/debian/changelog. Exit code 0: written; 1: something cannot be read; 2: bad usage.
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import uuid
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
OWN_LICENSE = "Apache-2.0"
# CMakeLists.txt finds them, and nothing of them is left to be seen in a program. All of ours have the
# first; programs have CLI11, too; and of these the self-contained ones have what Debian's load.
HEADER_ONLY = ("nlohmann-json3-dev",)
HEADER_ONLY_IN_PROGRAMS = ("libcli11-dev",)
HEADER_ONLY_IN_PORTABLE_PROGRAMS = ("libfmt-dev", "libspdlog-dev")
PROGRAMS = {"spillway", "spillwayd"}
# The short names of DEP-5, where SPDX has others. Those of SPDX are the same otherwise.
DEP5_TO_SPDX = {
    "Expat": "MIT", "MIT": "MIT", "Zlib": "Zlib", "zlib": "Zlib", "curl": "curl", "ISC": "ISC",
    "Apache-2.0": "Apache-2.0", "BSD-2-Clause": "BSD-2-Clause", "BSD-2-clause": "BSD-2-Clause",
    "BSD-3-Clause": "BSD-3-Clause", "BSD-3-clause": "BSD-3-Clause", "BSL-1.0": "BSL-1.0",
    "BSD-3-google": "BSD-3-Clause", "0BSD": "0BSD",
    "GPL-2": "GPL-2.0-only", "GPL-2+": "GPL-2.0-or-later", "GPL-3": "GPL-3.0-only",
    "GPL-3+": "GPL-3.0-or-later", "LGPL-2": "LGPL-2.0-only", "LGPL-2+": "LGPL-2.0-or-later",
    "LGPL-2.1": "LGPL-2.1-only", "LGPL-2.1+": "LGPL-2.1-or-later", "LGPL-3": "LGPL-3.0-only",
    "LGPL-3+": "LGPL-3.0-or-later"}


class Failure(Exception):
    """The SBOM cannot be made; the text says why."""


def run(*command):
    """What a command prints; None if it fails."""
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


def epoch():
    """The time that the document is of."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        if not given.isdigit():
            raise Failure("SOURCE_DATE_EPOCH is '%s', and has to be seconds since 1970" % given)
        return int(given)
    last = re.search(r"^ -- .*>  (.*)$", (ROOT / "deploy/debian/changelog").read_text(), re.MULTILINE)
    return int(datetime.datetime.strptime(last.group(1), "%a, %d %b %Y %H:%M:%S %z").timestamp())


def project_version():
    """That of CMakeLists.txt."""
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"^project\(.*?VERSION ([0-9.]+)", text, re.DOTALL | re.MULTILINE).group(1)


def identifier(*parts):
    """An SPDX id."""
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", "-".join(parts))


def license_of(copyright_text):
    """The license of `Files: *` in a copyright file, and a comment with all that it names."""
    if not copyright_text.startswith("Format:"):
        return "NOASSERTION", "The copyright file is not machine-readable."
    names, of_all = [], None
    for paragraph in re.split(r"\n\s*\n", copyright_text):
        found = re.search(r"^License:[ \t]*(\S.*)$", paragraph, re.MULTILINE)
        if not found:
            continue
        name = found.group(1).strip()
        if name not in names:
            names.append(name)
        if re.search(r"^Files:\s*\*\s*$", paragraph, re.MULTILINE):
            of_all = name
    return (DEP5_TO_SPDX.get(of_all, "NOASSERTION"),
            "The copyright file names: %s." % ", ".join(sorted(names)))


def elf_needs(path):
    """The names of the libraries that an ELF file asks for; none of other files."""
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return []
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", path) or "")


class Debian:
    """This machine's packages."""

    def __init__(self):
        cache = run("/sbin/ldconfig", "-p")
        if cache is None or run("dpkg-query", "--version") is None:
            raise Failure("this is no Debian: the packages of the libraries cannot be told")
        self.places = {}
        for name, path in re.findall(r"^\s+(\S+) \(libc6,x86-64.*\) => (\S+)$", cache, re.MULTILINE):
            self.places.setdefault(name, path)
        self.owners = {}

    def owner(self, library):
        """The package of a library by its soname."""
        if library not in self.owners:
            path = self.places.get(library)
            if path is None:
                raise Failure("%s is not installed here: what is linked with it was built elsewhere"
                              % library)
            # /lib is a link to /usr/lib, and dpkg knows one of both names.
            real = os.path.realpath(path)
            for name in (path, real, real.replace("/usr/lib/", "/lib/", 1)):
                found = run("dpkg-query", "-S", name)
                if found:
                    break
            else:
                raise Failure("%s is of no Debian package" % path)
            self.owners[library] = found.split(": ")[0].split(",")[0].split(":")[0]
        return self.owners[library]

    def describe(self, package):
        """Name, version, source, source version, homepage and license text of a package."""
        form = "${Version}\\n${source:Package}\\n${source:Version}\\n${Homepage}\\n"
        # Of several architectures, the first.
        found = run("dpkg-query", "-W", "-f=" + form, package)
        if found is None:
            raise Failure("the Debian package %s is not installed here" % package)
        version, source, source_version, homepage = found.split("\n")[:4]
        text = ""
        copyright_file = pathlib.Path("/usr/share/doc") / package / "copyright"
        if copyright_file.exists():
            text = copyright_file.read_text(errors="replace")
        return version, source, source_version, homepage, text


class Document:
    """The parts of an SPDX document."""

    def __init__(self, debian):
        self.debian = debian
        self.packages, self.files, self.relations = {}, {}, set()
        self.followed = set()  # Libraries.

    def relate(self, one, kind, other):
        self.relations.add((one, kind, other))

    def add_artifact(self, path, files):
        """One of ours: `files` are (name, bytes, path or None)."""
        data = path.read_bytes()
        own = identifier("Artifact", path.name)
        if own in self.packages:
            raise Failure("two files are called %s" % path.name)
        sums = []
        for name, content, place in sorted(files):
            sha1 = hashlib.sha1(content).hexdigest()
            sums.append(sha1)
            file = identifier("File", hashlib.sha256((path.name + "\0" + name).encode()).hexdigest()[:16])
            self.files[file] = {
                "SPDXID": file, "fileName": "./" + name.lstrip("./"),
                "checksums": [{"algorithm": "SHA1", "checksumValue": sha1},
                              {"algorithm": "SHA256",
                               "checksumValue": hashlib.sha256(content).hexdigest()}],
                "licenseConcluded": "NOASSERTION", "licenseInfoInFiles": ["NOASSERTION"],
                "copyrightText": "NOASSERTION"}
            self.relate(own, "CONTAINS", file)
            for library in elf_needs(place) if place else []:
                self.add_linked(file, library, {each[0].rsplit("/", 1)[-1] for each in files})
        self.packages[own] = {
            "SPDXID": own, "name": path.name, "versionInfo": project_version(),
            "packageFileName": path.name, "supplier": "Organization: Spillway maintainers",
            "downloadLocation": "NOASSERTION", "filesAnalyzed": True,
            "packageVerificationCode": {"packageVerificationCodeValue": hashlib.sha1(
                "".join(sorted(sums)).encode()).hexdigest()},
            "checksums": [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}],
            "licenseConcluded": OWN_LICENSE, "licenseDeclared": OWN_LICENSE,
            "licenseInfoFromFiles": ["NOASSERTION"], "copyrightText": "NOASSERTION"}
        self.relate("SPDXRef-DOCUMENT", "DESCRIBES", own)
        return own

    def add_linked(self, user, library, own_names=()):
        """That `user` loads `library`, and what that loads."""
        if library in own_names or library.startswith("libspillway"):
            return
        package = self.debian.owner(library)
        own = self.add_debian(package)
        self.relate(user, "DYNAMIC_LINK", own)
        if library in self.followed:
            return
        self.followed.add(library)
        for needed in elf_needs(self.debian.places[library]):
            if self.debian.owner(needed) != package:
                self.add_linked(own, needed)

    def add_debian(self, package):
        own = identifier("Debian", package)
        if own not in self.packages:
            version, source, source_version, homepage, text = self.debian.describe(package)
            self.add_other(own, package, version, text, homepage,
                           "pkg:deb/debian/%s@%s?arch=amd64&distro=debian-12" % (
                               package, version.replace("+", "%2B").replace(":", "%3A")),
                           "Debian's package of the source %s %s" % (source, source_version))
        return own

    def add_other(self, own, name, version, copyright_text, homepage, url, info):
        license_id, comment = license_of(copyright_text)
        self.packages[own] = {
            "SPDXID": own, "name": name, "versionInfo": version, "sourceInfo": info,
            "supplier": "Organization: Debian", "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": license_id,
            "licenseComments": comment, "copyrightText": "NOASSERTION",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": url}]}
        if homepage:
            self.packages[own]["homepage"] = homepage

    def add_linked_in(self, artifact, sources, licenses):
        """What the self-contained build has in it, by `sources`: lines of a name and a version."""
        for line in sources.splitlines():
            name, version = line.split()
            own = identifier("Source", name)
            if own not in self.packages:
                self.add_other(own, name, version, licenses.get(name, ""), "",
                               "pkg:deb/debian/%s@%s?arch=source" % (
                                   name, version.replace("+", "%2B").replace(":", "%3A")),
                               "Built from Debian's source package, by deploy/portable/build.sh")
            self.relate(artifact, "STATIC_LINK", own)

    def json(self):
        version = project_version()
        body = {
            "packages": [self.packages[own] for own in sorted(self.packages)],
            "files": [self.files[own] for own in sorted(self.files)],
            "relationships": [{"spdxElementId": one, "relationshipType": kind,
                               "relatedSpdxElement": other}
                              for one, kind, other in sorted(self.relations)]}
        created = epoch()
        digest = hashlib.sha256(json.dumps([body, created]).encode()).hexdigest()
        head = {
            "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": "spillway-" + version,
            # Not to be fetched: a name that no other document has.
            "documentNamespace": "https://spdx.org/spdxdocs/spillway-%s-%s" % (
                version, uuid.uuid5(uuid.NAMESPACE_URL, digest)),
            "creationInfo": {
                "created": datetime.datetime.fromtimestamp(
                    created, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "creators": ["Tool: spillway-deploy/sbom.py-" + version,
                             "Organization: Spillway maintainers"]}}
        return json.dumps({**head, **body}, indent=1) + "\n"


def unpack(path, folder):
    """The files of a package as (name, bytes, path), and the licenses in it."""
    folder.mkdir()
    if path.suffix == ".deb":
        if run("dpkg-deb", "-x", path, folder) is None:
            raise Failure("%s cannot be unpacked by dpkg-deb" % path)
    elif path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
    else:
        with tarfile.open(path) as archive:
            # Newer Pythons want to be told that nothing in there leads outside.
            archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    places = sorted(place for place in folder.rglob("*") if place.is_file() and not place.is_symlink())
    licenses = {place.name: place.read_text(errors="replace")
                for place in places if place.parent.name == "licenses"}
    return [(str(place.relative_to(folder)), place.read_bytes(), place) for place in places], licenses


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE",
                        help="a .deb, a .whl, a .tar.gz, or a program or library")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="otherwise to standard output")
    parser.add_argument("--sources", type=pathlib.Path,
                        help="what is linked into a .whl and a .tar.gz, as deploy/portable writes it")
    arguments = parser.parse_args()
    document = Document(Debian())
    sources = arguments.sources.read_text() if arguments.sources else ""
    with tempfile.TemporaryDirectory() as work:
        for number, path in enumerate(sorted(arguments.files, key=lambda each: each.name)):
            packed = path.name.endswith((".deb", ".whl", ".tar.gz"))
            if packed:
                files, licenses = unpack(path, pathlib.Path(work) / str(number))
            else:
                files, licenses = [(path.name, path.read_bytes(), path)], {}
            artifact = document.add_artifact(path, files)
            portable = packed and path.suffix != ".deb"
            if portable and not sources:
                raise Failure("%s has libraries linked in: --sources says which" % path)
            if portable:
                document.add_linked_in(artifact, sources, licenses)
            binaries = {place.name for _, _, place in files if elf_needs(place)}
            headers = HEADER_ONLY if binaries else ()
            if binaries & PROGRAMS:
                headers += HEADER_ONLY_IN_PROGRAMS
                headers += HEADER_ONLY_IN_PORTABLE_PROGRAMS if portable else ()
            for package in headers:
                document.relate(artifact, "STATIC_LINK", document.add_debian(package))
    text = document.json()
    if arguments.output:
        arguments.output.write_text(text)
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, OSError) as failure:
        print("deploy/sbom.py: %s" % failure, file=sys.stderr)
        sys.exit(1)
