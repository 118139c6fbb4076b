import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import gramgraph.kernels as gk
from gramgraph.exceptions import GramGraphError
from gramgraph.kernels import RBF, Kernel, KernelError, Matern, White, as_points
from gramgraph.testing.kernels import check_kernel


def test_import_stays_light():
    heavy = ("numba", "scipy", "sklearn", "pandas")
    code = f"import gramgraph.kernels as k; k.RBF; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", "import sys; sys.path[:0] = " + repr([p for p in sys.path if p]) + "\n" + code],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.strip() == "[]"


def test_unknown_names_are_helped():
    with pytest.raises(AttributeError, match="Did you mean 'Matern'"):
        gk.Mattern  # noqa: B018


def test_theta_names_and_bounds():
    k = 2 * RBF([0.5, 1.0]) + White(0.1)
    assert k.parameter_names == (
        "terms[0].variance", "terms[0].base.length_scale[0]", "terms[0].base.length_scale[1]", "terms[1].variance"
    )  # fmt: skip
    assert np.allclose(k.theta, np.log([2, 0.5, 1, 0.1]))
    assert np.allclose(k.bounds, np.log([[1e-5, 1e5]] * 4))
    moved = k.with_theta(np.log([3, 1, 2, 0.2]))
    assert repr(moved.with_theta(np.log([3.0, 1.0, 2.0, 0.2]))) == repr(moved)
    assert k.theta[0] == np.log(2)
    with pytest.raises(KernelError, match=r"expected 4 numbers.*got shape \(3,\)"):
        k.with_theta(np.zeros(3))


def test_fixed_parameters_leave_theta_and_keep_their_value():
    k = 2 * RBF(0.5) + White(0.1)
    f = k.fix("length_scale")
    assert f.parameter_names == ("terms[0].variance", "terms[1].variance")
    assert np.allclose(f.with_theta(np.zeros(2)).gram([0.0, 1.0]), (1 * RBF(0.5) + White(1.0)).gram([0.0, 1.0]))
    assert f.fix("terms[1].variance").parameter_names == ("terms[0].variance",)
    assert f.free() == k and f != k
    assert len(k.fix().theta) == 0
    assert Matern().parameter_names == ("length_scale",)
    assert Matern().free("nu").parameter_names == ("length_scale", "nu")
    with pytest.raises(KernelError, match="Did you mean 'length_scale'"):
        RBF().fix("lenght_scale")


def test_kernels_are_values():
    k = 2 * RBF([0.5, 1.0]) + White(0.1)
    for twin in (copy.deepcopy(k), pickle.loads(pickle.dumps(k)), 2 * RBF([0.5, 1.0]) + White(0.1)):
        assert twin == k and hash(twin) == hash(k)
    assert k != 2 * RBF([0.5, 1.1]) + White(0.1)
    with pytest.raises(AttributeError):
        RBF().length_scale = 2.0
    with pytest.raises(ValueError):
        RBF([1.0, 2.0]).length_scale[0] = 3.0


@pytest.mark.parametrize(
    "X, text",
    [
        ([[1.0, np.nan]], r"X\[0, 1\] is nan"),
        ([[np.inf]], "expected finite"),
        (np.zeros((2, 2, 2)), r"expected a matrix \(n, d\).*\(2, 2, 2\)"),
        (3.0, r"got shape \(\)"),
        (["a", "b"], "words and labels"),
        ([[1.0], [1.0, 2.0]], "rows of equal length"),
        (np.zeros((3, 0)), "d ≥ 1"),
        ([1j], "expected numbers"),
    ],
)
def test_inputs_are_looked_at_at_the_door(X, text):
    for ask in (RBF().gram, RBF().diag, RBF().pullback, (RBF() + White()).gram):
        with pytest.raises(KernelError, match=text):
            ask(X)


def test_shapes_must_fit():
    with pytest.raises(KernelError, match=r"same number of columns; X is \(2, 2\), Y is \(2, 1\).*\[\[…\]\]"):
        RBF().gram(np.zeros((2, 2)), [1.0, 2.0])
    _, pull = RBF().pullback([0.0, 1.0])
    with pytest.raises(KernelError, match=r"\(2, 2\); it got \(3,\)"):
        pull(np.zeros(3))
    assert issubclass(KernelError, GramGraphError)
    assert as_points([1, 2]).shape == (2, 1)
    assert RBF().gram(np.zeros((0, 2))).shape == (0, 0)


def test_the_check_finds_faults():
    class Wrong(RBF):
        def _slope(self, K, S):
            return -0.4 * K

    with pytest.raises(AssertionError, match="finite differences"):
        check_kernel(Wrong(), np.arange(4.0))

    class Crooked(RBF):
        def _diag(self, X):
            return np.full(len(X), 2.0)

    with pytest.raises(AssertionError, match="diag"):
        check_kernel(Crooked(), np.arange(4.0))

    class Negative(RBF):
        def _gram(self, X, Y):
            return -super()._gram(X, Y)

        def _diag(self, X):
            return -np.ones(len(X))

    with pytest.raises(AssertionError, match="not positive definite"):
        check_kernel(Negative(), np.arange(4.0))
    assert issubclass(RBF, Kernel)
