"""Facts that are found once of tensors, and belong to their content.

Weights are frozen, but torch cannot freeze a tensor. It can be written to in place, through
`.data`, by a fused optimizer, by a NumPy array or another process that shares its memory, and torch
counts only some of these changes. So nothing is found of the tensors that others hold. It is found
of a private copy of them, and kept with that copy. Each use compares the two bit by bit; where they
differ in anything, there is a new copy, of which nothing is known yet.

Nobody else is given a private copy, or a tensor that shares its memory. Copies and pickles of an
object have its fields alone.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Generic, TypeVar, overload

import torch
from torch import Tensor

T = TypeVar("T")
R = TypeVar("R", bound="Remembering")

COPY = "_private_copy"  # of an object that others hold: its tensors as they were at the last use
IS_COPY = "_is_private_copy"
WHOLE_NUMBERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes


class Remembering:
    """A frozen dataclass of tensors, with things that are remembered of them."""

    def __getstate__(self) -> dict[str, Any]:
        return parts_of(self)

    def to(self: R, device: torch.device | str) -> R:
        """A copy of the object on another device; a ValueError if that cannot be used."""
        parts = {name: part for name, part in parts_of(self).items() if hasattr(part, "to")}
        try:
            return replace(self, **{name: part.to(device) for name, part in parts.items()})  # type: ignore[type-var]
        except (RuntimeError, AssertionError) as error:  # what torch raises where there is none
            reason = str(error).splitlines()[0]
            raise ValueError(f"the device {str(device)!r} cannot be used: {reason}") from None


def parts_of(owner: Remembering) -> dict[str, Any]:
    """The fields of an object by name."""
    return {field.name: getattr(owner, field.name) for field in fields(owner)}  # type: ignore[arg-type]


def tensors_of(owner: Remembering) -> dict[str, Tensor]:
    """The fields of an object that are tensors, by name."""
    return {name: part for name, part in parts_of(owner).items() if isinstance(part, Tensor)}


def fixed(owner: R) -> R:
    """A copy of the object with tensors that nobody else can write to, as they are now. It is the
    same one for as long as no bit of them changes. Other fields are compared by identity; a
    function of somebody else's may change unseen, so that there is a new copy at each use.
    """
    held = vars(owner)
    if IS_COPY in held:
        return owner
    parts = parts_of(owner)
    for name, part in parts.items():
        if isinstance(part, Remembering):
            parts[name] = fixed(part)
    copy: R | None = held.get(COPY)
    if copy is None or not all(_same(part, vars(copy)[name]) for name, part in parts.items()):
        copy = object.__new__(type(owner))  # its fields were checked when the owner was made
        vars(copy).update({name: _copied(part) for name, part in parts.items()})
        vars(copy)[IS_COPY] = True
        held[COPY] = copy
    return copy


def _same(part: Any, copied: Any) -> bool:
    if not isinstance(part, Tensor):
        return part is copied and (isinstance(part, Remembering) or not callable(part))
    if not isinstance(copied, Tensor):
        return False
    like = (part.shape, part.dtype, part.device) == (copied.shape, copied.dtype, copied.device)
    return like and torch.equal(_bits(part), _bits(copied))


def _bits(tensor: Tensor) -> Tensor:
    """Numbers that are equal for the same bits only: as floats, -0 equals 0 and NaN nothing."""
    tensor = tensor.detach()
    if tensor.is_floating_point():
        return tensor.view(WHOLE_NUMBERS[tensor.element_size()])
    return tensor


def _copied(part: Any) -> Any:
    if not isinstance(part, Tensor):
        return part
    with torch.inference_mode(False):  # made there, it could not take part in gradients elsewhere
        return part.detach().clone()


class remembered(Generic[T]):  # it is used as `cached_property` is
    """A `cached_property` of an object that remembers; found of its private copy."""

    def __init__(self, find: Callable[[Any], T]) -> None:
        self.find, self.name, self.__doc__ = find, "", find.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"{name}, remembered"  # under its own name it would hide this descriptor

    @overload
    def __get__(self, owner: None, kind: type) -> "remembered[T]": ...

    @overload
    def __get__(self, owner: Remembering, kind: type) -> T: ...

    def __get__(self, owner: Remembering | None, kind: type) -> "remembered[T] | T":
        if owner is None:
            return self
        copy = fixed(owner)
        found = vars(copy)
        if self.name not in found:
            found[self.name] = self.find(copy)
        return found[self.name]
