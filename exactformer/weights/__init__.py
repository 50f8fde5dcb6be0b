"""Weights files: their format, the names that users give them, and those that are shipped."""
