"""Written by client_lib/python/generate.py from CMakeLists.txt."""

__version__ = "0.1.0"
