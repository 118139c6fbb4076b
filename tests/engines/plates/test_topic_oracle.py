"""Topic models and mixtures small enough to sum by hand: every engine against the sum over all states."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln

import gramgraph as gg
from gramgraph.engines.plates.counts import lower_counts
from gramgraph.engines.plates.urns import left_to_right
from gramgraph.questions.plate_question import read_plate_question
from tests.portions import seeds

TEXT = """
    alpha* -> theta{{simplex {T}}};  beta* -> phi{{simplex {W}}}
    theta -> z[{T}] -> w[{W}] <- phi
    plate documents: theta, z, w
    plate words in documents: z, w        # ragged: a list of lengths
    plate topics: phi
"""
ORACLE = [[0, 0, 1], [2, 2, 1]]
PAIRS = {("z[0,0]", "z[0,1]"): 0.873551, ("z[0,0]", "z[0,2]"): 0.695985, ("z[0,0]", "z[1,0]"): 0.266867,
         ("z[0,2]", "z[1,2]"): 0.548013}  # fmt: skip


def topics(T: int = 2, W: int = 3, alpha: Any = 0.5, beta: Any = 0.5) -> Any:
    cpds = {"theta": gg.Dirichlet("alpha"), "phi": gg.Dirichlet("beta"), "w": gg.Index("phi", by="z")}
    return gg.BayesianNetwork(TEXT.format(T=T, W=W), cpds=cpds, alpha=alpha, beta=beta)


def log_urn(counts: np.ndarray, alpha: np.ndarray) -> float:
    """log of Γ(A)/Γ(A + n) Π Γ(a + n_k)/Γ(a)."""
    return float(
        gammaln(alpha.sum()) - gammaln((alpha + counts).sum()) + (gammaln(alpha + counts) - gammaln(alpha)).sum()
    )


def by_hand(documents: list[list[int]], T: int, W: int, alpha: Any, beta: Any) -> tuple[float, np.ndarray, np.ndarray]:
    """log p(w), the probabilities of all configurations of topics, and the configurations."""
    a, b = np.broadcast_to(alpha, (T,)).astype(float), np.broadcast_to(beta, (W,)).astype(float)
    owner = np.repeat(np.arange(len(documents)), [len(d) for d in documents])
    words = np.array([w for d in documents for w in d], dtype=int)
    configurations = np.array(list(product(range(T), repeat=len(words))))
    logs = []
    for z in configurations:
        total = sum(log_urn(np.bincount(z[owner == d], minlength=T), a) for d in range(len(documents)))
        total += sum(log_urn(np.bincount(words[z == k], minlength=W), b) for k in range(T))
        logs.append(total)
    top = np.max(logs)
    p = np.exp(np.array(logs) - top)
    return float(top + np.log(p.sum())), p / p.sum(), configurations


def same(answer: Any, pair: tuple[str, str]) -> float:
    return float(np.trace(answer[pair].probabilities))


def test_the_oracle_by_enumeration() -> None:
    model = topics()
    answer = model.query([*PAIRS, "z", "theta"], evidence={"w": ORACLE})
    assert answer.exact and answer.engine == "enumeration" and answer.quality == "exact"
    assert answer.log_evidence == pytest.approx(-7.5795090602, abs=1e-9)
    for pair, p in PAIRS.items():
        assert same(answer, pair) == pytest.approx(p, abs=1e-6)
    assert answer["z"].probabilities.shape == (2, 3, 2)
    assert np.allclose(answer["z"].probabilities, 0.5)  # topics have no names of their own
    assert np.allclose(answer["theta"].mean(), 0.5)


@pytest.mark.parametrize("engine", ["auto", "enumeration"])
def test_the_oracle_unrolled(engine: str) -> None:
    net = topics().unroll(documents=2, words=[3, 3])
    assert type(net) is gg.BayesianNetwork and len(net) == 16
    seen = {f"w[{d},{i}]": w for d, words in enumerate(ORACLE) for i, w in enumerate(words)}
    answer = net.query(list(PAIRS), seen, engine=engine)
    assert answer.exact and answer.log_evidence == pytest.approx(-7.5795090602, abs=1e-9)
    for pair, p in PAIRS.items():
        assert same(answer, pair) == pytest.approx(p, abs=1e-6)


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_the_oracle_by_collapsed_gibbs(seed: int) -> None:
    """Four standard errors for 5 numbers and 3 seeds: a false alarm in a thousand, and the seeds are fixed."""
    answer = topics().query(list(PAIRS), {"w": ORACLE}, engine="collapsed_gibbs", random_state=seed)
    assert not answer.exact and answer.quality == "checked"
    for pair, p in PAIRS.items():
        error = 2.0 * answer.details["standard_error"][pair]  # two cells
        assert 0.0 < error < 0.08
        assert abs(same(answer, pair) - p) < 4.0 * error
    assert abs(answer.log_evidence + 7.5795090602) < 4.0 * answer.details["log_evidence_error"] < 0.1


def random_collection(rng: np.random.Generator) -> tuple[list[list[int]], int, int, Any, Any]:
    T, W = int(rng.integers(2, 4)), int(rng.integers(2, 5))
    lengths = [[2, 3], [1, 0, 3], [4], [2, 2, 1], [1, 1, 1, 1]][rng.integers(5)]
    documents = [rng.integers(W, size=n).tolist() for n in lengths]
    alpha = rng.uniform(0.2, 2.0, size=T) if rng.random() < 0.5 else float(rng.uniform(0.2, 2.0))
    beta = rng.uniform(0.2, 2.0, size=W) if rng.random() < 0.5 else float(rng.uniform(0.2, 2.0))
    return documents, T, W, alpha, beta


@pytest.mark.parametrize("seed", seeds(8, 20))
def test_twenty_more_models(seed: int) -> None:
    """The sum, collapsed Gibbs and importance draws around it, and the variational bound below it."""
    rng = np.random.default_rng(seed)
    documents, T, W, alpha, beta = random_collection(rng)
    log_p, p, z = by_hand(documents, T, W, alpha, beta)
    model = topics(T, W, alpha, beta)
    labels = [f"z[{d},{i}]" for d, words in enumerate(documents) for i in range(len(words))]
    pair = (labels[0], labels[-1])
    seen = {"w": documents}
    exact = model.query([pair, "theta", "phi"], seen, engine="enumeration")
    together = float(p[z[:, 0] == z[:, -1]].sum())
    assert exact.log_evidence == pytest.approx(log_p, abs=1e-10)
    assert same(exact, pair) == pytest.approx(together, abs=1e-12)
    drawn = model.query([pair, "theta"], seen, engine="collapsed_gibbs", random_state=seed, budget=2000)
    error = max(T * drawn.details["standard_error"][pair], 1e-9)
    assert abs(same(drawn, pair) - together) < 5.0 * error
    assert np.allclose(drawn["theta"].mean(), exact["theta"].mean(), atol=0.1)
    log_z, spread = left_to_right(lower_counts(read_plate_question(model, [], seen, None)), 1000, rng)
    assert abs(log_z - log_p) < 5.0 * spread + 1e-9
    field = model.query("z", seen, engine="mean_field", random_state=seed, restarts=1, tol=1e-7)
    bounds = field.details["bounds"]
    assert field.log_evidence == bounds[-1] <= log_p + 1e-10
    assert np.all(np.diff(bounds) >= -1e-10 * (1.0 + np.abs(bounds[1:])))


def test_parameters_have_the_moments_of_their_mixture() -> None:
    documents, T, W, alpha, beta = [[0, 1], [1]], 2, 2, 0.7, 1.3
    _, p, z = by_hand(documents, T, W, alpha, beta)
    counts = np.stack([(z[:, :2] == k).sum(axis=1) for k in range(T)], axis=1) + alpha  # of the first document
    total = counts.sum(axis=1, keepdims=True)
    mean = p @ (counts / total)
    square = p @ (counts * (counts + 1.0) / (total * (total + 1.0)))
    answer = topics(T, W, alpha, beta).query("theta", {"w": documents})
    assert np.allclose(answer["theta"].mean()[0], mean)
    assert np.allclose(answer["theta"].sd()[0] ** 2, square - mean**2)


def test_gaps_and_many_hidden_words() -> None:
    model = topics()
    answer = model.query("w", {"w": [[0, 0, None], [2, None, 1]]})
    assert np.allclose(answer["w"].probabilities.sum(axis=-1), 1.0)
    assert answer["w"].probabilities[0, 2, 0] > answer["w"].probabilities[1, 1, 0]  # more of word 0 beside two of them
    rng = np.random.default_rng(0)
    large = model.query("phi", {"w": rng.integers(3, size=(8, 20)).tolist()}, random_state=0, budget=2000)
    assert large.engine == "collapsed_gibbs" and large["phi"].mean().shape == (2, 3)


def test_a_mixture_of_counts_is_the_mixture_of_their_words() -> None:
    """Multinomial counts and single draws are the same but for the number of orders."""
    words = (
        "pi{simplex 2} -> c[2] -> w[3] <- phi{simplex 3}; plate texts: c, w; plate words in texts: w; plate kinds: phi"
    )
    counts = "pi{simplex 2} -> c[2] -> n{counts 3} <- phi{simplex 3}; plate texts: c, n; plate kinds: phi"
    priors = {"pi": gg.Dirichlet([1.0, 2.0]), "phi": gg.Dirichlet([0.5, 0.5, 0.5])}
    one = gg.BayesianNetwork(words, cpds={**priors, "w": gg.Index("phi", by="c")})
    two = gg.BayesianNetwork(counts, cpds={**priors, "n": gg.distributions.Multinomial(gg.Index("phi", by="c"))})
    a = one.query(("c[0]", "c[1]"), {"w": [[0, 0, 1], [2]]})
    b = two.query(("c[0]", "c[1]"), {"n": [[2, 1, 0], [0, 0, 1]]})
    assert np.allclose(a[("c[0]", "c[1]")].probabilities, b[("c[0]", "c[1]")].probabilities)
    assert b.log_evidence == pytest.approx(a.log_evidence + np.log(3.0))
