"""The command line: thin. Each command reads its arguments, calls the library and prints."""

from exactformer.cli import expressions, results, steps, weights  # each adds its commands
from exactformer.cli.app import app, main

__all__ = ["app", "expressions", "main", "results", "steps", "weights"]
