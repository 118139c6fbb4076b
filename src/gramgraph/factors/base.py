"""The algebra that every engine is written against."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol, Self, runtime_checkable

from gramgraph.variables import Var


@runtime_checkable
class Factor(Protocol):
    """A non-negative function f(x) = exp(log_scale) · f̃(x) of the variables in `scope`.

    Laws, which every kind of factor inherits as tests (`gramgraph.testing.check_factor`):
    product is commutative and associative; Σ distributes over a product whose other side does not hold the
    summed variables; the order of sums does not matter; conditioning commutes with product and with sums over
    other variables; normalize is idempotent and its log Z adds under a change of `log_scale`; nothing is changed
    in place; the scope of a product is the first-seen union of the scopes.

    Parameters
    ----------
    *args : of a protocol: none.
    **kwargs : of a protocol: none.

    Examples
    --------
    >>> from gramgraph.factors import TableFactor
    >>> from gramgraph.variables import binary
    >>> isinstance(TableFactor((binary("a"),), [0.2, 0.8]), Factor)
    True
    """

    @property
    def scope(self) -> tuple[Var, ...]:
        """The variables, in the order of the axes."""
        ...

    @property
    def log_scale(self) -> float:
        """Logarithm of the common scale."""
        ...

    def product(self, other: Self, /) -> Self:
        """f · g on the union of the scopes."""
        ...

    def marginalize(self, out: Collection[Var], /) -> Self:
        """Σ or ∫ of f over the variables `out`."""
        ...

    def maximize(self, out: Collection[Var], /) -> Self:
        """max of f over the variables `out`."""
        ...

    def condition(self, evidence: Mapping[Var, Any], /) -> Self:
        """f(·, e): the observed axes disappear; not normalized."""
        ...

    def normalize(self) -> tuple[Self, float]:
        """(f / Z, log Z)."""
        ...
