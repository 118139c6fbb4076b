"""Every kernel that the package defines holds to the contract: classes are found, not listed.

A kernel that can be made without arguments is checked on the first kind of points that it takes, vectors before all.
One that needs arguments, or whose points are of another kind, has an example here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramgraph import kernels as K
from gramgraph.estimators._gp_scikit_kernels import ExpSineSquared
from gramgraph.gp.derivatives import WithDerivatives
from gramgraph.kernels import RBF, Kernel, KernelError
from gramgraph.testing import check_kernel, find_classes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 2))
LABELS, WORDS = ["a", "b", "a", "c"], ["abca", "abba", "cccc", "abca"]
SETS = [frozenset("ab"), frozenset("bcd"), frozenset(), frozenset("abcd")]
GRAPHS = [np.ones((n, n)) - np.eye(n) for n in (3, 5, 4)]
ROWS = RNG.dirichlet(np.ones(4), size=5)
NORMALS = [(RNG.normal(size=2), np.diag(RNG.uniform(0.5, 2.0, size=2))) for _ in range(4)]
#: Points that a kernel may take, tried in this order.
POINTS = {"vectors": X, "positive numbers": np.abs(X) + 0.1, "labels": LABELS, "words": WORDS, "sets": SETS}


def _square(Z: Any) -> Any:
    return 1.0 + Z[:, 0] ** 2


class Normal:
    """N(0.5, 1) with its score by the mean."""

    def fisher_score(self, X: Any, /) -> Any:
        return np.asarray(X, dtype=float).reshape(-1, 1) - 0.5


Example = Callable[[], tuple[Kernel, Any]]
EXAMPLES: dict[type[Kernel], Example] = {
    K.ArcCosine: lambda: (K.ArcCosine(order=1, bias=0.5), X),
    K.Categorical: lambda: (K.Categorical(("a", "b", "c"), np.arange(6.0).reshape(3, 2), own=0.3), LABELS),
    K.CategoricalProbabilityProduct: lambda: (K.CategoricalProbabilityProduct(power=0.7), ROWS),
    K.Centered: lambda: (RBF(0.6).centered(X[:4] + 0.3), X),
    K.Delta: lambda: (K.Delta(), LABELS),
    K.EditDistance: lambda: (K.EditDistance(gamma=0.4), WORDS),
    K.Exponential: lambda: ((0.3 * RBF()).exp(), X),
    K.Fisher: lambda: (K.Fisher(Normal()), [0.0, 1.0, 3.0]),
    K.FunctionKernel: lambda: (K.FunctionKernel(lambda s, t: float(len(s & t))), [{1, 2}, {2, 3}, {5}]),
    K.FunctionScaled: lambda: (RBF().scaled_by(_square), X),
    K.GaussianProbabilityProduct: lambda: (K.GaussianProbabilityProduct(power=0.7), NORMALS),
    K.Hamming: lambda: (K.Hamming(gamma=0.6), WORDS),
    K.LatentVariable: lambda: (K.LatentVariable([0.2, 0.5, 0.3], ROWS[:3]), np.array([0, 1, 3, 2, 0])),
    K.Normalized: lambda: ((2 * RBF() + K.White(0.2)).normalized(), X),
    K.OnColumns: lambda: (RBF().on([1]), X),
    K.Power: lambda: ((RBF() + 0.3) ** 3, X),
    K.Precomputed: lambda: (K.Precomputed(RBF().gram(X)), np.arange(6)),
    K.Product: lambda: (RBF() * K.Matern(nu=2.5), X),
    K.QuadraticForm: lambda: (K.QuadraticForm([0.5, -1.0]), X),
    K.RandomWalk: lambda: (K.RandomWalk(decay=0.05), GRAPHS),
    K.RBFOver: lambda: (K.RBFOver(RBF([1.0, 2.0]), 0.8), X),
    K.Scale: lambda: (2 * RBF(), X),
    K.SetKernel: lambda: (K.SetKernel(weight=0.3), SETS),
    K.SpectralMixture: lambda: (K.SpectralMixture([0.6], [[0.1, 0.3]], [[0.1, 0.2]]), X),
    K.Spectrum: lambda: (K.Spectrum(length=2), WORDS),
    K.Subsequence: lambda: (K.Subsequence(length=2, decay=0.6), WORDS),
    K.Sum: lambda: (RBF() + K.White(0.1), X),
    K.Tensor: lambda: (RBF().tensor(RBF(0.3)), (X[:, 0], X)),
    K.Warp: lambda: (RBF().warp(np.tanh), X),
    WithDerivatives: lambda: (WithDerivatives(RBF(0.7)), np.array([[0.1, 0], [0.7, 1], [1.5, 0], [-0.4, 1]])),
}
#: Kernels of numbers that have no gradient by them: indices, and a distance that is not smooth.
NOT_BY_INPUTS = (ExpSineSquared, WithDerivatives, K.LatentVariable, K.Precomputed)


def found() -> list[type[Kernel]]:
    return find_classes(Kernel, "kernels", "gp", "estimators")


def example(kind: type[Kernel]) -> tuple[Kernel, Any]:
    """A kernel of this kind with points that it takes."""
    if kind in EXAMPLES:
        return EXAMPLES[kind]()
    try:
        kernel = kind()
    except TypeError as error:
        raise AssertionError(f"{kind.__name__} needs arguments: write an example of it in {__file__}.") from error
    for points in POINTS.values():
        try:
            kernel.gram(points)
        except KernelError:
            continue
        return kernel, points
    raise AssertionError(f"{kind.__name__}() takes none of {list(POINTS)}: write an example of it in {__file__}.")


def check(kind: type[Kernel]) -> None:
    """The contract for a class of kernels, whoever wrote it."""
    kernel, points = example(kind)
    check_kernel(kernel, points, inputs=False if kind in NOT_BY_INPUTS else None)


@pytest.mark.parametrize("kind", found(), ids=lambda kind: kind.__name__)
def test_contract(kind: type[Kernel]) -> None:
    check(kind)


def test_every_kernel_of_the_package_is_public() -> None:
    hidden = {kind.__name__ for kind in find_classes(Kernel, "kernels")} - set(K.__all__)
    assert not hidden, f"add a line in kernels/__init__.py for {hidden}"


BAD = """
from dataclasses import dataclass
import numpy as np
from gramgraph.kernels.base import Kernel
from gramgraph.kernels.parameters import parameter

@dataclass(frozen=True, eq=False, repr=False)
class Slope{name}(Kernel):
    '''scale · xᵀx′'''
    scale: float = parameter({default})

    def _diag(self, X):
        return self.scale * np.einsum("ij,ij->i", X, X)

    def _pullback(self, X, Y, inputs):
        Z = X if Y is None else Y
        S = X @ Z.T

        def pull(bar):
            both = bar + bar.T if Y is None else bar
            by_X = self.scale * both @ Z if inputs else None
            by_Y = self.scale * bar.T @ X if inputs and Y is not None else None
            return self.cotangent({{"scale": {factor} * np.vdot(bar, S)}}, by_X, by_Y)

        return self.scale * S, pull
"""


@pytest.mark.parametrize(
    "factor, default, wrong", [("1.0", "1.0", None), ("3.0", "1.0", "finite differences"), ("1.0", "", "write an ex")]
)
def test_the_contract_finds_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: str, default: str, wrong: str | None
) -> None:
    name = f"{'Good' if wrong is None else 'Wrong' if default else 'Bare'}"
    (tmp_path / f"slope_{name.lower()}.py").write_text(BAD.format(name=name, factor=factor, default=default))
    monkeypatch.setattr(K, "__path__", [*K.__path__, str(tmp_path)])
    [kind] = set(found()) - set(FOUND)
    assert kind.__name__ == f"Slope{name}"
    if wrong is None:
        check(kind)
        return
    with pytest.raises(AssertionError, match=wrong):
        check(kind)


FOUND = found()
