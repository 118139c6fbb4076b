import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph import kernels
from gramgraph.kernels import RBF, Constant, Delta, KernelError, LinearMap, Matern, RBFOver, Tensor, White
from gramgraph.testing.kernels import check_kernel
from tests.portions import examples

RNG = np.random.default_rng(3)
X = RNG.normal(size=(6, 2))
Y = RNG.normal(size=(5, 2))


def bump(Z):
    return 1 + Z[:, 0] ** 2


KERNELS = [
    2 * RBF(0.5) + White(0.1),
    (RBF() + 1) * RBF([1.0, 2.0]),
    RBF(0.7) * Matern(nu=2.5) * Constant(0.5),
    (RBF() + 0.3) ** 3,
    (0.3 * RBF()).exp(),
    RBF().scaled_by(bump),
    RBF([0.8, 1.2]).warp(np.tanh),
    RBF().warp(LinearMap([[1.0, 0.5, 0.1], [0.2, 0.3, -1.0]])),
    RBF().on([1]),
    RBF().on([1, 1]),
    RBF().on(1) * RBF(0.3).on(0),
    (2 * RBF() + White(0.2)).normalized(),
    (2 * RBF() + Constant(0.4)).scaled_by(bump).normalized(),
    RBF(0.6).centered(RNG.normal(size=(4, 2))),
    RBFOver(RBF().scaled_by(bump)),
    (2 * RBF() + White(0.1)).fix("length_scale"),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_every_construction_holds_to_the_contract(kernel):
    check_kernel(kernel, X, Y)


@pytest.mark.parametrize(
    "kernel, text",
    [
        (2 * RBF(0.5) + White(0.1), "2 * RBF(length_scale=0.5) + White(0.1)"),
        ((RBF() + 1) * RBF([1.0, 2.0]), "(RBF(length_scale=1) + Constant(1)) * RBF(length_scale=[1, 2])"),
        ((2 * RBF()) ** 2, "(2 * RBF(length_scale=1)) ** 2"),
        ((RBF() * White()).exp(), "exp(RBF(length_scale=1) * White(1))"),
        (RBF().warp(np.tanh).on(["a"]), "RBF(length_scale=1).warp(tanh).on(['a'])"),
        (3 * (2 * RBF()), "6 * RBF(length_scale=1)"),
        (RBF() / 4, "0.25 * RBF(length_scale=1)"),
        (sum([RBF(), White()]), "RBF(length_scale=1) + White(1)"),
    ],
)
def test_printing_reads_like_the_formula(kernel, text):
    assert repr(kernel) == text


@settings(max_examples=examples(25), deadline=None)
@given(st.floats(0.1, 5), st.floats(0.1, 5), st.floats(0.2, 3))
def test_gram_is_a_homomorphism(a, b, ell):
    k, l = RBF(ell), Matern(nu=1.5)
    assert np.allclose((a * k + b * l).gram(X, Y), a * k.gram(X, Y) + b * l.gram(X, Y))
    assert np.allclose((a * k * (b * l)).gram(X), a * b * k.gram(X) * l.gram(X))
    assert np.allclose((k + a).gram(X), k.gram(X) + a)
    assert np.allclose((k**2).gram(X), (k * k).gram(X))


def test_squared_dot_product_has_these_features():
    # (xᵀz)² = φ(x)ᵀφ(z) with φ(x) = (x₁², √2 x₁x₂, x₂²); here xᵀz as the warp of a constant by each coordinate
    dot = Constant(1.0).scaled_by(lambda Z: Z[:, 0]) + Constant(1.0).scaled_by(lambda Z: Z[:, 1])

    def phi(Z):
        return np.stack([Z[:, 0] ** 2, np.sqrt(2) * Z[:, 0] * Z[:, 1], Z[:, 1] ** 2], axis=1)

    assert np.allclose((dot**2).gram(X, Y), phi(X) @ phi(Y).T)


def test_centering_is_the_double_centered_matrix():
    k = RBF(0.9)
    J = np.eye(len(X)) - 1 / len(X)
    assert np.allclose(k.centered(X).gram(X), J @ k.gram(X) @ J, atol=1e-14)


def test_frames_and_mixed_inputs():
    frame = pd.DataFrame({"age": X[:, 0], "name": list("abcdef"), "size": X[:, 1]})
    k = RBF().on("age") * RBF(0.3).on(["size"])
    wanted = RBF().gram(X[:, 0]) * RBF(0.3).gram(X[:, 1])
    assert np.allclose(k.gram(frame), wanted)
    tensor = Tensor((RBF(), RBF(0.3)), columns=("age", "size"))
    assert np.allclose(tensor.gram(frame), wanted)
    assert np.allclose(RBF().tensor(RBF(0.3)).gram((X[:, 0], X[:, 1])), wanted)
    check_kernel(RBF().tensor(2 * RBF(0.3)), (X[:, 0], X))
    check_kernel(RBF().tensor(Delta(), RBF(0.3)), (X, list("aabbab"), Y[[0, 1, 2, 3, 4, 0]]))
    check_kernel(3 * Tensor((RBF(0.7), Matern(nu=2.5)), columns=([1], [0])), X, Y)
    with pytest.raises(KernelError, match="none of its parts"):
        Delta().tensor(Delta()).pullback((list("ab"), list("ab")), inputs=True)
    check_kernel(k, frame, inputs=False)
    with pytest.raises(KernelError, match="Did you mean 'size'"):
        RBF().on("sise").gram(frame)
    with pytest.raises(KernelError, match="words and labels"):
        RBF().on("name").gram(frame)


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: -1 * RBF(), "not positive definite"),
        (lambda: 0 * RBF(), "expected a positive number"),
        (lambda: RBF() / 0, "expected a positive number"),
        (lambda: RBF() + (-2), "not positive definite"),
        (lambda: RBF() ** 0.5, "whole exponent"),
        (lambda: RBF().on(5).gram(X), "column 5 does not exist"),
        (lambda: RBF().on("a").gram(X), "needs a data frame"),
        (lambda: RBF().tensor(RBF()).gram(X), "expected a tuple of 2 parts"),
        (lambda: RBF().tensor(RBF()).gram((X, X[:3])), "same number of points"),
        (lambda: RBF().scaled_by(np.tanh).gram(X), "one number per point"),
        (lambda: Constant(1.0).scaled_by(lambda Z: 0 * Z[:, 0]).normalized().gram(X), "k\\(x, x\\) > 0"),
    ],
)
def test_constructions_that_cannot_be_are_refused(make, text):
    with pytest.raises(KernelError, match=text):
        make()


def test_other_things_are_no_kernels():
    with pytest.raises(TypeError, match="not str"):
        RBF() + "white"


def test_plain_functions_in_constructors() -> None:
    """The classes take what the methods take: a function of all points that gives n numbers."""
    X = np.linspace(0.5, 2.0, 6)[:, None]

    def f(X: np.ndarray) -> np.ndarray:
        return X[:, 0]

    scaled = kernels.FunctionScaled(kernels.RBF(), f)
    np.testing.assert_allclose(scaled.gram(X), X * kernels.RBF().gram(X) * X.T)
    assert scaled == kernels.RBF().scaled_by(f)
    np.testing.assert_allclose(kernels.Warp(kernels.RBF(), np.log).gram(X), kernels.RBF().gram(np.log(X)))
    check_kernel(scaled, X)
    with pytest.raises(KernelError, match="function"):
        kernels.FunctionScaled(kernels.RBF(), 3.0)
