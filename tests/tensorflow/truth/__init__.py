"""The truth test: rewritten training graphs, trained in real TensorFlow.

Modules, each usable alone:
  graphs     finds the graphs and their recorded answers
  feeds      makes the feeds of a step
  rewrite    calls the command line `spillway`
  live       edits live graphs by the Python package
  names      spellings of tensors and devices
  train      runs a graph for a few steps in a session
  crossings  which tensors really go from one device to another
  checks     the checks of one case
  cases      the table: which graph with which parameters, and the expected plan
  worker     runs the cases of one graph in a process of its own
  driver     starts workers, watches them, prints the lines

Only train, live and worker import TensorFlow.
"""
