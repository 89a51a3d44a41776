#!/usr/bin/env python3
"""Writes the files made from the .proto files, at every build: the package's messages.py (answers as
dataclasses), _keywords.py (options as typed keywords) and _version.py; or the help of the program's
flags.

    generate.py package FOLDER       FOLDER is usually client_lib/python/spillway, where git ignores it
    generate.py flags FILE

Files that would not change are left alone. Needs protoc (Debian: protobuf-compiler), which
deploy/install_deps.sh installs, and no Python packages.
"""

import argparse
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROTO = ROOT / "proto"
WIDTH = 100

# Python names of answers that differ from the message's name.
NAMES = {"Warning": "ReportWarning", "GraphPatch": "Patch",
         "GetCapabilitiesResponse": "Capabilities", "RewriteReport": "ReportFields"}
# Answers; the messages they contain are generated, too.
ANSWERS = ("GraphPatch", "RewriteReport", "GraphSummary", "SimulateReport", "ExploreReport",
           "GraphDiff", "GetCapabilitiesResponse")
# There may be as many as the graph has tensors: report.py reads them on demand.
LEFT_OUT = {("RewriteReport", "decisions")}
# Read nevertheless.
ALSO = ("Decision",)
# Enums whose values are lower case in Python, as in keywords.
LOWER = {"Strategy", "Stage"}
# Attributes of Message, which a field of the same name would hide.
METHODS = {"from_message", "from_dict", "to_dict", "to_json", "keys", "get"}

# Numbers of google/protobuf/descriptor.proto: Type.
DOUBLE, INT64, INT32, BOOL, STRING, MESSAGE, BYTES, ENUM = 1, 3, 5, 8, 9, 11, 12, 14
REPEATED = 3


def load_wire():
    """Loads the package's reader of messages alone: the package needs the files generated here."""
    spec = importlib.util.spec_from_file_location("_wire", HERE / "spillway" / "_wire.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WIRE = load_wire()


@dataclass
class Field:
    name: str
    type: int
    type_name: str
    repeated: bool
    optional: bool
    in_oneof: bool
    comment: str


@dataclass
class Message:
    name: str
    comment: str
    fields: List[Field] = field(default_factory=list)


@dataclass
class Enum:
    name: str
    comment: str
    values: List[str] = field(default_factory=list)
    comments: List[str] = field(default_factory=list)

    @property
    def prefix(self):
        return self.values[0][:-len("UNSPECIFIED")]

    @property
    def spelled(self):
        """The values other than the unspecified one, without the prefix."""
        return [value[len(self.prefix):] for value in self.values[1:]]


class Descriptors:
    """The messages and enums of spillway.v1, by name; nested ones by their own."""

    def __init__(self):
        self.messages: Dict[str, Message] = {}
        self.enums: Dict[str, Enum] = {}
        for _, file in only(descriptor_set(), 1):
            self._read_file(file)

    def _read_file(self, file):
        if text(file, 2) != "spillway.v1":
            return
        comments = {}
        for _, info in only(file, 9):
            for _, location in only(info, 1):
                comments[path_of(location)] = clean(text(location, 3))
        for i, (_, message) in enumerate(only(file, 4)):
            self._read_message(message, (4, i), comments)
        for i, (_, enum) in enumerate(only(file, 5)):
            self._read_enum(enum, (5, i), comments)

    def _read_message(self, data, path, comments):
        message = Message(text(data, 1), comments.get(path, ""))
        for i, (_, part) in enumerate(only(data, 2)):
            values = dict(WIRE.values(part))
            is_optional = bool(values.get(17, 0))
            message.fields.append(Field(
                text(part, 1), values.get(5), text(part, 6).rpartition(".")[2],
                values.get(4) == REPEATED, is_optional, 9 in values and not is_optional,
                comments.get(path + (2, i), "")))
        self.messages[message.name] = message
        for i, (_, nested) in enumerate(only(data, 3)):
            self._read_message(nested, path + (3, i), comments)
        for i, (_, enum) in enumerate(only(data, 4)):
            self._read_enum(enum, path + (4, i), comments)

    def _read_enum(self, data, path, comments):
        enum = Enum(text(data, 1), comments.get(path, ""))
        for i, (_, value) in enumerate(only(data, 2)):
            enum.values.append(text(value, 1))
            enum.comments.append(comments.get(path + (2, i), ""))
        self.enums[enum.name] = enum


def descriptor_set():
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "set.binpb")
        files = sorted(str(path) for path in (PROTO / "spillway" / "v1").glob("*.proto"))
        try:
            subprocess.run(["protoc", "-I", str(PROTO), "--include_source_info",
                            "--descriptor_set_out=%s" % out, *files], check=True)
        except FileNotFoundError:
            sys.exit("generate.py needs protoc: apt-get install protobuf-compiler")
        return out.read_bytes()


def only(message, number):
    return ((found, value) for found, value in WIRE.values(message) if found == number)


def text(message, number):
    for _, value in only(message, number):
        return bytes(value).decode()
    return ""


def path_of(location):
    """The packed varints of a SourceCodeInfo.Location."""
    numbers, value, shift = [], 0, 0
    for _, packed in only(location, 1):
        for byte in bytes(packed):
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                numbers.append(value)
                value = shift = 0
    return tuple(numbers)


def clean(comment):
    """A comment as one paragraph, fit for a docstring."""
    return " ".join(comment.split()).replace("\\", "\\\\").replace('"""', "'''")


def docstring(comment, indent):
    if not comment:
        return []
    body = '"""%s"""' % (comment + " " if comment.endswith('"') else comment)
    return textwrap.wrap(body, WIDTH, initial_indent=indent, subsequent_indent=indent,
                         break_long_words=False, break_on_hyphens=False)


def assignment(target, kind, items, close, indent=""):
    """`TARGET = KIND[a, b, ...]`, in lines."""
    line = "%s%s = %s%s%s" % (indent, target, kind, ", ".join(items), close)
    if len(line) <= WIDTH:
        return [line]
    return ["%s%s = %s" % (indent, target, kind)] + textwrap.wrap(
        ", ".join(items) + close, WIDTH, initial_indent=indent + "    ",
        subsequent_indent=indent + "    ", break_long_words=False, break_on_hyphens=False)


# ---- messages.py

MESSAGES_HEAD = '''"""The answers of calls: the messages of spillway.v1 as dataclasses. Sizes are bytes, times
nanoseconds; a figure that is not known or not computed is None, never 0.

Written by client_lib/python/generate.py from proto/spillway/v1; change those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Optional, Tuple

from spillway._message import Enum, Message
'''


class Messages:
    """Returns the text of messages.py."""

    def __init__(self, descriptors):
        self._all = descriptors
        self._done = set()
        self._enums: List[str] = []
        self._classes: List[str] = []

    def make(self):
        for name in (*ANSWERS, *ALSO):
            self._add(name)
        return "\n".join([MESSAGES_HEAD] + self._enums + self._classes).rstrip("\n") + "\n"

    def _add(self, name):
        """Adds a message after those it contains."""
        if name in self._done:
            return
        self._done.add(name)
        message = self._all.messages[name]
        parts = [part for part in message.fields if (name, part.name) not in LEFT_OUT]
        for part in parts:
            assert part.name not in METHODS, "%s.%s hides a method" % (name, part.name)
            if part.type == MESSAGE:
                self._add(part.type_name)
            elif part.type == ENUM:
                self._add_enum(part.type_name)
        lines = ["", "@dataclass(frozen=True, repr=False)", "class %s(Message):" % called(name)]
        lines += docstring(message.comment, "    ")
        kinds = []
        for part in parts:
            lines += ["    %s: %s" % (part.name, self._declared(part))]
            lines += docstring(part.comment + (" In base64." if part.type == BYTES else ""), "    ")
            kind = self._kind(part)
            if kind:
                kinds.append('"%s": %s' % (part.name, kind))
        lines += ["", '    _name = "%s"' % name]
        if kinds:
            lines += assignment("_kinds", "{", kinds, "}", indent="    ")
        self._classes += lines + [""]

    def _add_enum(self, name):
        if name in self._done:
            return
        self._done.add(name)
        enum = self._all.enums[name]
        values = ['""'] + ['"%s"' % spelled(enum, value) for value in enum.spelled]
        self._enums += assignment(name, "Literal[", values, "]")
        self._enums += docstring(enum.comment, "") + [""]

    def _declared(self, part):
        kind = {DOUBLE: "float", INT64: "int", INT32: "int", BOOL: "bool", STRING: "str",
                BYTES: "str"}.get(part.type) or called(part.type_name)
        if part.repeated:
            return "Tuple[%s, ...] = ()" % kind
        if part.optional or part.type == MESSAGE:
            return "Optional[%s] = None" % kind
        return "%s = %s" % (kind, {"float": "0.0", "int": "0", "bool": "False"}.get(kind, '""'))

    def _kind(self, part):
        if part.type == ENUM:
            enum = self._all.enums[part.type_name]
            return 'Enum("%s"%s)' % (enum.prefix, ", lower=True" if enum.name in LOWER else "")
        if part.type == MESSAGE:
            return called(part.type_name)
        return {DOUBLE: "float", INT64: "int", INT32: "int"}.get(part.type)


def called(name):
    return NAMES.get(name, name)


def spelled(enum, value):
    return value.lower() if enum.name in LOWER else value


# ---- The help of options.

class Help:
    """The help of an option, from its comments."""

    def __init__(self, descriptors):
        self._enums = descriptors.enums

    def of(self, part, quote):
        """(the text, the default or "") of an option; `quote` spells the value of an enum."""
        said, _, default = re.sub(r"^(OPTIONAL|REQUIRED)\. ", "", part.comment).partition(
            " Default: ")
        if part.type == ENUM:
            enum = self._enums[part.type_name]
            for value, comment in zip(enum.spelled, enum.comments[1:]):
                said += " %s: %s" % (quote % value.lower(), comment[0].lower() + comment[1:])
        return self._lower(said, quote), self._lower(default, quote).rstrip(".")

    def _lower(self, said, quote):
        """Spells the values of enums as callers give them."""
        for enum in self._enums.values():
            if enum.name in OPTION_ENUMS:
                said = re.sub(r"\b(?:%s)?(%s)\b" % (enum.prefix, "|".join(enum.spelled)),
                              lambda found: quote % found.group(1).lower(), said)
        return said


# Enums that are the values of options.
OPTION_ENUMS = {"PlanningObjective", "PlanningEffort", "Recompute", "AlreadyRewritten", "Simulation",
                "InlineCalls", "DecisionDetail", "CtrldStrategy", "Execution", "Grappler",
                "KernelMemory"}


# ---- option_help.inc

FLAGS_HEAD = """// The flags of options: SPILLWAY_OPTION(field, flag, help, default), from the fields' comments.
//
// Written by client_lib/python/generate.py from proto/spillway/v1; change those.
"""
# The messages whose fields are flags, and the fields if not all are.
FLAG_FIELDS = {"RewriteOptions": None, "Step": None, "Hardware": None, "BudgetStrategy": None,
               "LevelStrategy": None, "ScopeStrategy": None,
               "SimulateOptions": {"no_budget", "execution"},
               "ExploreOptions": {"multiple_of", "swapping"}}
# Set by files and other flags, or not for users to set.
NOT_FLAGS = {"outputs", "step", "hardware", "gpu_memory_source"}
# Of fields that are given one by one, or have a shorter name.
FLAG_NAMES = {"feeds": "--feed", "loop_counts": "--loop-count", "gpu_memories": "--gpu-memory",
              "efficiencies": "--efficiency", "preset": "--hardware"}
# Fields that are not ordinary words although they have no underscore.
NO_WORDS = {"lb", "ub"}


class Flags:
    """Returns the text of option_help.inc."""

    def __init__(self, descriptors):
        self._all = descriptors
        self._help = Help(descriptors)
        self._flags: Dict[str, str] = {}

    def make(self):
        parts = [part for message, names in FLAG_FIELDS.items()
                 for part in self._all.messages[message].fields
                 if not part.in_oneof and part.name not in NOT_FLAGS
                 and (names is None or part.name in names)]
        for part in parts:
            self._flags[part.name] = FLAG_NAMES.get(part.name, "--" + part.name.replace("_", "-"))
        made: Dict[str, str] = {}
        for part in parts:
            entry = self._entry(part)
            # A flag that strategies share has one help.
            assert made.setdefault(part.name, entry) == entry, "%s has two comments" % part.name
        return FLAGS_HEAD + "".join(made.values())

    def _entry(self, part):
        said, default = (self._in_flags(each) for each in self._help.of(part, "%s"))
        head = 'SPILLWAY_OPTION("%s", "%s",' % (part.name, self._flags[part.name])
        end = ')", "%s")' % default
        line = '%s R"(%s%s' % (head, said, end)
        if len(line) <= WIDTH:
            return line + "\n"
        lines = textwrap.wrap(said, WIDTH - 3, initial_indent='  R"(', subsequent_indent="     ",
                              break_long_words=False, break_on_hyphens=False)
        if len(lines[-1] + end) <= WIDTH:
            lines[-1] += end
        else:
            lines[-1:] = [lines[-1] + ')",', '  "%s")' % default]
        return "\n".join([head] + lines) + "\n"

    def _in_flags(self, said):
        # Of reports and errors.
        said = re.sub(r" \(((reason|outcome) )?[A-Z_]{4,}\)", "", said)
        said = re.sub(r"`(\w+)`", lambda found: self._flags.get(found[1], found[1]), said)
        names = "|".join(name for name in self._flags if "_" in name or name in NO_WORDS)
        said = re.sub(r"(?<![\w./-])(?:hardware\.|step\.)?(%s)(?![\w/])" % names,
                      lambda found: self._flags[found.group(1)], said)
        assert ')"' not in said
        return said.replace("`", "")


# ---- _keywords.py

KEYWORDS_HEAD = '''"""Options as keywords, with their types; those of calls are in _doors.py. A keyword that is None
counts as not given.

Written by client_lib/python/generate.py from proto/spillway/v1; change those.
"""

from typing import Dict, Literal, Mapping, Optional, Tuple, TypedDict, Union

from spillway._types import Feeds, Levels, Machine, Names, Profile, Size
'''

# Options that only TFLMS's classes take, by position or as attributes.
LMS_V2 = ("swapout_threshold", "swapin_ahead", "swapin_groupby", "sync_mode", "serialization",
          "serialization_by_size")
# Determined by the plan that is applied.
SETTLED = ("min_tensor_bytes", "inline_calls")
STRATEGIES = {"scope": "ScopeStrategy", "level": "LevelStrategy", "budget": "BudgetStrategy"}
# Fields of RewriteOptions that are given in other ways in Python.
NOT_KEYWORDS = {"step", "outputs"}
# Field of Hardware, for reports; the keyword `hardware` names a machine.
NOT_NUMBERS = {"preset", "gpu_memory_source"}

# (type, kind for options.py) of fields that accept more than their type.
SPECIAL = {
    "feeds": ("Feeds", "feeds"), "loop_counts": ("Mapping[str, int]", "counts"),
    "gpu_memories": ("Mapping[str, Size]", "sizes"),
    "efficiencies": ("Mapping[str, float]", "shares"), "hardware": ("Machine", "machine"),
    "profile": ("Profile", "profile"), "serialization": ("Levels", "levels"),
    "simulation": ('Union[bool, Literal["on", "off"]]', "enum"),
}


class Keywords:
    """Returns the text of _keywords.py."""

    def __init__(self, descriptors):
        self._all = descriptors
        self._help = Help(descriptors)
        self._lines: List[str] = []
        self._kinds: Dict[str, str] = {}
        self._enums: Dict[str, Tuple[str, List[str]]] = {}

    def make(self):
        options = [part for part in self._fields("RewriteOptions")
                   if not part.in_oneof and part.name not in NOT_KEYWORDS]
        scope, level, budget = (self._fields(message) for message in STRATEGIES.values())
        filters = [part for part in level if part.name in {other.name for other in budget}]
        names = {part.name for part in filters}
        assert len(names) == 8, names
        self._add("StepKeywords", "The step: Step in step.proto.", self._fields("Step"))
        self._add("HardwareKeywords", "Numbers of the machine: Hardware in hardware.proto; they "
                  "replace those of the preset that `hardware` names.",
                  [part for part in self._fields("Hardware") if part.name not in NOT_NUMBERS])
        self._add("CommonKeywords", "Of every strategy: RewriteOptions in options.proto.",
                  [part for part in options if part.name not in ("cpu_device", *SETTLED)])
        self._add("CpuDeviceKeywords", "Of every strategy.",
                  [part for part in options if part.name == "cpu_device"])
        self._add("SettledKeywords", "Of every strategy; a plan that is applied has them.",
                  [part for part in options if part.name in SETTLED])
        self._add("OptimizerScopesKeywords", "Of the strategy scope.",
                  [part for part in scope if part.name == "optimizer_scopes"])
        self._add("ScopeKeywords", "Of the strategy scope: ScopeStrategy in options.proto.",
                  [part for part in scope if part.name != "optimizer_scopes"])
        self._add("LmsLevelKeywords", "Of the strategy level: LevelStrategy in options.proto.",
                  [part for part in level if part.name in LMS_V2])
        self._add("LevelKeywords", "Of the strategy level: LevelStrategy in options.proto.",
                  [part for part in level if part.name not in (*LMS_V2, *names)])
        self._add("FilterKeywords", "Of the strategies level and budget.", filters)
        self._add("BudgetKeywords", "Of the strategy budget: BudgetStrategy in options.proto.",
                  [part for part in budget if part.name not in names])
        self._tables({"scope": scope, "level": level, "budget": budget})
        return "\n".join([KEYWORDS_HEAD] + self._lines) + "\n"

    def _fields(self, message):
        return self._all.messages[message].fields

    def _add(self, name, comment, parts):
        lines = ["", "class %s(TypedDict, total=False):" % name] + docstring(comment, "    ") + [""]
        for part in parts:
            kind, self._kinds[part.name] = self._typed(part)
            lines += wrapped("    %s: Optional[%s]" % (part.name, kind))
            said, default = self._help.of(part, '"%s"')
            lines += docstring(said + (" Default: %s." % default if default else ""), "    ")
        self._lines += lines + [""]

    def _typed(self, part):
        """(the type, the kind) of an option."""
        if part.type == ENUM:
            enum = self._all.enums[part.type_name]
            values = [value.lower() for value in enum.spelled]
            self._enums[part.name] = (enum.prefix, values)
            kind = "Literal[%s]" % ", ".join('"%s"' % value for value in values)
            return SPECIAL.get(part.name, (kind, "enum"))
        if part.name in SPECIAL:
            return SPECIAL[part.name]
        if part.repeated:
            assert part.type == STRING, part.name
            return "Names", "names"
        if part.type == INT64 and part.name.endswith("_bytes"):
            return "Size", "size"
        return {DOUBLE: ("float", "float"), INT64: ("int", "int64"), INT32: ("int", "int32"),
                BOOL: ("bool", "bool"), STRING: ("str", "text")}[part.type]

    def _tables(self, strategies):
        lines = ["", "# The conversion of a value by options.py."]
        lines += table("KINDS: Dict[str, str]",
                       ('"%s": "%s"' % entry for entry in self._kinds.items()))
        lines += ["", "# Of an enum: what its values begin with, and how they are spelled here."]
        lines += table("ENUMS: Dict[str, Tuple[str, Tuple[str, ...]]]", (
            '"%s": ("%s", (%s,))' % (name, prefix, ", ".join('"%s"' % value for value in values))
            for name, (prefix, values) in self._enums.items()))
        lines += ["", "# The parameters of each strategy."]
        lines += table("STRATEGIES: Dict[str, Tuple[str, ...]]", (
            '"%s": (%s)' % (name, ", ".join('"%s"' % part.name for part in parts))
            for name, parts in strategies.items()))
        self._lines += lines


def wrapped(line):
    if len(line) <= WIDTH:
        return [line]
    head, _, rest = line.partition("[")
    return [head + "["] + textwrap.wrap(
        rest, WIDTH, initial_indent="        ", subsequent_indent="        ",
        break_long_words=False, break_on_hyphens=False)


def table(target, entries):
    lines = ["%s = {" % target]
    for entry in entries:
        lines += textwrap.wrap(entry + ",", WIDTH, initial_indent="    ",
                               subsequent_indent="        ", break_long_words=False,
                               break_on_hyphens=False)
    return lines + ["}"]


# ---- _version.py

def version():
    """The version of the C++ project, so that there is only one."""
    found: Optional[re.Match] = re.search(r"^project\(.*?VERSION ([0-9.]+)",
                                          (ROOT / "CMakeLists.txt").read_text(),
                                          re.DOTALL | re.MULTILINE)
    assert found is not None
    return ('"""Written by client_lib/python/generate.py from CMakeLists.txt."""\n\n'
            '__version__ = "%s"\n' % found.group(1))


def generated(what, where):
    """{file: its contents}."""
    descriptors = Descriptors()
    if what == "flags":
        return {where: Flags(descriptors).make()}
    return {where / "messages.py": Messages(descriptors).make(),
            where / "_keywords.py": Keywords(descriptors).make(),
            where / "_version.py": version()}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("package", "flags"))
    parser.add_argument("where", type=pathlib.Path, help="a folder, or for flags a file")
    flags = parser.parse_args()
    folder = flags.where if flags.what == "package" else flags.where.parent
    if not folder.is_dir():
        parser.error("there is no folder %s; make it first" % folder)
    for file, made in generated(flags.what, flags.where).items():
        if not file.exists() or file.read_text() != made:
            file.write_text(made)


if __name__ == "__main__":
    main()
