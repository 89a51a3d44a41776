#!/usr/bin/env python3
"""Calls made by grpcurl and ghz, which learn our service by reflection alone. Both have to be on the
PATH; it is skipped without. Run it with with_server.sh. The last line is `N passed, N failed`."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys

SERVER = os.environ["SPILLWAY_SERVER"]
SERVICE = "spillway.v1.RewriteService"
# The options of with_server.sh, as JSON has them: 64-bit numbers are strings.
OPTIONS = {"scope": {"fuse_swapins": True, "lb": 5}, "min_tensor_bytes": "4096"}
LOAD_CALLS = 200
INVALID_ARGUMENT = 3
# Long enough for a busy machine; a call that hangs fails.
PATIENCE_S = 60


def read(name):
    return pathlib.Path(os.environ["SPILLWAY_" + name]).read_bytes()


def request(graph, options):
    return json.dumps({"graph_def": base64.b64encode(graph).decode(), "options": options})


def run(command, stdin=""):
    """(exit code, output)"""
    done = subprocess.run(
        command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=PATIENCE_S, check=False,
    )
    return done.returncode, done.stdout


def grpcurl(*arguments, data=None):
    command = ["grpcurl", "-plaintext", "-max-msg-sz", str(64 << 20)]
    command += ["-d", "@"] if data is not None else []
    code, text = run(command + [SERVER, *arguments], data or "")
    assert code == 0, text[:1000]
    return text


def test_list():
    assert SERVICE in grpcurl("list").split()
    methods = set(grpcurl("list", SERVICE).split())
    expected = (
        "Rewrite", "StreamRewrite", "Inspect", "Simulate", "Explore", "Diff", "GetCapabilities",
    )
    assert methods == {SERVICE + "." + method for method in expected}, methods


def test_describe():
    text = grpcurl("describe", "spillway.v1.RewriteOptions")
    assert "min_tensor_bytes" in text, text
    assert "stream .spillway.v1.StreamRewriteRequest" in grpcurl("describe", SERVICE)


def test_health():
    for service in ("", SERVICE):
        answer = grpcurl("grpc.health.v1.Health/Check", data=json.dumps({"service": service}))
        assert json.loads(answer) == {"status": "SERVING"}, answer
    # The described service is the served one.
    methods = grpcurl("list", "grpc.health.v1.Health").split()
    assert methods == ["grpc.health.v1.Health.Check", "grpc.health.v1.Health.Watch"], methods


def test_capabilities():
    answer = json.loads(grpcurl(SERVICE + "/GetCapabilities"))
    assert "STRATEGY_SCOPE" in answer["strategies"], answer


def test_rewrite():
    answer = json.loads(grpcurl(SERVICE + "/Rewrite", data=request(read("SMALL"), OPTIONS)))
    assert base64.b64decode(answer["graph_def"]) == read("SMALL_REWRITTEN")
    assert answer["report"]["outcome"] == "OUTCOME_REWRITTEN"


def test_stream():
    graph = read("LARGE")
    parts = [{"header": {"options": OPTIONS, "graph": {"total_size_bytes": str(len(graph))}}}]
    for at in range(0, len(graph), 1 << 18):
        parts.append({"chunk": base64.b64encode(graph[at : at + (1 << 18)]).decode()})
    text = grpcurl(SERVICE + "/StreamRewrite", data="\n".join(map(json.dumps, parts)))
    answers, at = [], 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        answer, at = json.JSONDecoder().raw_decode(text, at)
        answers.append(answer)
    assert answers[0]["header"]["report"]["outcome"] == "OUTCOME_REWRITTEN"
    result = b"".join(base64.b64decode(answer["chunk"]) for answer in answers[1:])
    assert result == read("LARGE_REWRITTEN")


def test_error():
    code, text = run(
        ["grpcurl", "-plaintext", "-format-error", "-d", "@", SERVER, SERVICE + "/Rewrite"],
        request(b"\xff\xff", {}),
    )
    assert code == 64 + INVALID_ARGUMENT, (code, text)  # grpcurl's own rule.
    (detail,) = json.loads(text)["details"]
    assert detail["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    # Decoded by reflection's description of google.rpc, not shown as bytes.
    assert detail["reason"] == "MALFORMED_GRAPH", detail
    assert detail["domain"] == "spillway.v1", detail


def test_load():
    code, text = run(
        ["ghz", "--insecure", "--call", SERVICE + "/Rewrite", "--data-file", "/dev/stdin",
         "--total", str(LOAD_CALLS), "--concurrency", "4", "--format", "json", SERVER],
        request(read("SMALL"), OPTIONS),
    )
    assert code == 0, text[:1000]
    result = json.loads(text)
    assert result["count"] == LOAD_CALLS, result["count"]
    assert result["statusCodeDistribution"] == {"OK": LOAD_CALLS}
    assert not result["errorDistribution"]
    assert result["endReason"] == "normal"


def main():
    missing = [tool for tool in ("grpcurl", "ghz") if not shutil.which(tool)]
    if missing:
        print("skipped: no %s here (tests/tools.sh install go)" % " and no ".join(missing))
        print("0 passed, 0 failed, 1 skipped")
        return 0
    passed, failed = 0, 0
    for name, test in sorted(globals().items()):
        if not name.startswith("test_"):
            continue
        tool = "ghz" if name == "test_load" else "grpcurl"
        try:
            test()
            passed += 1
            print("ok     ", tool, name[len("test_") :])
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            print("FAILED ", tool, name[len("test_") :] + ":", repr(error)[:1000])
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
