"""Values that are made once."""

from __future__ import annotations

from typing import Any, NoReturn, Self


class Frozen:
    """A value whose attributes cannot be set after it was made; `replace` makes another one.

    >>> class Point(Frozen):
    ...     def __init__(self, x):
    ...         self._hold(x=x)
    >>> Point(1).replace(x=2).x
    2
    """

    def _hold(self, **values: Any) -> None:
        """Take the attributes, when the value is made."""
        self.__dict__.update(values)

    def replace(self, **changes: Any) -> Self:
        """A new value with these attributes instead; what was computed from the old ones is computed anew."""
        made = object.__new__(type(self))
        made.__dict__.update({name: value for name, value in self.__dict__.items() if name not in self._derived()})
        made.__dict__.update(changes)
        return made

    @classmethod
    def _derived(cls) -> frozenset[str]:
        """Names of cached properties."""
        found = {name for base in cls.__mro__ for name, value in vars(base).items() if hasattr(value, "attrname")}
        return frozenset(found)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} does not change: use .replace({name}=…) instead")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} does not change")
