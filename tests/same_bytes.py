#!/usr/bin/env python3
"""Tests that plans are the same on every machine.

    tests/same_bytes.py rules     no source of the core calls a function of libm whose last bit is not
                                  laid down, and the core is compiled without contractions (a * b + c
                                  in one rounding): both differ from machine to machine
    tests/same_bytes.py plans     `spillway`, in build/, plans some graphs to the same bytes with the
                                  libm for this processor and with the one for any (glibc's tunables)

Prints the problems, and last `N passed, N failed`. Exit code 1: one failed; 77: not here.
"""

import gzip
import json
import os
import platform
import re
import subprocess
import sys
import tempfile

from project_files import ROOT, project_files

# All that IEEE 754 or the C standard does not lay down to the last bit. (sqrt, floor, frexp, ldexp and
# the like are exact.)
INEXACT = ("pow exp exp2 expm1 log log2 log10 log1p cbrt hypot sin cos tan asin acos atan atan2 sinh "
           "cosh tanh asinh acosh atanh erf erfc tgamma lgamma fma beta expint riemann_zeta").split()
CALL = re.compile(r"(?<![\w.>])(?:std::|::)?(?:%s)[fl]?\s*\(" % "|".join(INEXACT))
WITHOUT_CONTRACTIONS = "-ffp-contract=off"
# By name, with the parts of the memory of a step.
GRAPHS = {"bert_tiny": (0.4, 0.55), "unet3d_s16": (0.4, 0.5), "tfcnn_googlenet": (0.5,)}
PLAIN = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX2_Usable,-FMA_Usable,-FMA4_Usable"}


def calls(text):
    """The lines of C++ that call such a function, with their numbers."""
    for number, line in enumerate(text.split("\n"), 1):
        if CALL.search(line.split("//")[0]):
            yield number, line.strip()


def rules():
    wrong = []
    # The rule finds its calls, and no others.
    if len(list(calls("x = std::pow(a, b);\ny = exp2f (a);\nz = ::log(a);"))) != 3:
        wrong.append("the rule finds too little")
    if list(calls("x = std::sqrt(a);  // std::pow(a)\nPower(x);\nout.log(x);\nSinh(x);\nMyExp(x);")):
        wrong.append("the rule finds too much")
    sources = project_files("rewrite_core/*.cc", "rewrite_core/*.h", "rewrite_core/*.inc")
    for name in sources:
        for number, line in calls((ROOT / name).read_text(encoding="utf-8")):
            wrong.append("%s:%d: inexact: %s" % (name, number, line))
    if WITHOUT_CONTRACTIONS not in (ROOT / "CMakeLists.txt").read_text():
        wrong.append("CMakeLists.txt: no " + WITHOUT_CONTRACTIONS)
    return len(sources), wrong


def run(*arguments, env=()):
    done = subprocess.run([str(ROOT / "build/bin/spillway"), *map(str, arguments)], check=False,
                          env={**os.environ, **dict(env)}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise SystemExit("spillway %s: %d: %s" % (" ".join(map(str, arguments)), done.returncode,
                                                  done.stderr.decode()[-500:]))
    return done.stdout


def plans(folder):
    if platform.libc_ver()[0] != "glibc":
        print("skipped: no glibc here, whose tunables choose its libm")
        sys.exit(77)
    passed, wrong, clones = 0, [], 0
    for name, parts in GRAPHS.items():
        graph = os.path.join(folder, name)
        with open(graph, "wb") as file:
            file.write(gzip.decompress((ROOT / "tests/graphs" / name / "graph.pb.gz").read_bytes()))
        ample = ("--batch-size", 8, "--hardware", "p100_pcie")
        said = json.loads(run("simulate", graph, "--json", *ample))
        peak = int(said["forecast"]["devices"][0]["peak_bytes"])
        for part in parts:
            given = ("rewrite", graph, *ample, "--gpu-memory-bytes", int(peak * part),
                     "--allocator-reserve", 0, "--recompute", "all", "--quiet", "-o", graph + ".after",
                     "--save-plan", graph + ".json")
            found = set()
            for env in ({}, PLAIN):
                run(*given, env=env)
                with open(graph + ".json", "rb") as file:
                    found.add(file.read())
            clones += len(json.loads(found.pop()).get("clones", ()))
            passed += not found
            if found:
                wrong.append("%s in %g of its memory: another plan without FMA" % (name, part))
    if not clones:
        wrong.append("no plan has clones, which are what is chosen by powers of time")
    return passed, wrong


def main():
    if sys.argv[1:] not in (["rules"], ["plans"]):
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        passed, wrong = rules() if sys.argv[1] == "rules" else plans(folder)
    print("\n".join(wrong + ["%d passed, %d failed" % (passed, len(wrong))]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
