"""Mean maps, covariance operators, conditional operators and their rules: tables, least squares, Gaussians."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.embeddings import (
    CovarianceOperator,
    MeanEmbedding,
    bayes_rule,
    chain_rule,
    conditional_operator,
    default_kernel,
    kernel_filter,
    sum_rule,
)
from gramgraph.kernels import RBF, Delta, FunctionKernel, Linear
from gramgraph.rkhs import RKHSFunction, SpaceError
from tests.portions import examples

RNG = np.random.default_rng
pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=4, max_size=40)


def tables(data):
    """Joint counts of states 0 … 3 and 0 … 2, as probabilities."""
    joint = np.zeros((4, 3))
    for a, b in data:
        joint[a, b] += 1.0
    return joint / joint.sum()


# --- with the delta kernel everything is a table --------


@settings(max_examples=examples(60), deadline=None)
@given(pairs, st.lists(st.floats(0.05, 1.0), min_size=4, max_size=4), st.booleans())
def test_delta_kernel_is_the_table(data, prior, centered):
    x, y = np.array([a for a, _ in data]), np.array([b for _, b in data])
    joint = tables(data)
    seen = np.flatnonzero(joint.sum(1))
    given_x = joint[seen] / joint[seen].sum(1, keepdims=True)
    pi = np.array(prior)[seen] / np.array(prior)[seen].sum()
    ys = np.arange(3)
    close = {"atol": 1e-10, "rtol": 0}

    assert np.allclose(MeanEmbedding.of(x, kernel=Delta())(np.arange(4)), joint.sum(1), **close)
    C = CovarianceOperator.of(x, y, kernel_x=Delta(), kernel_y=Delta())
    assert np.allclose(C.table(np.arange(4), ys), joint, **close)
    op = conditional_operator(x, y, kernel_x=Delta(), kernel_y=Delta(), reg=0.0, centered=centered)
    indicators = (y[:, None] == ys).astype(float)
    assert np.allclose(op.expect(indicators, seen), given_x, **close)
    assert np.allclose(op.weights(seen) @ indicators, given_x, **close)

    mu = MeanEmbedding(Delta(), seen, pi)
    assert np.allclose(sum_rule(op, mu)(ys), pi @ given_x, **close)
    assert np.allclose(chain_rule(op, mu).table(seen, ys), pi[:, None] * given_x, **close)
    for state in np.flatnonzero(pi @ given_x):
        posterior = pi * given_x[:, state] / (pi @ given_x)[state]
        assert np.allclose(bayes_rule(op, mu, [state])(seen), posterior, **close)


def test_delta_filter_is_the_forward_algorithm():
    rng = RNG(0)
    x, nxt = rng.integers(0, 3, 200), rng.integers(0, 3, 200)
    hidden, seen = rng.integers(0, 3, 300), rng.integers(0, 4, 300)
    A = np.array([[np.mean(nxt[x == i] == j) for j in range(3)] for i in range(3)])
    E = np.array([[np.mean(seen[hidden == i] == k) for k in range(4)] for i in range(3)])
    move = conditional_operator(x, nxt, kernel_x=Delta(), kernel_y=Delta(), reg=0.0)
    emit = conditional_operator(hidden, seen, kernel_x=Delta(), kernel_y=Delta(), reg=0.0)
    observed = [0, 3, None, 1, 1, 2]
    found = kernel_filter(move, emit, MeanEmbedding(Delta(), np.arange(3), np.full(3, 1 / 3)), observed)
    p = np.full(3, 1 / 3)
    for t, y in enumerate(observed):
        p = p @ A if t else p
        p = p if y is None else p * E[:, y] / (p @ E[:, y])
        assert np.allclose(found[t](np.arange(3)), p, atol=1e-10)


# --- mean maps --------


def test_mean_map_expectations_and_distances():
    rng = RNG(1)
    X, Y = rng.normal(size=(30, 2)), rng.normal(0.5, 1.0, size=(20, 2))
    k = RBF(1.3)
    mu, nu = MeanEmbedding.of(X, kernel=k), MeanEmbedding.of(Y, kernel=k)
    f = RKHSFunction(k, Y[:4], rng.normal(size=4))
    assert mu.inner(f) == pytest.approx(f(X).mean())
    assert mu.mmd(nu) ** 2 == pytest.approx(k.gram(X).mean() + k.gram(Y).mean() - 2 * k.gram(X, Y).mean())
    assert mu.mmd(mu) == 0.0 and mu.norm() == pytest.approx(np.sqrt(k.gram(X).mean()))
    assert np.allclose(mu.mean(), X.mean(0)) and np.allclose(mu.var(), X.var(0))
    linear = MeanEmbedding.of(X, kernel=Linear()), MeanEmbedding.of(Y, kernel=Linear())
    assert linear[0].mmd(linear[1]) == pytest.approx(np.linalg.norm(X.mean(0) - Y.mean(0)))
    with pytest.raises(SpaceError, match="different spaces"):
        mu.mmd(linear[0])


def test_quantiles_and_draws():
    x = np.array([3.0, 1.0, 2.0, 4.0])
    mu = MeanEmbedding.of(x, weights=[1, 1, 1, 1])
    assert mu.quantile([0.0, 0.25, 0.5, 1.0]).tolist() == [1.0, 1.0, 2.0, 4.0]
    signed = MeanEmbedding(RBF(), x, [0.6, -0.1, 0.5, 0.0])
    assert signed.quantile(0.5) == 3.0 or signed.quantile(0.5) == 2.0
    drawn = signed.sample(500, random_state=0)[:, 0]
    assert set(drawn) == {2.0, 3.0} and np.mean(drawn == 3.0) == pytest.approx(6 / 11, abs=0.08)


def test_herding_beats_random_draws():
    x = RNG(2).normal(size=(2000, 1))
    mu = MeanEmbedding.of(x)
    herded = MeanEmbedding.of(mu.herd(40), kernel=mu.kernel)
    random = [MeanEmbedding.of(mu.sample(40, random_state=s), kernel=mu.kernel).mmd(mu) for s in range(10)]
    assert herded.mmd(mu) < 0.5 * min(random)


def test_mode_and_pre_image():
    rng = RNG(3)
    X = np.concatenate([rng.normal(2.0, 0.3, size=(300, 2)), rng.normal(-2.0, 0.3, size=(100, 2))])
    mu = MeanEmbedding.of(X, kernel=RBF(0.5))
    top = mu.mode()
    assert np.linalg.norm(top - 2.0) < 0.15
    assert np.abs(mu.function.gradient(top[None])).max() < 1e-4
    assert np.allclose(mu.pre_image(), top, atol=1e-3)
    linear = MeanEmbedding.of(X, kernel=Linear())
    assert np.allclose(linear.pre_image(), X.mean(0), atol=1e-4)  # the only point with that feature
    assert MeanEmbedding.of(["a", "b", "b"]).mode() == "b"
    rough = MeanEmbedding.of(
        [[0.0], [0.1], [5.0]], kernel=FunctionKernel(lambda a, b: float(np.exp(-abs(a[0] - b[0]))))
    )
    assert rough.mode()[0] <= 0.2


# --- covariance operators --------


def test_covariance_operator():
    rng = RNG(4)
    X, Y = rng.normal(size=(25, 1)), rng.normal(size=(25, 2))
    kx, ky = RBF(1.0), RBF(0.8)
    f, g = RKHSFunction(kx, X[:3], [1.0, -2.0, 0.5]), RKHSFunction(ky, Y[:2], [0.3, 1.0])
    plain = CovarianceOperator.of(X, Y, kernel_x=kx, kernel_y=ky)
    centered = CovarianceOperator.of(X, Y, kernel_x=kx, kernel_y=ky, centered=True)
    assert plain.inner(f, g) == pytest.approx(np.mean(f(X) * g(Y)))
    assert centered.inner(f, g) == pytest.approx(np.cov(f(X), g(Y), bias=True)[0, 1])
    assert centered.adjoint.inner(g, f) == pytest.approx(centered.inner(f, g))
    hsic = gg.hsic_test(X, Y, kernel_x=kx, kernel_y=ky, n_permutations=1).statistic
    assert centered.hs_norm() ** 2 == pytest.approx(hsic, abs=1e-7)
    auto = CovarianceOperator.of(X, kernel_x=kx)
    assert auto.hs_norm() ** 2 == pytest.approx((kx.gram(X) ** 2).mean())
    with pytest.raises(SpaceError):
        plain.apply(g)
    with pytest.raises(gg.ModelError, match="equally many"):
        CovarianceOperator.of(X, Y[:5])


# --- conditional operators --------


@pytest.mark.parametrize("approx", ["exact", "cholesky"])
def test_gram_forms_and_feature_forms_agree(approx):
    rng = RNG(5)
    n, reg = 60, 1e-3
    x, y, new = rng.normal(size=(n, 1)), rng.normal(size=n), rng.normal(size=(7, 1))
    k = RBF(0.7)
    K, k_new, H = k.gram(x), k.gram(x, new), np.eye(n) - 1 / n
    centered = 1 / n + H @ np.linalg.solve(H @ K @ H + reg * n * np.eye(n), H @ (k_new - K.mean(1, keepdims=True)))
    plain = np.linalg.solve(K + reg * n * np.eye(n), k_new)
    op = conditional_operator(x, y, kernel_x=k, reg=reg, approx=approx)
    assert np.allclose(op.weights(new), centered.T, atol=1e-6)
    assert np.allclose(op.weights(new).sum(1), 1.0, atol=1e-12)
    assert np.allclose(op.expect(y, new), op.weights(new) @ y, atol=1e-10)
    far = op.expect(y, [[1e6]])
    assert np.allclose(far, op.expect(y, [[-1e6]]))
    raw = conditional_operator(x, y, kernel_x=k, reg=reg, approx=approx, centered=False)
    assert np.allclose(raw.weights(new), plain.T, atol=1e-6)


def test_leave_one_out_in_closed_form_is_refitting():
    rng = RNG(6)
    n, reg = 25, 3e-3
    x, y = rng.normal(size=(n, 2)), rng.normal(size=(n, 1))
    kx, ky = RBF(1.0), RBF(1.5)
    errors = []
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        # the penalty nλ stays what it is with all points
        op = conditional_operator(x[rest], y[rest], kernel_x=kx, kernel_y=ky, reg=reg * n / (n - 1), approx="exact")
        w = op.weights(x[[i]])[0]
        errors.append(1.0 - 2 * w @ ky.gram(y[rest], y[[i]])[:, 0] + w @ ky.gram(y[rest]) @ w)
    found = conditional_operator(x, y, kernel_x=kx, kernel_y=ky, reg="loo", regs=[reg], approx="exact")
    assert found.loo_error == pytest.approx(np.mean(errors), rel=1e-4)


def test_linear_kernel_is_least_squares():
    rng = RNG(7)
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, -2.0, 0.5] + 3.0 + 0.1 * rng.normal(size=80)
    op = conditional_operator(X, y, kernel_x=Linear(), reg=0.0)
    design = np.column_stack([np.ones(80), X])
    new = rng.normal(size=(5, 3))
    expected = np.column_stack([np.ones(5), new]) @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert np.allclose(op.expect(y, new), expected, atol=1e-10)


def test_gaussian_posterior():
    # x ~ N(0, 1) in the data, y = x + N(0, 0.5²); the prior is N(0.7, 0.6²), not the data's
    rng = RNG(8)
    x = rng.normal(0.0, 1.2, size=1500)
    y = x + 0.5 * rng.normal(size=1500)
    op = conditional_operator(x, y, kernel_x=RBF(0.5), kernel_y=RBF(0.5))
    prior = MeanEmbedding.of(rng.normal(0.7, 0.6, size=800), kernel=op.kernel_x)
    marginal = sum_rule(op, prior)
    assert marginal.mean()[0] == pytest.approx(0.7, abs=0.06)
    assert np.sqrt(marginal.var()[0]) == pytest.approx(np.hypot(0.6, 0.5), abs=0.08)
    gain = 0.36 / (0.36 + 0.25)
    for observed in (0.0, 1.0, 1.5):
        posterior = bayes_rule(op, prior, [observed], reg=1e-4)
        assert posterior.weights.sum() == pytest.approx(1.0)
        assert posterior.mean()[0] == pytest.approx(0.7 + gain * (observed - 0.7), abs=0.12)
        assert np.sqrt(posterior.var()[0]) == pytest.approx(np.sqrt(0.36 * (1 - gain)), abs=0.12)
    far = bayes_rule(op, prior, [1e5])  # nothing like it was seen: about the prior, never NaN
    assert far.mean()[0] == pytest.approx(0.7, abs=0.5)


def test_domains():
    rng = RNG(9)
    angle = rng.uniform(0, 2 * np.pi, 400)
    op = conditional_operator(angle, np.cos(angle) + 0.1 * rng.normal(size=400), domain_x="circle")
    assert op.expect(op.Y[:, 0], [0.01, 2 * np.pi + 0.01]) == pytest.approx([1.0, 1.0], abs=0.1)
    for domain in ("positive", "real"):
        assert default_kernel(np.exp(angle), domain).gram(np.exp(angle[:3])).shape == (3, 3)
    directions = rng.normal(size=(50, 3))
    assert conditional_operator(directions, angle[:50], domain_x="sphere", domain_y="circle").weights(
        directions[:2]
    ).shape == (2, 50)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: MeanEmbedding.of([1.0, np.nan]), "finite"),
        (lambda: MeanEmbedding.of([1.0, 2.0], weights=[1.0]), "weights must be 2"),
        (lambda: MeanEmbedding.of([1.0, 2.0]).quantile(1.2), "between 0 and 1"),
        (lambda: MeanEmbedding.of(["a", "b"]).mean(), "needs points that are numbers"),
        (lambda: MeanEmbedding.of([1.0, 2.0]).herd(0), "at least 1"),
        (lambda: MeanEmbedding.of([1.0, 2.0]).expect(lambda x: 1.0), "one value or row"),
        (lambda: conditional_operator([1.0], [2.0]), "at least 2 points"),
        (lambda: conditional_operator([1.0, 2.0], [2.0, 3.0, 4.0]), "equally many"),
        (lambda: conditional_operator([1.0, 2.0], [2.0, 3.0], reg="lo"), "'loo'"),
        (lambda: conditional_operator([1.0, 2.0], [2.0, 3.0], reg=-1.0), "not negative"),
        (lambda: conditional_operator([1.0, 2.0], [2.0, 3.0], approx="nystroem"), "Did you mean 'nystrom'"),
        (lambda: conditional_operator([1.0, 2.0], [2.0, 3.0], domain_x="line"), "Domains:"),
        (lambda: conditional_operator([1.0, 2.0], [2.0, 3.0]).embedding([1.0, 2.0]), "one point"),
        (lambda: conditional_operator([1.0, 2.0], [2.0, 3.0], n_components=0, approx="nystrom"), "n_components"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(gg.GramGraphError, match=words):
        call()


def test_values_show_themselves_in_one_line():
    op = conditional_operator(np.arange(30.0), np.arange(30.0) ** 2, reg=0.1)
    shown = [op, op.embedding([3.0]), CovarianceOperator.of(np.arange(30.0)), gg.hsic_test(range(9), range(9))]
    assert all(len(repr(value)) < 160 and "\n" not in repr(value) for value in shown)


def test_literal_gram_messages_on_a_tree_are_exact_with_the_delta_kernel():
    # star t – s – u with t and u observed: messages to s by Gram matrices, the inverse that of the receiver
    rng = RNG(10)
    n, lam = 400, 1e-9
    s = rng.integers(0, 3, n)
    t, u = (s + rng.integers(0, 2, n)) % 3, (2 * s + rng.integers(0, 2, n)) % 4
    k = Delta()
    K = {name: k.gram(v) for name, v in {"s": s, "t": t, "u": u}.items()}
    ridge = {name: G + lam * n * np.eye(n) for name, G in K.items()}

    def message(source, values, at):
        inner = np.linalg.solve(ridge[source], k.gram(values, np.array([at]))[:, 0])
        return n * np.linalg.solve(ridge["s"], inner)

    w = (K["s"] @ message("t", t, 1)) * (K["s"] @ message("u", u, 2)) / n
    found = np.bincount(s, w, 3)
    p = np.bincount(s, minlength=3) / n
    for values, at in ((t, 1), (u, 2)):
        p = p * np.array([np.mean(values[s == i] == at) for i in range(3)])
    assert np.allclose(found / found.sum(), p / p.sum(), atol=1e-5)
    # the same belief from conditional operators: products of p(observed | s) on the states of s
    like = [conditional_operator(s, v, kernel_x=k, kernel_y=k, reg=0.0) for v in (t, u)]
    values = [op.expect((v == at).astype(float), np.arange(3)) for op, v, at in zip(like, (t, u), (1, 2), strict=True)]
    belief = np.bincount(s, minlength=3) / n * values[0] * values[1]
    assert np.allclose(belief / belief.sum(), p / p.sum(), atol=1e-12)


def test_spaces_must_agree():
    op = conditional_operator([0.0, 1.0, 2.0], [1.0, 2.0, 0.0], kernel_x=RBF(1.0), kernel_y=RBF(3.0))
    other = MeanEmbedding.of([0.0, 1.0], kernel=RBF(2.0))
    for rule in (sum_rule, chain_rule, lambda c, p: bayes_rule(c, p, [1.0])):
        with pytest.raises(SpaceError, match="The prior lives"):
            rule(op, other)
    with pytest.raises(SpaceError, match="one kernel"):
        kernel_filter(op, op, MeanEmbedding.of([0.0], kernel=RBF(1.0)), [1.0])


def turning(rng, T):
    """An angle that turns by 0.3 ± 0.15 a step, seen through its cosine alone."""
    angle = np.cumsum(np.r_[rng.uniform(0, 2 * np.pi), 0.3 + 0.15 * rng.normal(size=T - 1)])
    return angle, np.column_stack([np.cos(angle), np.sin(angle)]), np.cos(angle) + 0.3 * rng.normal(size=T)


def test_filter_learned_from_samples_comes_near_the_exact_one():
    rng = RNG(11)
    _, X, y = turning(rng, 800)
    angle, _, seen = turning(rng, 150)
    k = RBF(0.4)
    move, see = conditional_operator(X[:-1], X[1:], kernel_x=k, kernel_y=k), conditional_operator(X, y, kernel_x=k)
    means = np.array([b.mean() for b in kernel_filter(move, see, MeanEmbedding.of(X, kernel=k), seen)])

    grid = np.arange(360) * 2 * np.pi / 360
    gap = np.angle(np.exp(1j * (grid[None] - grid[:, None] - 0.3)))
    A = np.exp(-0.5 * (gap / 0.15) ** 2)
    A /= A.sum(1, keepdims=True)
    p, exact = np.full(360, 1 / 360), []
    for t, value in enumerate(seen):
        p = (p @ A if t else p) * np.exp(-0.5 * ((value - np.cos(grid)) / 0.3) ** 2)
        p /= p.sum()
        exact.append(p @ np.exp(1j * grid))

    def error(found):
        return np.sqrt(np.mean(np.angle(found * np.exp(-1j * angle))[20:] ** 2))

    best = error(np.array(exact))
    assert best < error(means @ [1.0, 1j]) + 0.05 and error(means @ [1.0, 1j]) < 1.5 * best
