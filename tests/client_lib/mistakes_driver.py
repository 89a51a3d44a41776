"""Makes mistakes with the Python package, for mistakes_test.cc: reads a list of calls as JSON,
prints what came of each as JSON: {"NAME": [code, reason, message]}.

    mistakes_driver.py CALLS.json [SERVER]
"""

import base64
import json
import pathlib
import sys

import spillway
from spillway import options


def fed_of(feed):
    """A shape; of a scalar with a value that."""
    if len(feed.get("values", [])) == 1 and not feed.get("dims"):
        return int(feed["values"][0])
    return feed.get("dims", [])


def keywords_of(call):
    """The options, which are JSON of their message, as the keywords that a user would give."""
    keywords = dict(call["options"])
    step = keywords.pop("step", {})
    hardware = step.pop("hardware", {})
    if "preset" in hardware:
        keywords["hardware"] = hardware.pop("preset")
    for strategy in options.STRATEGIES:
        if strategy in keywords:
            keywords.update(keywords.pop(strategy), strategy=strategy)
    keywords.update(step, **hardware)
    if "feeds" in keywords:
        keywords["feeds"] = {feed["name"]: fed_of(feed) for feed in keywords["feeds"]}
    if "loop_counts" in keywords:
        keywords["loop_counts"] = {loop["name"]: loop.get("count", 0)
                                   for loop in keywords["loop_counts"]}
    if "efficiencies" in keywords:
        keywords["efficiencies"] = {given["kernels"]: float(given.get("efficiency", 0))
                                    for given in keywords["efficiencies"]}
    if "profile" in keywords:
        keywords["profile"] = base64.b64decode(keywords["profile"])
    for name in keywords.keys() & options.ENUMS.keys():
        if isinstance(keywords[name], str):
            keywords[name] = keywords[name][len(options.ENUMS[name]):].lower()
    return {name: float("nan") if value == "NaN" else value for name, value in keywords.items()}


def make(call, client):
    inputs = [pathlib.Path(path).read_bytes() for path in call["graphs"]]
    if "plan" in call:
        inputs.append(pathlib.Path(call["plan"]).read_text(encoding="utf-8"))
    try:
        getattr(client, call["call"])(*inputs, **keywords_of(call))
    except spillway.SpillwayError as error:
        return [error.code, error.reason, error.message]
    return ["OK", "", ""]


def main():
    client = spillway.Client(sys.argv[2] if len(sys.argv) > 2 else None)
    calls = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(json.dumps({call["name"]: make(call, client) for call in calls}))


if __name__ == "__main__":
    main()
