"""Every intermediate of every iteration, as text for people and as plain data for programs."""

from exactformer.trace.depth import TraceStep
from exactformer.trace.plain import PlainStep
from exactformer.trace.programs import ProgramTrace, trace_program
from exactformer.trace.runs import trace
from exactformer.trace.shown import EMPTY_POSITION, Explained, Trace
from exactformer.trace.spans import SpanStep

__all__ = [
    "EMPTY_POSITION",
    "Explained",
    "PlainStep",
    "ProgramTrace",
    "SpanStep",
    "Trace",
    "TraceStep",
    "trace",
    "trace_program",
]
