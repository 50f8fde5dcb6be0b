"""The machine that it runs on: files written whole, threads, progress, a cluster."""
