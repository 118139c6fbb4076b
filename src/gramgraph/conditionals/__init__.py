"""Conditionals p(x | parents), one kind per file."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gramgraph._lazy import lazy_name
from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.variables import Var

if TYPE_CHECKING:
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

    KINDS: dict[str, type[Conditional]]

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

#: Public name → module that defines it; loaded on first use, as a network needs a few of them only.
_HOMES: dict[str, str] = {
    "Conditional": "base",
    "Kind": "base",
    "Blend": "blend",
    "Boosted": "boosted",
    "RealConditional": "continuous",
    "GaussianCopula": "copula",
    "Margin": "copula",
    "Deterministic": "deterministic",
    "FromFamily": "family",
    "Gate": "gate",
    "GridDensity": "grid_density",
    "Grouped": "grouped",
    "KernelConditional": "kernel",
    "ConditionalLinearGaussian": "linear_gaussian",
    "LinearGaussian": "linear_gaussian",
    "NoisyMax": "noisy",
    "NoisyOr": "noisy",
    "Predictor": "predictor",
    "Softmax": "softmax",
    "Table": "table",
    "TreeTable": "tree_table",
}
#: Those that are saved in files, each under its own word. A new kind is one file and a line here and above.
_SAVED = (
    "Table",
    "NoisyOr",
    "NoisyMax",
    "Deterministic",
    "Gate",
    "TreeTable",
    "LinearGaussian",
    "ConditionalLinearGaussian",
    "Softmax",
    "GaussianCopula",
    "Grouped",
    "Predictor",
    "KernelConditional",
    "Blend",
    "Boosted",
    "FromFamily",
)


def __getattr__(name: str) -> Any:
    return _kinds() if name == "KINDS" else lazy_name(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return __all__


@functools.cache
def _kinds() -> dict[str, type[Conditional]]:
    """Word in saved files → class."""
    return {cls.kind: cls for cls in (lazy_name(__name__, _HOMES, name) for name in _SAVED)}


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
