#!/usr/bin/env python3
"""Today's client and server, with peers of a version that is not written yet: their API is a copy
of proto/ where every message has one more field, every enum one more value, every stream of answers
one more kind of part and the service one more method. A program in Python, by grpcio, plays them:
as a client it asks the real server; as a server it stands in front of one and adds tomorrow's
fields, values and parts to its answers.

    with_server.sh build/clients-venv/bin/python tomorrow_test.py

Needs what python_client.py does (with_server.sh, requirements.txt). The last line is
`N passed, N failed`."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import grpc
from google.protobuf import descriptor_pool, message_factory
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from grpc_tools import protoc

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/deploy"))

from checks import check, finish  # noqa: E402

SERVICE = "spillway.v1.RewriteService"
SMALL, LARGE = (pathlib.Path(os.environ["SPILLWAY_" + size]) for size in ("SMALL", "LARGE"))
REWRITTEN = pathlib.Path(os.environ["SPILLWAY_LARGE_REWRITTEN"])
SERVER = os.environ["SPILLWAY_SERVER"]
SPILLWAY = os.environ.get("SPILLWAY_BIN", str(ROOT / "build/bin")) + "/spillway"
# Of with_server.sh, for SPILLWAY_LARGE_REWRITTEN.
OPTIONS = ("--strategy", "scope", "--fuse-swapins", "--lb", "5", "--min-tensor-bytes", "4096")
# Longest wait for anything that must come; a test that hangs fails.
PATIENCE_S = 60
NEW_FIELD, NEW_VALUE = 4000, 99
STATUS_DETAILS = "grpc-status-details-bin"


def add_to(text):
    """A .proto file of today as it may be tomorrow."""
    lines, names = [], []  # The names of the enums that are open at a line, None for other blocks.
    for line in text.split("\n"):
        indent = line[:len(line) - len(line.lstrip())]
        if re.match(r"\s*(message \w+|enum \w+|oneof \w+) \{$", line):
            names.append(line.split()[:2])
        elif re.match(r"\s*message \w+ \{\}$", line):
            line = line[:-1] + " string of_tomorrow = %d; }" % NEW_FIELD
        elif re.match(r"\s*service ", line):
            names.append(["service", ""])
        elif line.strip() == "}" and names:
            kind, name = names.pop()
            if kind == "message":
                lines.append("%s  string of_tomorrow = %d;" % (indent, NEW_FIELD))
            elif kind == "enum":
                prefix = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()
                lines.append("%s  %s_OF_TOMORROW = %d;" % (indent, prefix, NEW_VALUE))
            elif kind == "oneof" and name == "part":
                lines.append("%s  string part_of_tomorrow = %d;" % (indent, NEW_FIELD + 1))
            elif kind == "service":
                lines.append(
                    "  rpc Tomorrow(GetCapabilitiesRequest) returns (GetCapabilitiesResponse);")
        lines.append(line)
    return "\n".join(lines)


class Api:
    """Tomorrow's messages, by name."""

    def __init__(self, folder):
        proto = pathlib.Path(folder)
        (proto / "spillway/v1").mkdir(parents=True)
        for path in pathlib.Path(os.environ["SPILLWAY_PROTO"]).glob("spillway/v1/*.proto"):
            (proto / "spillway/v1" / path.name).write_text(add_to(path.read_text()))
        files = sorted(str(path.relative_to(proto)) for path in proto.glob("spillway/v1/*.proto"))
        well_known = pathlib.Path(protoc.__file__).parent / "_proto"
        if protoc.main(["protoc", "-I", str(proto), "-I", str(well_known), "--python_out", folder,
                        *files]) != 0:
            sys.exit("tomorrow's API does not compile")
        sys.path.insert(0, folder)
        for file in files:
            __import__(file[:-len(".proto")].replace("/", ".") + "_pb2")
        self.pool = descriptor_pool.Default()
        self.methods = self.pool.FindServiceByName(SERVICE).methods_by_name

    def message(self, name, **fields):
        descriptor = self.pool.FindMessageTypeByName("spillway.v1." + name)
        return message_factory.GetMessageClass(descriptor)(**fields)


def messages_in(message):
    """It, and all messages in it."""
    yield message
    for field, value in message.ListFields():
        if field.type != field.TYPE_MESSAGE or field.message_type.GetOptions().map_entry:
            continue
        for part in value if field.is_repeated else [value]:
            yield from messages_in(part)


def add_fields(message):
    for part in list(messages_in(message)):
        if "of_tomorrow" in part.DESCRIPTOR.fields_by_name:
            part.of_tomorrow = "news"


def add_values(message):
    """Gives every enum in it a value that only tomorrow knows."""
    for part in list(messages_in(message)):
        for field, value in part.ListFields():
            if field.type != field.TYPE_ENUM:
                continue
            if field.is_repeated:
                value.append(NEW_VALUE)
            else:
                setattr(part, field.name, NEW_VALUE)


class Front:
    """A server of tomorrow: forwards calls to the real one, and applies `change` to each message of
    an answer. It does not know methods that are not in `methods`."""

    def __init__(self, api, change, methods=None, reason=None):
        self.api, self.change, self.reason = api, change, reason
        self.channel = grpc.insecure_channel(SERVER)
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        # On the wire a unary call is a stream of one message each way.
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, {
            name: grpc.stream_stream_rpc_method_handler(self.handler(name))
            for name in (methods or api.methods) if name != "Tomorrow"})])
        self.target = "127.0.0.1:%d" % self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def handler(self, name):
        response = self.api.methods[name].output_type.name
        in_stream = "part" in self.api.methods[name].output_type.oneofs_by_name

        def handle(requests, context):
            try:
                if in_stream and self.change is add_fields:
                    yield self.api.message(response, part_of_tomorrow="news").SerializeToString()
                call = self.channel.stream_stream("/%s/%s" % (SERVICE, name))
                for answer in call(requests, timeout=PATIENCE_S):
                    message = self.api.message(response)
                    message.ParseFromString(answer)
                    self.change(message)
                    yield message.SerializeToString()
            except grpc.RpcError as error:
                trailers = dict(error.trailing_metadata())
                if self.reason is not None:
                    trailers[STATUS_DETAILS] = trailers[STATUS_DETAILS].replace(*self.reason)
                context.set_trailing_metadata(tuple(trailers.items()))
                context.abort(error.code(), error.details())

        return handle

    def close(self):
        self.server.stop(0).wait(PATIENCE_S)
        self.channel.close()


def spillway(*arguments):
    return subprocess.run([SPILLWAY, *map(str, arguments)], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False)


def commands(out):
    """A command for each call, and the files that it writes besides standard output."""
    options = (*OPTIONS, "--quiet", "--report", out / "report.json", "-o", out / "graph.pb")
    return {
        "Rewrite": ("rewrite", SMALL, *options),
        "StreamRewrite": ("rewrite", LARGE, *options),
        "Inspect": ("inspect", LARGE, "--shapes"),
        "Inspect, in short": ("inspect", LARGE),
        "Simulate": ("simulate", LARGE),
        "Explore": ("explore", SMALL, "--no-budget", "--sizes", "1,2"),
        "Diff": ("diff", LARGE, REWRITTEN),
        "GetCapabilities": ("capabilities", "--json"),
    }


def without_times(report):
    for stage in report.get("stages", []):
        stage["duration_ns"] = 0
    return report


@contextlib.contextmanager
def front(*arguments, **keywords):
    server = Front(*arguments, **keywords)
    try:
        yield server
    finally:
        server.close()


def newer_server(api, folder):
    """A client of today."""
    out = pathlib.Path(folder)
    expected = {}
    for name, command in commands(out).items():
        expected[name] = answer_of(command, SERVER, out)
    with front(api, add_fields) as server:
        for name, command in commands(out).items():
            got = answer_of(command, server.target, out)
            check("new fields and parts in the answer of %s change nothing" % name,
                  got == expected[name], "exit code and output: %s, not %s" % (
                      repr(got)[:600], repr(expected[name])[:600]))
    with front(api, add_values) as server:
        values(server.target, expected, out)
    with front(api, add_fields, reason=(b"BAD_REGEX", b"TOMORROWS")) as server:
        done = spillway("rewrite", SMALL, "-o", out / "graph.pb", "--strategy", "scope",
                        "--optimizer-scopes", "(", "--server", server.target)
        check("an error with a reason that only tomorrow has is told, and judged by its code",
              done.returncode == 3 and done.stderr.rstrip().endswith("[TOMORROWS]"),
              "%d: %s" % (done.returncode, done.stderr))


def answer_of(command, server, out):
    """Exit code, output, and the files, without times."""
    for path in (out / "report.json", out / "graph.pb"):
        path.unlink(missing_ok=True)
    done = spillway(*command, "--server", server)
    answer = [done.returncode, done.stdout, done.stderr.replace(server, "SERVER")]
    if (out / "graph.pb").exists():
        answer += [(out / "graph.pb").read_bytes(),
                   without_times(json.loads((out / "report.json").read_text()))]
    return answer


def values(server, expected, out):
    """Every enum has a value that today's client does not know: that is no error."""
    for name, command in commands(out).items():
        got = answer_of(command, server, out)
        check("values that only tomorrow has, in the answer of %s, are no error" % name,
              got[0] == expected[name][0] and (got[1] or len(got) > 3),
              "exit code and output: %s" % repr(got)[:600])
        if len(got) > 3:
            check("the graph of %s is that of the server all the same" % name,
                  got[3] == expected[name][3])
            check("the report of %s has the number" % name, got[4]["outcome"] == NEW_VALUE,
                  got[4]["outcome"])
    done = spillway("capabilities", "--server", server)
    check("a strategy that only tomorrow has is told by its number",
          "number %d" % NEW_VALUE in done.stdout, done.stdout)
    done = spillway("rewrite", SMALL, "-o", out / "graph.pb", *OPTIONS, "--server", server)
    check("and so is it in the account of a rewrite",
          "(strategy number %d)" % NEW_VALUE in done.stderr, done.stderr)


def older_server(api, folder):
    """As one that was written before there were questions: a client of today says so."""
    out = pathlib.Path(folder)
    with front(api, lambda message: None,
               methods=["Rewrite", "StreamRewrite", "GetCapabilities"]) as server:
        version = spillway("capabilities", "--server", server.target)
        check("capabilities tell both versions", "(this program: " in version.stdout,
              version.stdout)
        for name in ("Inspect", "Simulate", "Explore", "Diff"):
            done = spillway(*commands(out)[name], "--server", server.target)
            check("a server without %s is told to be older" % name,
                  done.returncode == 5 and "no %s yet" % name in done.stderr and
                  "update the server" in done.stderr, "%d: %s" % (done.returncode, done.stderr))


def stored(api, folder):
    """Files that a program of tomorrow left."""
    out = pathlib.Path(folder)
    new_key, new_name = '"of_tomorrow": "news"', "_OF_TOMORROW"

    def as_tomorrow(text):
        # Into every object, and one value of an enum by its name.
        text = re.sub(r"\{\s*\n", lambda m: m[0] + new_key + ",\n", text)
        return re.sub(r'"FIT_(FITS|UNKNOWN|DOES_NOT_FIT)"', '"FIT%s"' % new_name, text, count=1)

    report = out / "stored.json"
    for command in (("inspect", LARGE, "--memory", "--json"),
                    ("explore", SMALL, "--no-budget", "--sizes", "1,2", "--json")):
        text = as_tomorrow(spillway(*command).stdout)
        report.write_text(text)
        done = spillway("plot", report, "-o", out / "picture.svg")
        check("a report of tomorrow's %s is drawn" % command[0],
              new_key in text and new_name in text and done.returncode == 0,
              "%d: %s" % (done.returncode, done.stderr))
    plan = out / "plan.json"
    spillway("rewrite", LARGE, "-o", out / "graph.pb", *OPTIONS, "--save-plan", plan, "--quiet")
    text = plan.read_text()
    for words, changed in (
            ("of_tomorrow", text.replace("{", "{" + new_key + ",", 1)),
            ("format_version", re.sub(r'"format_version": 1\b', '"format_version": 4', text))):
        plan.write_text(changed)
        done = spillway("apply", plan, LARGE, "-o", out / "applied.pb")
        check("a plan of tomorrow, with another %s, is refused by name" % words,
              changed != text and done.returncode == 2 and words in done.stderr and
              not (out / "applied.pb").exists(), "%d: %s" % (done.returncode, done.stderr))


# Requests of a client of tomorrow: where a field may be new, by the path of its message.
PLACES = {
    "Rewrite": ["", "options", "options.step", "options.step.feeds", "options.step.hardware",
                "options.step.hardware.gpu_memories", "options.step.hardware.efficiencies",
                "options.step.loop_counts", "options.scope",
                "options.level", "options.budget", "options.strip", "options.apply"],
    "StreamRewrite": ["", "header", "header.graph", "header.options"],
    "Inspect": ["header", "header.graph", "header.options", "header.options.step"],
    "Simulate": ["header", "header.graph", "header.options", "header.options.step.hardware"],
    "Explore": ["header", "header.graph", "header.options", "header.options.step"],
    "Diff": ["", "header", "header.graph_a", "header.graph_b"],
}
# Options that are enums, by the method that takes them.
CHOICES = {
    "Rewrite": ["already_rewritten", "decision_detail", "simulation", "inline_calls", "outputs", "scope.ctrld_strategy", "budget.planning_effort", "budget.objective",
                "step.hardware.gpu_memory_source"],
    "Simulate": ["execution", "step.hardware.gpu_memory_source"],
}


def at(message, path):
    """The message in it that `path` names, created if it is missing."""
    for name in path.split(".") if path else []:
        field = message.DESCRIPTOR.fields_by_name[name]
        if field.is_repeated:
            message = getattr(message, name).add()
        else:
            getattr(message, name).SetInParent()
            message = getattr(message, name)
    return message


class Client:
    """A client of tomorrow that asks the real server of today."""

    def __init__(self, api):
        self.api = api
        self.channel = grpc.insecure_channel(SERVER)
        self.graph = SMALL.read_bytes()

    def request(self, method):
        request = self.api.message(self.api.methods[method].input_type.name)
        if method == "Rewrite":
            request.graph_def = self.graph
            request.options.scope.SetInParent()
        else:
            for name in ("graph_a", "graph_b") if method == "Diff" else ("graph",):
                getattr(request.header, name).total_size_bytes = len(self.graph)
        if method == "StreamRewrite":
            request.header.options.scope.SetInParent()
        return request

    def ask(self, method, request):
        """Code, reason and metadata of the answer."""
        parts = [request]
        if method != "Rewrite":
            chunk = self.api.message(self.api.methods[method].input_type.name, chunk=self.graph)
            parts += [chunk] * (2 if method == "Diff" else 1)
        call = self.channel.stream_stream("/%s/%s" % (SERVICE, method))
        try:
            list(call(iter([part.SerializeToString() for part in parts]), timeout=PATIENCE_S))
            return grpc.StatusCode.OK, "", {}
        except grpc.RpcError as error:
            status = rpc_status.from_call(error)
            info = error_details_pb2.ErrorInfo()
            if status is not None and status.details:
                status.details[0].Unpack(info)
            return error.code(), info.reason, dict(info.metadata)

    def ask_tomorrow(self):
        """The code of the new method."""
        try:
            self.channel.unary_unary("/%s/Tomorrow" % SERVICE)(b"", timeout=PATIENCE_S)
            return grpc.StatusCode.OK
        except grpc.RpcError as error:
            return error.code()

    def refused(self, name, method, request, option, value):
        code, reason, metadata = self.ask(method, request)
        check(name, code == grpc.StatusCode.INVALID_ARGUMENT and reason == "UNKNOWN_OPTION" and
              option in metadata.get("option", "") and metadata.get("value") == str(value),
              "%s %s %s" % (code, reason, metadata))


def newer_client(api):
    """A server of today."""
    client = Client(api)
    for method, places in PLACES.items():
        code, reason, _ = client.ask(method, client.request(method))
        check("%s of a newer client that asks for nothing new is answered" % method,
              code == grpc.StatusCode.OK, "%s %s" % (code, reason))
        for place in places:
            request = client.request(method)
            message = at(request, place)
            message.of_tomorrow = "news"
            name = message.DESCRIPTOR.name
            client.refused("%s with a new field in %s is refused" % (method, name), method, request,
                           name, NEW_FIELD)
    for method, choices in CHOICES.items():
        for choice in choices:
            request = client.request(method)
            path, _, name = choice.rpartition(".")
            options = at(request, "options" if method == "Rewrite" else "header.options")
            owner = at(options, path)
            if owner.DESCRIPTOR.fields_by_name[name].is_repeated:
                getattr(owner, name).append(NEW_VALUE)
            else:
                setattr(owner, name, NEW_VALUE)
            client.refused("%s with a new value of %s is refused" % (method, choice), method,
                           request, name, NEW_VALUE)
    request = api.message("StreamRewriteRequest", part_of_tomorrow="news")
    client.refused("a stream that begins with a new part is refused", "StreamRewrite", request,
                   "StreamRewriteRequest", NEW_FIELD + 1)
    code = client.ask_tomorrow()
    check("a method that only tomorrow has is UNIMPLEMENTED",
          code == grpc.StatusCode.UNIMPLEMENTED, code)
    client.channel.close()


def main():
    with tempfile.TemporaryDirectory() as folder:
        proto, out = os.path.join(folder, "proto"), os.path.join(folder, "out")
        os.mkdir(proto)
        os.mkdir(out)
        api = Api(proto)
        newer_client(api)
        newer_server(api, out)
        older_server(api, out)
        stored(api, out)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
