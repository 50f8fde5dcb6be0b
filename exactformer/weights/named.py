"""Weights by the name a user gives them: shipped ones, a file, or ones that are written down anew.

A text that is one of `CONSTRUCTED` means weights that are written down, also where there is a file
of that name: `./constructed/closed`, or a `Path`, is the file.

No torch in here: to evaluate with weights that are known to be certified, the names are enough.
"""

from pathlib import Path

from exactformer.domains.belonging import algebra_of
from exactformer.domains.data import suggestion
from exactformer.domains.domain import Domain
from exactformer.weights.file import WeightFile
from exactformer.weights.tensors import stored

SHIPPED = Path(__file__).parent  # DOMAIN/NAME.safetensors
KINDS = ("closed", "units", "table", "fitted", "dense")  # of weights that are written down
CONSTRUCTED = ("constructed", *(f"constructed/{kind}" for kind in KINDS))
FOLDER_WEIGHTS = "model.safetensors"  # in a folder of a model, as on Hugging Face's hub


def is_constructed(name: str | Path) -> bool:
    """Whether a name, such as "constructed/table", is of weights that no file holds. A path is that
    of a file.
    """
    return isinstance(name, str) and name in CONSTRUCTED


def shipped_names(domain: str) -> list[str]:
    return sorted(path.stem for path in (SHIPPED / domain).glob("*.safetensors"))


def find_weights(name: str | Path, domain: str | None = None) -> Path:
    """The file of weights: shipped ones such as "boolean/7520" ("7520" with a domain) or a path."""
    folders = [SHIPPED / domain, SHIPPED] if domain else [SHIPPED]
    for path in (folder / f"{name}.safetensors" for folder in folders):
        if path.resolve().is_relative_to(SHIPPED.resolve()) and path.is_file():
            return path
    if (in_folder := Path(name) / FOLDER_WEIGHTS).is_file():
        return in_folder
    if not Path(name).is_file():
        raise _missing(str(name), domain)
    return Path(name)


def _missing(name: str, domain: str | None) -> ValueError:
    """The error of a name that is neither a file nor shipped."""
    if name.startswith("constructed/"):
        *others, last = (f"/{kind}" for kind in KINDS[1:])
        return ValueError(
            f"expected constructed, {CONSTRUCTED[1]}, {', '.join(others)} or {last}, or a file, "
            f"found {name!r}{suggestion(name, CONSTRUCTED)}"
        )
    if domain and "/" not in name:
        known = shipped_names(domain)
        expected = f"constructed, {', '.join([*known, 'or a file'])}"
    else:
        files = sorted(SHIPPED.glob("*/*.safetensors"))
        known = [f"{file.parent.name}/{file.stem}" for file in files]
        expected = "a file, or shipped weights such as boolean/7520"
    if Path(name).is_dir():
        return ValueError(
            f"expected {expected}, found the folder {name!r}, which has no {FOLDER_WEIGHTS}"
        )
    if Path(name).suffix:
        return ValueError(f"no such file: {name!r}")
    words = ["constructed", *known]
    return ValueError(f"expected {expected}, found {name!r}{suggestion(name, words)}")


def read_weights(name: str | Path, domain: Domain | None = None) -> WeightFile:
    """Read weights by name; a ValueError if they are for another domain than the given one.
    Weights for the same operators with parentheses serve notations that leave these out, with the
    declared gates.
    """
    file = WeightFile.read(find_weights(name, domain.name if domain else None))
    if domain and domain.has_spans_of(file.domain):
        gates = stored(**algebra_of(domain).declared_gates)
        return WeightFile(domain, file.arrays | gates, file.activation, file.origin)
    if domain and file.domain != domain:
        raise ValueError(
            f"{name} holds weights for {file.domain.name!r}, not for this {domain.name!r}"
        )
    return file
