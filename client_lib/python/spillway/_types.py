"""The types of keyword values. options.py interprets them."""

import os
from typing import Any, Callable, Iterable, Literal, Mapping, Union

# Bytes: 1536, or as on the command line: "1.5KiB", "16GB" (10^9), "16GiB" (2^30).
Size = Union[int, str]

# Seconds, or as on the command line: "30s", "500ms", "1h30m".
Duration = Union[float, str]

# One name, several names, or comma-separated text: "a,b". `\,` is a comma in a name.
Names = Union[str, Iterable[str]]

# Levels: indices, and slices as text: [12, "3:5", "-10:"].
Levels = Union[int, str, Iterable[Union[int, str]]]

# By name or TensorFlow object: a shape, (128, 224) or "128,224"; or the value that is fed: a number,
# a bool, an array; "2:64,64" is a shape with values. Or as on the command line:
# ["images=128,224", "is_training=true"].
Feeds = Union[Mapping[Any, Any], str, Iterable[str]]

# The name of a preset; a dict with the numbers of `Hardware` in hardware.proto and `preset`; or a
# JSON file with these (its name contains a slash or ends in .json).
Machine = Union[str, os.PathLike[str], Mapping[str, Any]]

# A RunMetadata or StepStats, or its bytes.
Profile = Any

# A file.
Path = Union[str, os.PathLike[str]]

# (stage, done, total): stage is `sending`, `rewriting` or `receiving`; bytes, both 0 if there is
# nothing to count.
Progress = Callable[[str, int, int], None]

# The execution model of a step: like TensorFlow, or one operation after another (Execution in
# simulate.proto).
Execution = Literal["launched_ahead", "synchronous"]
Recompute = Literal["off", "cheap", "all"]
EXECUTIONS = ("launched_ahead", "synchronous")
RECOMPUTES = ("off", "cheap", "all")

# The format and the background of pictures.
PictureFormat = Literal["svg", "html", "png", "trace"]
Theme = Literal["auto", "light", "dark"]
