"""What is found once of tensors, and found again when they were changed in place.

Weights are frozen, but torch cannot freeze a tensor: whoever writes `model.weights.f.b_2[0] = 0`
must neither get the old values nor the old certificate. Torch counts the changes of each tensor. It
does not see those through a NumPy array that shares its memory, or in inference mode.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Generic, TypeVar, overload

from torch import Tensor

T = TypeVar("T")
TENSORS = "_tensors"  # of an object, found once: its fields are frozen


def changes(owner: Any) -> int:
    """How often the tensors of a frozen dataclass were changed, those of its fields included."""
    held = vars(owner)
    if TENSORS not in held:
        held[TENSORS] = tuple(_tensors(owner))
    return sum([tensor._version for tensor in held[TENSORS]])  # each of which only grows


def _tensors(owner: Any) -> Iterator[Tensor]:
    for field in fields(owner):
        value = getattr(owner, field.name)
        if isinstance(value, Tensor):
            if not value.is_inference():  # whose changes torch does not count
                yield value
        elif is_dataclass(value):
            yield from _tensors(value)


class remembered(Generic[T]):  # it is used as `cached_property` is
    """As `cached_property`, of a frozen dataclass with tensors; found again after a change."""

    def __init__(self, find: Callable[[Any], T]) -> None:
        self.find, self.name, self.__doc__ = find, "", find.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"{name}, remembered"  # under its own name it would hide this descriptor

    @overload
    def __get__(self, owner: None, kind: type) -> "remembered[T]": ...

    @overload
    def __get__(self, owner: object, kind: type) -> T: ...

    def __get__(self, owner: object | None, kind: type) -> "remembered[T] | T":
        if owner is None:
            return self
        if not self.is_found(owner):
            vars(owner)[self.name] = changes(owner), self.find(owner)
        return vars(owner)[self.name][1]

    def is_found(self, owner: object) -> bool:
        """Whether it need not be found again."""
        held = vars(owner).get(self.name)
        return held is not None and held[0] == changes(owner)
