"""Edits of live graphs by the Python package of this tree.

An editor, for the checks, is anything with the method of Package. The self-test has another one.
"""
import json
import os
import pathlib
import sys

from truth import rewrite

PACKAGE = pathlib.Path(__file__).resolve().parents[3] / "client_lib" / "python"
SONAME = "libspillway.so.0"
# Options that the package takes by another name than the command line.
_NAMES = {"feed": "feeds"}


def keywords(options):
    """The keywords of rewrite_graph for {option: value} as rewrite.flags takes them."""
    return {_NAMES.get(name, name): value for name, value in options.items()}


class Package:
    """The package under test, with the native library of a build."""

    def __init__(self, library):
        # Read by the package at its first call, which loads the library once for the process.
        os.environ["SPILLWAY_LIBRARY"] = str(library)
        if str(PACKAGE) not in sys.path:
            sys.path.insert(0, str(PACKAGE))
        from spillway.tensorflow import rewrite_graph  # pylint: disable=import-outside-toplevel
        self._rewrite_graph = rewrite_graph

    def edit(self, tf_graph, strategy, options):
        """Inserts swaps into a tf.Graph; the report as a dict. Any error there, the package's own
        or TensorFlow's, is a RewriteFailed."""
        try:
            result = self._rewrite_graph(tf_graph, strategy=strategy, **keywords(options))
        except Exception as error:
            raise rewrite.RewriteFailed("the Python package: %s: %s" % (
                type(error).__name__, error)) from error
        return json.loads(result.report.to_json())
