"""Tables to read: `net.cpt["W"][{"S": "yes"}]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gramgraph.conditionals import Conditional
from gramgraph.conditionals.showing import html_rows, text_rows
from gramgraph.exceptions import ModelError
from gramgraph.models.contexts import find_context
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.bayesian_network import BayesianNetwork

__all__ = ["CptView", "Cpts", "html_rows", "text_rows"]

_FROZEN = "a network is a value and does not change: take draft = net.draft(), set draft.cpt[…], then draft.build()"


class CptView:
    """One conditional as a table with labels; entries are read by context, which may include the child's label.

    >>> import gramgraph as gg
    >>> net = gg.datasets.sprinkler()
    >>> net.cpt["wet"][{"sprinkler": "yes", "rain": "no"}].tolist()
    [0.1, 0.9]
    >>> float(net.cpt["wet"]["sprinkler=yes, rain=no, wet=yes"])
    0.9
    """

    __slots__ = ("conditional",)

    def __init__(self, conditional: Conditional) -> None:
        self.conditional = conditional

    @property
    def child(self) -> Var:
        """The variable whose distribution it is."""
        return self.conditional.child

    @property
    def parents(self) -> tuple[Var, ...]:
        """The parents, in the order of the axes."""
        return self.conditional.parents

    @property
    def values(self) -> FloatArray:
        """The numbers, shape (*parent sizes, child size)."""
        return self.conditional.table()

    def __getitem__(self, context: Any) -> FloatArray:
        """The numbers in a context: axes of the parents that it leaves free, then the child's, if it is free."""
        scope = self.conditional.scope
        if not isinstance(context, Mapping | slice) and not (isinstance(context, str) and "=" in context):
            given = len(context) if isinstance(context, tuple | list) else 1
            if self.parents and given == len(self.parents):  # labels in order, the child left out
                scope = self.parents
        return self.values[find_context(context, scope, self.child.name)]

    def __setitem__(self, context: Any, row: Any) -> NoReturn:
        raise ModelError(f"the table of {self.child.name} cannot be assigned to: {_FROZEN}")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values, dtype=dtype, copy=bool(copy)) if copy else np.asarray(self.values, dtype=dtype)

    def to_frame(self) -> Any:
        """A pandas DataFrame: one row per context (an index level a parent), one column per state of the child."""
        import pandas as pd

        columns = pd.Index(self.child.states, name=self.child.name)
        flat = self.values.reshape(-1, self.child.size)
        if not self.parents:
            return pd.DataFrame(flat, columns=columns)
        labels, names = [var.states for var in self.parents], [var.name for var in self.parents]
        index = (
            pd.Index(labels[0], name=names[0]) if len(names) == 1 else pd.MultiIndex.from_product(labels, names=names)
        )
        return pd.DataFrame(flat, index=index, columns=columns)

    def __str__(self) -> str:
        return text_rows(self.parents, self.child, self.values)

    def __repr__(self) -> str:
        given = f" | {', '.join(var.name for var in self.parents)}" if self.parents else ""
        return f"<p({self.child.name}{given}), {type(self.conditional).__name__}, {self.conditional.size} cells>"

    def _repr_html_(self) -> str:
        return html_rows(self.parents, self.child, self.values)


class Cpts(Mapping[str, CptView]):
    """All tables of a network by the child's name; reading only."""

    __slots__ = ("_net",)

    def __init__(self, net: BayesianNetwork) -> None:
        self._net = net

    def __getitem__(self, name: str) -> CptView:
        return CptView(self._net.conditional(name))

    def __setitem__(self, name: str, table: Any) -> NoReturn:
        raise ModelError(f"the table of {name} cannot be assigned to: {_FROZEN}")

    def __contains__(self, name: object) -> bool:
        return name in self._net

    def __iter__(self) -> Iterator[str]:
        return iter(self._net.variables)

    def __len__(self) -> int:
        return len(self._net)

    def __repr__(self) -> str:
        return f"<tables of {self._net!r}>"
