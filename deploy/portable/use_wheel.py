"""Run by in_root.sh with the wheel installed: use_wheel.py GRAPH EXPECTED SERVER."""

import os
import sys

import spillway

with open(sys.argv[1], "rb") as file:
    graph = file.read()
with open(sys.argv[2], "rb") as file:
    expected = file.read()
keywords = dict(strategy="scope", lb=5, fuse_swapins=True, min_tensor_bytes=4096)
here = spillway.rewrite(graph, **keywords).graph_def
there = spillway.rewrite(graph, server=sys.argv[3], **keywords).graph_def
assert here == there == expected, "other bytes than the program's"
assert spillway.strip(here).graph_def == graph
# The library is the wheel's, and loaded nothing from the system.
with open("/proc/self/maps") as maps:
    files = {line.split()[-1] for line in maps if "/" in line.split()[-1]}
used = [path for path in files if os.path.basename(path).startswith("libspillway")]
assert len(used) == 1 and used[0].startswith(sys.prefix), used
strangers = [path for path in files if any(
    name in os.path.basename(path) for name in ("grpc", "protobuf", "absl", "libre2", "stdc++"))]
assert not strangers, strangers
print("rewritten in process and on a server:", spillway.library_version())
