"""The command line: thin. Each command reads its arguments, calls the library and prints."""

# Each adds its commands.
from exactformer.cli import circuits, exports, expressions, results, steps, weights
from exactformer.cli.app import app, main

__all__ = ["app", "circuits", "exports", "expressions", "main", "results", "steps", "weights"]
