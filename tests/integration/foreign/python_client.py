#!/usr/bin/env python3
"""A client in Python, with grpcio and stubs made by grpcio-tools: what somebody has who starts from
our .proto files alone. What its kind of client alone shows; every method is asked by
skew/tomorrow_test.py. Run it with with_server.sh. The last line is `N passed, N failed`."""

import hashlib
import os
import pathlib
import sys
import tempfile
import threading

import grpc
from google.protobuf import descriptor_pb2
from google.rpc import error_details_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from grpc_status import rpc_status
from grpc_tools import protoc

PROTO = pathlib.Path(os.environ["SPILLWAY_PROTO"])
SERVICE = "spillway.v1.RewriteService"
CHUNK_BYTES = 256 * 1024
# Long enough for a busy machine; a call that hangs fails.
PATIENCE_S = 60


def make_stubs(folder):
    """Makes the modules of all our .proto files; returns (options, service, stubs)."""
    files = sorted(str(path.relative_to(PROTO)) for path in PROTO.glob("spillway/v1/*.proto"))
    well_known = pathlib.Path(protoc.__file__).parent / "_proto"
    command = ["protoc", "-I", str(PROTO), "-I", str(well_known)]
    command += ["--python_out", folder, "--grpc_python_out", folder] + files
    if protoc.main(command) != 0:
        sys.exit("protoc failed")
    sys.path.insert(0, folder)
    from spillway.v1 import error_pb2, options_pb2, report_pb2
    from spillway.v1 import rewrite_service_pb2, rewrite_service_pb2_grpc

    return options_pb2, rewrite_service_pb2, rewrite_service_pb2_grpc, report_pb2, error_pb2


def read(name):
    return pathlib.Path(os.environ["SPILLWAY_" + name]).read_bytes()


class Tests:
    """Each method whose name begins with test_ is a case."""

    def __init__(self, channel, folder):
        self.options_pb, self.service_pb, stubs, self.report_pb, self.error_pb = make_stubs(folder)
        self.channel = channel
        self.stub = stubs.RewriteServiceStub(channel)
        self.options = self.options_pb.RewriteOptions(min_tensor_bytes=4096)
        self.options.scope.fuse_swapins = True
        self.options.scope.lb = 5

    def rewrite(self, graph, options):
        request = self.service_pb.RewriteRequest(graph_def=graph, options=options)
        return self.stub.Rewrite(request, timeout=PATIENCE_S)

    def parts(self, graph, options):
        header = self.service_pb.StreamRewriteHeader(
            options=options,
            graph=self.service_pb.GraphHeader(
                total_size_bytes=len(graph), sha256=hashlib.sha256(graph).digest()
            ),
        )
        yield self.service_pb.StreamRewriteRequest(header=header)
        for at in range(0, len(graph), CHUNK_BYTES):
            yield self.service_pb.StreamRewriteRequest(chunk=graph[at : at + CHUNK_BYTES])

    def test_unary(self):
        answer = self.rewrite(read("SMALL"), self.options)
        assert answer.graph_def == read("SMALL_REWRITTEN")
        assert answer.report.outcome == self.report_pb.OUTCOME_REWRITTEN
        assert len(answer.report.swaps) > 0

    def test_stream(self):
        parts = self.parts(read("LARGE"), self.options)
        answers = self.stub.StreamRewrite(parts, timeout=PATIENCE_S)
        header = next(answers).header
        result = b"".join(answer.chunk for answer in answers)
        assert len(result) == header.graph.total_size_bytes, (len(result), header.graph)
        assert hashlib.sha256(result).digest() == header.graph.sha256
        assert result == read("LARGE_REWRITTEN")
        assert header.report.outcome == self.report_pb.OUTCOME_REWRITTEN

    def test_many_at_once(self):
        graph, expected = read("SMALL"), read("SMALL_REWRITTEN")
        calls = [
            self.stub.Rewrite.future(
                self.service_pb.RewriteRequest(graph_def=graph, options=self.options),
                timeout=PATIENCE_S,
            )
            for _ in range(16)
        ]
        assert all(call.result().graph_def == expected for call in calls)

    def test_wrong_option(self):
        options = self.options_pb.RewriteOptions()
        options.scope.optimizer_scopes.append("(")
        try:
            self.rewrite(read("SMALL"), options)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error.code()
            status = rpc_status.from_call(error)
            assert status is not None, "no grpc-status-details-bin"
            assert status.message == error.details()
            info = error_details_pb2.ErrorInfo()
            assert status.details[0].Unpack(info), status.details[0].type_url
            assert info.domain == "spillway.v1", info.domain
            assert info.reason == "BAD_REGEX" and len(info.metadata) > 0, info
            # It is one of the reasons that the .proto file lists.
            self.error_pb.ErrorReason.Value("ERROR_REASON_" + info.reason)
        else:
            raise AssertionError("was not refused")

    def test_deadline(self):
        # The client never sends what its header announces, so nothing but the deadline ends it.
        ended = threading.Event()

        def parts():
            yield next(self.parts(read("LARGE"), self.options))
            ended.wait(PATIENCE_S)

        try:
            list(self.stub.StreamRewrite(parts(), timeout=0.3))
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error.code()
        else:
            raise AssertionError("the deadline did not end the call")
        finally:
            ended.set()

    def test_cancellation(self):
        ended = threading.Event()

        def parts():
            yield next(self.parts(read("LARGE"), self.options))
            ended.wait(PATIENCE_S)

        call = self.stub.StreamRewrite(parts(), timeout=PATIENCE_S)
        call.cancel()
        try:
            next(call)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.CANCELLED, error.code()
        else:
            raise AssertionError("was not cancelled")
        finally:
            ended.set()
        # The server continues.
        assert self.rewrite(read("SMALL"), self.options).graph_def == read("SMALL_REWRITTEN")

    def test_reflection(self):
        database = ProtoReflectionDescriptorDatabase(self.channel)
        services = database.get_services()
        for name in [SERVICE, "grpc.health.v1.Health"]:
            assert name in services, services
        # The server's description is that in the file.
        told = database.FindFileContainingSymbol(SERVICE)
        expected = descriptor_pb2.FileDescriptorProto()
        self.service_pb.DESCRIPTOR.CopyToProto(expected)
        assert told.service == expected.service
        assert told.message_type == expected.message_type


def main():
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        with grpc.insecure_channel(os.environ["SPILLWAY_SERVER"]) as channel:
            tests = Tests(channel, folder)
            for name in [name for name in dir(tests) if name.startswith("test_")]:
                try:
                    getattr(tests, name)()
                    passed += 1
                    print("ok      python", name[len("test_") :])
                except Exception as error:  # pylint: disable=broad-except
                    failed += 1
                    print("FAILED  python", name[len("test_") :] + ":", repr(error)[:1000])
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
