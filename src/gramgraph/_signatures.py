"""Signatures of classes that are made in `__new__` or by a metaclass: help and documentation show `__init__`."""

from __future__ import annotations

import inspect
from typing import Any

__all__ = ["InitSignature"]


class InitSignature:
    """As `__signature__` of a class: the parameters of `__init__`, for the class and for those that inherit from it.

    >>> class Made:
    ...     __signature__ = InitSignature()
    ...
    ...     def __new__(cls, *args, **options):
    ...         return super().__new__(cls)
    ...
    ...     def __init__(self, length, *, width=1.0): ...
    >>> inspect.signature(Made)
    <Signature (length, *, width=1.0)>
    """

    def __get__(self, value: Any, owner: type) -> inspect.Signature:
        if value is not None:
            raise AttributeError("__signature__")  # a value that can be called has a signature of its own
        maker: Any = owner.__init__  # type: ignore[misc]  # of the class itself
        if maker is object.__init__:
            return inspect.Signature()
        found = inspect.signature(maker)
        return found.replace(parameters=list(found.parameters.values())[1:], return_annotation=inspect.Signature.empty)
