"""Every intermediate of every iteration, as text for people and as plain data for programs."""

from exactformer.trace.runs import trace
from exactformer.trace.shown import EMPTY_POSITION, PlainStep, SpanStep, Trace, TraceStep

__all__ = ["EMPTY_POSITION", "PlainStep", "SpanStep", "Trace", "TraceStep", "trace"]
