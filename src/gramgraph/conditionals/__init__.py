"""Conditionals p(x | parents), one kind per file."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gramgraph._lazy import lazy_name, names_of
from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.conditionals.base import Conditional as Conditional
    from gramgraph.conditionals.base import Kind as Kind
    from gramgraph.conditionals.blend import *
    from gramgraph.conditionals.boosted import *
    from gramgraph.conditionals.continuous import *
    from gramgraph.conditionals.copula import *
    from gramgraph.conditionals.deterministic import *
    from gramgraph.conditionals.family import *
    from gramgraph.conditionals.gate import *
    from gramgraph.conditionals.grid_density import *
    from gramgraph.conditionals.grouped import *
    from gramgraph.conditionals.kernel import *
    from gramgraph.conditionals.linear_gaussian import *
    from gramgraph.conditionals.noisy import *
    from gramgraph.conditionals.predictor import *
    from gramgraph.conditionals.softmax import *
    from gramgraph.conditionals.table import *
    from gramgraph.conditionals.tree_table import *

    KINDS: dict[str, type[Conditional]]

#: Module → conditionals that are saved in files, each under its own word. A new kind is one file and a line here.
_SAVED = {
    "blend": "Blend",
    "boosted": "Boosted",
    "copula": "GaussianCopula",
    "deterministic": "Deterministic",
    "family": "FromFamily",
    "gate": "Gate",
    "grouped": "Grouped",
    "kernel": "KernelConditional",
    "linear_gaussian": "ConditionalLinearGaussian LinearGaussian",
    "noisy": "NoisyMax NoisyOr",
    "predictor": "Predictor",
    "softmax": "Softmax",
    "table": "Table",
    "tree_table": "TreeTable",
}
_OTHERS = {
    "base": "Conditional Kind",
    "continuous": "RealConditional",
    "copula": "Margin",
    "grid_density": "GridDensity",
}
_HOMES = names_of(_SAVED) | names_of(_OTHERS)  # loaded at first use, as a network needs a few of them only

__all__ = sorted([*_HOMES, "KINDS", "from_fields"])


def __getattr__(name: str) -> Any:
    return _kinds() if name == "KINDS" else lazy_name(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return __all__


@functools.cache
def _kinds() -> dict[str, type[Conditional]]:
    """Word in saved files → class."""
    return {cls.kind: cls for cls in (lazy_name(__name__, _HOMES, name) for name in names_of(_SAVED))}


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
    kind, kinds = fields.get("kind"), _kinds()
    if kind not in kinds:
        raise ModelError(f"{kind!r} is not a kind of conditional. Kinds: {listing(kinds)}.{did_you_mean(kind, kinds)}")
    return kinds[kind].from_fields(fields, variables)
