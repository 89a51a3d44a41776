#!/usr/bin/env python3
"""Tests that the programs take the commands that documents show, and print the output shown there.

Each command line of `spillway` and `spillwayd` in a fenced block of a Markdown file names a command
that exists and flags that it has; each script of the repository that is shown exists, and its text
knows the flags. Commands behind `$ ` in a document that shows output for a graph in tests/graphs
run in order, in a folder of their own, unless they need a server or programs other than RUNNABLE;
they have to print the output shown: a line `...` stands for any lines, `...` in a line for any
text, such as times and machines' names, and lines may be wrapped. A picture in such a document has
to be the file of its name that these commands write, byte for byte.

    tests/integration/document_commands.py [--bin DIR] [--update] [FILE.md...]   all, if none is given

DIR (default build/bin) has the programs. With --update, changed numbers and names, as a planner may
change them, are put into the documents, and pictures are drawn again; each change is a line
FILE:LINE: old -> new, and larger differences stay, as failures. Prints a line FILE:LINE: problem
for each failure, and last `N passed, N failed`, of command lines and outputs. Exit code 1 if one
failed.
"""

import argparse
import difflib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from project_files import project_files  # noqa: E402

FENCE = re.compile(r"^\s*(```|~~~)(\w*)")
# Other languages have no command lines; what programs print is in blocks of no language, behind `$ `.
SHELL = {"", "sh", "bash", "console"}
ENDS = {"|", ">", ">>", "<", "&&", "||", ";", "&", "2>", "--"}
FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
SCRIPT = re.compile(r"^(?:\./)?((?:deploy|tests|client_lib|server)/[\w./-]+\.(?:sh|py))$")
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s:]+)\)")
ASSIGNMENT = re.compile(r"^[A-Z_]+=")
# Words in front of a command that leave it a command.
BEFORE = {"sudo", "srun", "time", "nice", "exec", "env"}
# Commands that are run if a document shows their output.
RUNNABLE = {"spillway", "cat", "cmp", "echo", "grep", "gunzip", "head", "sh", "sort", "uniq"}


class Programs:
    """The programs' own lists of their flags, asked for once each."""

    def __init__(self, folder):
        self._folder, self._flags = folder, {}

    def flags(self, program, command=None):
        """The flags of it, or None if there is no such command."""
        key = (program, command)
        if key not in self._flags:
            words = [command] if command else []
            words.append("--help-all" if program == "spillway" else "--help")
            # `help` is the one that refuses a command that does not exist.
            exists = command is None or self._ask(program, ["help", command]) is not None
            self._flags[key] = set(FLAG.findall(self._ask(program, words))) if exists else None
        return self._flags[key]

    def _ask(self, program, words):
        asked = subprocess.run([str(self._folder / program)] + words, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, universal_newlines=True, timeout=60)
        return asked.stdout if asked.returncode == 0 else None


def command_lines(path):
    """(number, text) of each line in a block of the shell; what goes on behind \\ is one line."""
    language, begun, text = None, 0, ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if fence:
            language, text = (fence.group(2) if language is None else None), ""
        elif language in SHELL:
            begun = number if not text else begun
            text += line[:-1] + " " if line.endswith("\\") else line
            if not line.endswith("\\"):
                yield begun, text
                text = ""


def words_of(text):
    """Of a command line, without prompt and comment; empty for other text."""
    try:
        lexer = shlex.shlex(text.strip().lstrip("$ "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        return list(lexer)
    except ValueError:  # A quote that goes on in the next line.
        return []


def commands_in(words):
    """Each command of a line, as its words up to a pipe, a redirection or another command."""
    command = []
    for word in words + [";"]:
        if word in ENDS or set(word) <= set("|&;<>()"):
            while command and (command[0] in BEFORE or ASSIGNMENT.match(command[0])):
                command = command[1:]
            if command:
                yield command
            command = []
        else:
            command.append(word)


def flags_in(words):
    return [word.split("=")[0] for word in words if re.match(r"^--?[A-Za-z]", word)]


def wrong_program(command, programs):
    """Why the programs would not take it, or None; False if it is no command of theirs."""
    program = pathlib.PurePath(command[0]).name
    if program not in ("spillway", "spillwayd") or command[0] not in (
            program, "build/bin/" + program, "./" + program):
        return False
    name, rest = None, command[1:]
    if program == "spillway":
        if not rest or rest[0].isupper() or not re.match(r"^[a-z]+$", rest[0]):
            name = None
        else:
            name, rest = rest[0], rest[1:]
    known = programs.flags(program, name)
    if known is None:
        return "spillway has no command %s" % name
    for flag in flags_in(rest):
        if flag not in known and not flag[1:].lstrip("-").isupper():
            return "%s has no flag %s" % (" ".join(filter(None, (program, name))), flag)
    return None


def wrong_script(command):
    """The same of a script of the repository."""
    words = command[1:] if pathlib.PurePath(command[0]).name.startswith("python") else command
    found = SCRIPT.match(words[0]) if words else None
    if not found:
        return False
    path = ROOT / found.group(1)
    if not path.exists():
        return "there is no %s" % found.group(1)
    text = path.read_text(encoding="utf-8")
    unknown = [flag for flag in flags_in(words[1:])
               if not re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(flag), text)]
    if unknown and path.suffix == ".py" and "argparse" in text:  # It may make flags of other names.
        told = subprocess.run([sys.executable, str(path), "--help"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, universal_newlines=True, timeout=60).stdout
        unknown = [flag for flag in unknown if flag not in FLAG.findall(told)]
    if unknown:
        return "%s knows no flag %s" % (found.group(1), unknown[0])
    return None


def shown_runs(path):
    """(number, command line, lines shown behind it) of each `$ ` in a block of the shell."""
    language, runs, goes_on, shown = None, [], False, None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if fence:
            # A command's output is in its block.
            language, goes_on, shown = (fence.group(2) if language is None else None), False, None
        elif language in SHELL:
            if goes_on:
                runs[-1][1] += "\n" + line
            elif line.startswith("$ "):
                shown = []
                runs.append([number, line[2:], shown])
            elif shown is not None:
                shown.append(line)
            goes_on = (goes_on or line.startswith("$ ")) and line.endswith(("\\", "|"))
    return runs


def can_be_run(text):
    words = words_of(text.replace("\\\n", " ").replace("\n", " "))
    programs = {pathlib.PurePath(command[0]).name for command in commands_in(words)}
    return "--server" not in words and words[-1:] != ["&"] and programs <= RUNNABLE


def is_printed(shown, printed):
    """Whether the lines are `printed`, except for the text of each `...`, and for line breaks."""
    parts, position = [[]], 0
    for line in shown:
        if line.strip() == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    for index, lines in enumerate(parts):
        words = " ".join(lines).split()
        if not words:
            continue
        wanted = r"\s+".join(re.escape(word).replace(re.escape("..."), ".*?") for word in words)
        begin = r"\A\s*" if index == 0 else r"(?m:^)[ \t]*"
        end = r"\s*\Z" if index == len(parts) - 1 else r"[ \t]*(?m:$)"
        found = re.compile(begin + wanted + end).search(printed, position if index else 0)
        if not found:
            return False
        position = found.end()
    return True


NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def updated(shown, printed):
    """The shown lines with the numbers of `printed`, and [(index of line, old, new)]: words that
    differ in their numbers alone are taken from there, if they stand between the same words."""
    old = [(index, word) for index, line in enumerate(shown) for word in re.finditer(r"\S+", line)]
    new, changes = printed.split(), []
    blocks = difflib.SequenceMatcher(
        None, [NUMBER.sub("0", word.group()) for _, word in old],
        [NUMBER.sub("0", word) for word in new], autojunk=False).get_matching_blocks()
    lines = list(shown)
    for block in reversed(blocks):  # Backwards, as positions in a line are those of the old one.
        for offset in reversed(range(block.size)):
            (index, word), other = old[block.a + offset], new[block.b + offset]
            if word.group() != other:
                lines[index] = lines[index][:word.start()] + other + lines[index][word.end():]
                changes.insert(0, (index, word.group(), other))
    return lines, changes


def update_run(document, number, text, shown, printed):
    """Puts the new output into the document; returns whether it then shows that."""
    lines, changes = updated(shown, printed)
    if not changes or not is_printed(lines, printed):
        return False
    begin = number + text.count("\n")  # The index of the first line behind the command.
    whole = document.read_text(encoding="utf-8").split("\n")
    assert whole[begin:begin + len(shown)] == shown
    whole[begin:begin + len(shown)] = lines
    document.write_text("\n".join(whole), encoding="utf-8")
    for index, old, new in changes:
        print("%s:%d: %s -> %s" % (document, begin + index + 1, old, new))
    return True


def wrong_pictures(document, folder, update=False):
    """(checks, [(number, why)]) of the pictures in a document whose commands ran in the folder."""
    checks, wrong = 0, []
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
        for name in PICTURE.findall(line):
            kept, drawn = document.parent / name, folder / pathlib.PurePath(name).name
            checks += 1
            if not drawn.is_file():
                wrong.append((number, "no command here draws %s" % drawn.name))
            elif not kept.is_file() or kept.read_bytes() != drawn.read_bytes():
                if update:
                    shutil.copyfile(drawn, kept)
                    print("%s: drawn anew" % kept)
                else:
                    wrong.append((number, "%s is not what the command draws; draw it anew with "
                                  "tests/integration/document_commands.py --update" % name))
    return checks, wrong


def wrong_outputs(document, programs, update):
    """(checks, [(number, why)]) of a document's commands behind `$ `, and of its pictures."""
    runs = shown_runs(document)
    if not (any("tests/graphs/" in text and can_be_run(text) for _, text, _ in runs)
            or PICTURE.search(document.read_text(encoding="utf-8"))):
        return 0, []
    checks, wrong = 0, []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "build").mkdir()
        (folder / "build" / "bin").symlink_to(programs.resolve())
        for entry in ("tests", "README.md"):
            (folder / entry).symlink_to(ROOT / entry)
        path = [str(programs.resolve()), str(programs.resolve().parent / "tests" / "no_gpu")]
        environment = {**os.environ, "TMPDIR": name, "PATH": ":".join(path + [os.environ["PATH"]])}
        for number, text, shown in runs:
            if not can_be_run(text):
                continue
            done = subprocess.run(["bash", "-c", text], cwd=name, env=environment, timeout=300,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, universal_newlines=True)
            checks += 1
            # Without shown output, the command must only succeed.
            if not (is_printed(shown, done.stdout) if shown else done.returncode == 0) and not (
                    update and shown and update_run(document, number, text, shown, done.stdout)):
                wrong.append((number, "it does not print what is shown (numbers are put in by "
                              "--update), but:\n" + done.stdout))
        pictures, wrong_ones = wrong_pictures(document, folder, update)
    return checks + pictures, wrong + wrong_ones


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin")
    parser.add_argument("--update", action="store_true",
                        help="put the numbers that are printed now into the documents")
    parser.add_argument("documents", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    documents = options.documents or [ROOT / name for name in project_files("*.md")]
    programs = Programs(options.bin)
    passed = failed = 0
    for document in documents:
        for number, text in command_lines(document.resolve()):
            for command in commands_in(words_of(text)):
                why = wrong_program(command, programs)
                if why is False:
                    why = wrong_script(command)
                if why is False:
                    continue
                passed, failed = passed + (why is None), failed + (why is not None)
                if why:
                    print("%s:%d: %s" % (document, number, why))
        checks, wrong = wrong_outputs(document.resolve(), options.bin, options.update)
        passed, failed = passed + checks - len(wrong), failed + len(wrong)
        for number, why in wrong:
            print("%s:%d: %s" % (document, number, why))
    if passed + failed == 0:
        print("no document shows a command: nothing was checked")
        return 1
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
