"""Operators that compose: chains, reparameterized matrices, third order, trees; delta kernels are tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph.embeddings import (
    ConditionalOperator,
    CovarianceOperator,
    MeanEmbedding,
    OperatorTree,
    TensorOperator,
    chain_rule,
    conditional_operator,
    diagonal_tensor,
    one_point,
    partly_diagonal_tensor,
    reparameterize,
)
from gramgraph.kernels import RBF, Delta
from gramgraph.rkhs import RKHSFunction, SpaceError
from tests.portions import examples

SIZES = {"A": 3, "B": 4, "C": 3, "D": 2}


def rbf_chain(n=150):
    rng = np.random.default_rng(0)
    A = rng.normal(size=n)
    B = np.sin(A) + 0.3 * rng.normal(size=n)
    C = B**2 + 0.3 * rng.normal(size=n)
    D = C + 0.3 * rng.normal(size=n)
    return A, B, C, D


def chain_operators():
    k, lam = RBF(0.7), 1e-2
    A, B, C, D = rbf_chain()
    names = zip("ABC", "BCD", strict=True)
    arrows = [
        ConditionalOperator(x, y, kernel_x=k, kernel_y=k, reg=lam, names=pair)
        for (x, y), pair in zip(((A, B), (B, C), (C, D)), names, strict=True)
    ]
    return CovarianceOperator(A, A, kernel_x=k, kernel_y=k, names=("A", "A")), *arrows


def test_the_chain_is_written_as_in_the_text():
    C_AA, C_BgA, C_CgB, C_DgC = chain_operators()
    C_AD = C_AA @ C_BgA.T @ C_CgB.T @ C_DgC.T
    wanted = 0.402490026739515
    assert abs(C_AD(0.4, 0.2) - wanted) < 1e-10
    assert C_AD([0.4, 0.1], [0.2]).shape == (2, 1)
    D = reparameterize(C_AA, C_BgA.T, C_CgB.T, C_DgC.T)
    k, (A, *_, last) = RBF(0.7), rbf_chain()
    ends = k.gram(np.array([[0.4]]), A[:, None]), k.gram(last[:, None], np.array([[0.2]]))
    assert abs((ends[0] @ np.linalg.multi_dot(D) @ ends[1])[0, 0] - wanted) < 1e-10
    n, lam = len(A), 1e-2
    K_AA = k.gram(A[:, None], A[:, None])
    assert np.allclose(D[0], K_AA @ np.eye(n) / n, atol=1e-12)
    K_BB = k.gram(rbf_chain()[1][:, None], rbf_chain()[1][:, None])
    assert np.allclose(K_AA @ D[1], K_AA @ np.linalg.solve(K_AA + lam * n * np.eye(n), K_BB), atol=1e-9)


def test_projection_on_anchors_keeps_the_values():
    parts = chain_operators()
    anchors = np.linspace(-4.0, 6.0, 40)
    product = parts[0].project(anchors, anchors)
    for part in parts[1:]:
        product = product @ part.T.project(anchors, anchors)
    assert product.W.shape == (40, 40)
    assert abs(product(0.4, 0.2) - 0.402490026739515) < 1e-3


def test_spaces_are_checked():
    C_AA, C_BgA, C_CgB, _ = chain_operators()
    with pytest.raises(SpaceError, match="A is not B"):
        C_AA @ C_CgB.T
    with pytest.raises(SpaceError, match="do not meet"):
        C_BgA @ ConditionalOperator([0.0, 1.0], [1.0, 2.0], kernel_x=RBF(1.0), kernel_y=RBF(2.0))
    with pytest.raises(SpaceError, match="do not meet"):
        C_BgA @ one_point(RBF(2.0), 0.1)


def draw_chain(rng):
    tables = {x + y: rng.dirichlet(np.ones(SIZES[y]), size=SIZES[x]) for x, y in ("AB", "BC", "CD", "BD")}

    def pair(x, y, n):
        a = np.concatenate([np.arange(SIZES[x]), rng.integers(0, SIZES[x], n)])
        return a, np.array([rng.choice(SIZES[y], p=tables[x + y][i]) for i in a])

    return pair


def rows(x, y, i, j):
    counts = np.zeros((i, j))
    np.add.at(counts, (x, y), 1.0)
    return counts / counts.sum(axis=1, keepdims=True)


@settings(max_examples=examples(10), deadline=None)
@given(st.integers(0, 1000))
def test_delta_kernels_are_tables_also_from_four_samples(seed):
    rng = np.random.default_rng(seed)
    pair = draw_chain(rng)
    a0 = rng.integers(0, 3, 60)
    samples = [pair("A", "B", 80), pair("B", "C", 50), pair("C", "D", 70)]
    product = CovarianceOperator(a0, kernel_x=Delta())
    exact = np.diag(np.bincount(a0, minlength=3) / 60)
    for (x, y), (i, j) in zip(samples, ((3, 4), (4, 3), (3, 2)), strict=True):
        product = product @ ConditionalOperator(x, y, kernel_x=Delta(), kernel_y=Delta(), reg=0.0).T
        exact = exact @ rows(x, y, i, j)
    assert np.allclose(product(np.arange(3), np.arange(2)), exact, atol=1e-10)

    p, s = pair("A", "B", 60)
    s1, u1 = pair("B", "C", 50)
    s2, v2 = pair("B", "D", 40)
    tree = OperatorTree(
        {"s": "p", "u": "s", "v": "s"},
        {"p": a0, ("p", "s"): (p, s), ("s", "u"): (s1, u1), ("s", "v"): (s2, v2)},
        kernels=dict.fromkeys("psuv", Delta()),
        reg=0.0,
    )
    R, U, V = rows(p, s, 3, 4), rows(s1, u1, 4, 3), rows(s2, v2, 4, 2)
    prior = np.bincount(a0, minlength=3) / 60
    assert abs(tree.evidence({"u": 1, "v": 0}) - prior @ R @ (U[:, 1] * V[:, 0])) < 1e-10
    assert abs(tree.evidence({"p": 2, "v": 0}) - prior[2] * R[2] @ V[:, 0]) < 1e-10
    assert tree.evidence({}) == 1.0


def test_contractions_by_either_order_and_mode():
    rng = np.random.default_rng(1)
    S, P = rng.normal(size=40), rng.normal(size=40)
    k = RBF(0.8)
    C = TensorOperator.given(S, P, kernel_s=k, kernel_p=k, reg=1e-2)
    f, g = one_point(k, 0.3), RKHSFunction(k, [[0.1], [-0.5]], [1.0, -2.0])
    assert C.order == 3
    one, other = C.contract(f, 1).contract(g, 1), C.contract(g, 2).contract(f, 1)
    assert np.allclose(one([0.0, 1.0]), other([0.0, 1.0]), atol=1e-12)
    assert np.allclose((C.contract(f, 1).operator.T @ g)([0.0, 1.0]), one([0.0, 1.0]), atol=1e-12)
    assert np.isclose(C(0.3, 0.1, 0.7), C.contract(one_point(k, 0.7), 3).operator(0.3, 0.1))
    moments = TensorOperator.of(S, P, S * P, kernels=[k, k, k])
    assert np.isclose(
        moments(0.1, 0.2, 0.3),
        np.mean(np.prod([one_point(k, x)(v) for x, v in ((0.1, S), (0.2, P), (0.3, S * P))], axis=0)),
    )


def test_diagonal_tensors_and_independence():
    rng = np.random.default_rng(2)
    A, BgA, CgA = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(2), 3).T, rng.dirichlet(np.ones(4), 3).T
    joint = BgA @ diagonal_tensor(A) @ CgA.T
    assert np.allclose(joint, np.einsum("a,ba,ca->bc", A, BgA, CgA))
    dependent = rng.dirichlet(np.ones(24)).reshape(3, 2, 4)
    pa = dependent.sum((1, 2))
    b, c = dependent.sum(2) / pa[:, None], dependent.sum(1) / pa[:, None]
    assert np.abs(b.T @ diagonal_tensor(pa) @ c - dependent.sum(0)).max() > 1e-3
    T = partly_diagonal_tensor(BgA)
    v, w = rng.random(2), rng.random(2)
    assert np.allclose(np.einsum("ijk,i,j->k", T, v, w), (v * w) @ BgA)


def test_two_forms_of_the_chain_rule():
    op = conditional_operator(["a", "a", "b", "b"], ["u", "v", "v", "v"], reg=0.0, centered=False)
    prior = MeanEmbedding.of(["a", "b", "b", "b"])
    tables = [chain_rule(op, prior, form=form).table(["a", "b"], ["u", "v"]) for form in ("sample", "text")]
    assert np.allclose(tables[0], tables[1], atol=1e-10)
    A, B, *_ = rbf_chain()
    k = RBF(0.7)
    op = ConditionalOperator(A, B, kernel_x=k, kernel_y=k, reg=1e-2)
    prior = MeanEmbedding.of(A[:50], kernel=k)
    n = len(A)
    G = k.gram(A[:, None], A[:, None])
    literal = k.gram([[0.1]], A[:50, None]) / 50 @ k.gram(A[:50, None], A[:, None])
    literal = literal @ np.linalg.inv(G + 1e-2 * n * np.eye(n)) @ k.gram(B[:, None], [[0.2]])
    assert abs(chain_rule(op, prior, form="text")(0.1, 0.2) - literal[0, 0]) < 1e-10


def test_a_centered_operator_composes_with_measures():
    A, B, *_ = rbf_chain()
    k = RBF(0.7)
    op = ConditionalOperator(A, B, kernel_x=k, kernel_y=k, reg=1e-2, centered=True)
    mu = MeanEmbedding.of(A[:30], kernel=k)
    assert np.allclose((op @ mu).weights, op.weights(A[:30]).mean(axis=0), atol=1e-10)
    joint = CovarianceOperator(A[:30], kernel_x=k) @ op.T
    wanted = k.gram([[0.1]], A[:30, None]) / 30 @ op.weights(A[:30]) @ k.gram(B[:, None], [[0.2]])
    assert abs(joint(0.1, 0.2) - wanted[0, 0]) < 1e-10
    with pytest.raises(SpaceError, match="centered=False"):
        op.T @ one_point(k, 0.2)
