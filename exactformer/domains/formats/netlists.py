"""Reads a file with a circuit, in whichever of the formats it is."""

from pathlib import Path

from exactformer.domains.bounds import LONGEST_NETLIST
from exactformer.domains.data import read_bytes
from exactformer.domains.formats.aiger import is_aiger, read_aiger
from exactformer.domains.formats.blif import is_blif, read_blif
from exactformer.domains.formats.netlist import Netlist, quote_bytes


def read_netlist(path: str | Path) -> Netlist:
    """The circuit in a file: AIGER, binary or ASCII, or BLIF; its first bytes tell which."""
    data = read_bytes(Path(path), LONGEST_NETLIST)
    if is_aiger(data):
        return read_aiger(data, str(path))
    if is_blif(data):
        return read_blif(data, str(path))
    raise ValueError(
        f"{path}: expected AIGER, which begins with 'aig ' or 'aag ', or BLIF, which begins with "
        f".model, found {quote_bytes(data[:40]) if data else 'an empty file'}"
    )
