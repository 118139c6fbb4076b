"""Conditionals p(x | parents), one kind per file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gramgraph.conditionals.base import Conditional, Kind
from gramgraph.conditionals.blend import Blend
from gramgraph.conditionals.boosted import Boosted
from gramgraph.conditionals.continuous import RealConditional
from gramgraph.conditionals.copula import GaussianCopula, Margin
from gramgraph.conditionals.deterministic import Deterministic
from gramgraph.conditionals.family import FromFamily
from gramgraph.conditionals.gate import Gate
from gramgraph.conditionals.grid_density import GridDensity
from gramgraph.conditionals.grouped import Grouped
from gramgraph.conditionals.kernel import KernelConditional
from gramgraph.conditionals.linear_gaussian import ConditionalLinearGaussian, LinearGaussian
from gramgraph.conditionals.noisy import NoisyMax, NoisyOr
from gramgraph.conditionals.predictor import Predictor
from gramgraph.conditionals.softmax import Softmax
from gramgraph.conditionals.table import Table
from gramgraph.conditionals.tree_table import TreeTable
from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.variables import Var

__all__ = [
    "KINDS",
    "Blend",
    "Boosted",
    "Conditional",
    "ConditionalLinearGaussian",
    "Deterministic",
    "FromFamily",
    "Gate",
    "GaussianCopula",
    "GridDensity",
    "Grouped",
    "KernelConditional",
    "Kind",
    "LinearGaussian",
    "Margin",
    "NoisyMax",
    "NoisyOr",
    "Predictor",
    "RealConditional",
    "Softmax",
    "Table",
    "TreeTable",
    "from_fields",
]

#: Word in saved files → class. A new kind is one file and one line here.
KINDS: dict[str, type[Conditional]] = {
    cls.kind: cls
    for cls in (
        Table,
        NoisyOr,
        NoisyMax,
        Deterministic,
        Gate,
        TreeTable,
        LinearGaussian,
        ConditionalLinearGaussian,
        Softmax,
        GaussianCopula,
        Grouped,
        Predictor,
        KernelConditional,
        Blend,
        Boosted,
        FromFamily,
    )
}


def from_fields(fields: Mapping[str, Any], variables: Mapping[str, Var]) -> Conditional:
    """The conditional that `to_fields` of any kind wrote; `variables` maps names to variables.

    Parameters
    ----------
    fields : what `to_fields` wrote.
    variables : the variables by name.

    Examples
    --------
    >>> from gramgraph.variables import binary
    >>> a, b = binary("a"), binary("b")
    >>> fields = NoisyOr(b, (a,), [0.5]).to_fields()
    >>> from_fields(fields, {"a": a, "b": b}).table().tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    kind = fields.get("kind")
    if kind not in KINDS:
        raise ModelError(f"{kind!r} is not a kind of conditional. Kinds: {listing(KINDS)}.{did_you_mean(kind, KINDS)}")
    return KINDS[kind].from_fields(fields, variables)
