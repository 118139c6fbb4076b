"""Tables from data: counts by hand, priors, EM."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.learn.em import expected_counts
from gramgraph.testing.random_models import random_bayesian_network
from tests.portions import seeds

RAIN = pd.DataFrame({"rain": ["no", "no", "no", "yes"], "wet": ["no", "no", "yes", "yes"]})


def test_shares_by_hand() -> None:
    net = gg.BayesianNetwork("rain -> wet").fit(RAIN)
    assert net.conditional("rain").table().tolist() == [0.75, 0.25]
    np.testing.assert_allclose(net.conditional("wet").table(), [[2 / 3, 1 / 3], [0, 1]])
    assert net.fit_report is None


@pytest.mark.parametrize(
    ("prior", "rain", "wet"),
    [
        ("k2", [4 / 6, 2 / 6], [[3 / 5, 2 / 5], [1 / 3, 2 / 3]]),
        (0.5, [3.5 / 5, 1.5 / 5], [[2.5 / 4, 1.5 / 4], [0.5 / 2, 1.5 / 2]]),
        ({"wet": [[1, 3], [0, 2]]}, [0.75, 0.25], [[3 / 7, 4 / 7], [0, 1]]),
    ],
)
def test_pseudo_counts_by_hand(prior, rain, wet) -> None:
    net = gg.BayesianNetwork("rain -> wet").fit(RAIN, prior=prior)
    np.testing.assert_allclose(net.conditional("rain").table(), rain)
    np.testing.assert_allclose(net.conditional("wet").table(), wet)


def test_bdeu_spreads_the_equivalent_sample() -> None:
    net = gg.BayesianNetwork("rain -> wet").fit(RAIN, prior="bdeu", equivalent_sample_size=8)
    np.testing.assert_allclose(net.conditional("rain").table(), [7 / 12, 5 / 12])
    np.testing.assert_allclose(net.conditional("wet").table(), [[4 / 7, 3 / 7], [2 / 5, 3 / 5]])


def test_weights_count_rows_more_than_once() -> None:
    weighted = gg.BayesianNetwork("rain -> wet").fit(RAIN.assign(w=[1, 2, 1, 3]), weights="w")
    repeated = gg.BayesianNetwork("rain -> wet").fit(RAIN.loc[[0, 1, 1, 2, 3, 3, 3]])
    assert weighted == repeated


def test_a_row_that_never_occurs_is_uniform() -> None:
    net = gg.BayesianNetwork("a -> b", states={"a": ("x", "y", "z")}).fit(
        pd.DataFrame({"a": ["x", "y"], "b": ["no", "yes"]})
    )
    assert net.conditional("b").table()[2].tolist() == [0.5, 0.5]


def test_states_come_from_the_data_where_none_were_named() -> None:
    frame = pd.DataFrame({"sky": ["sun", "rain", "snow"], "wet": [False, True, True]})
    net = gg.BayesianNetwork("sky -> wet").fit(frame)
    assert net.states("sky") == ("rain", "snow", "sun")
    assert net.states("wet") == ("no", "yes"), "truth values read as no and yes"
    with pytest.raises(gg.StateError, match="row 2"):
        gg.BayesianNetwork("sky{rain|sun} -> wet").fit(frame)


def test_a_large_sample_gives_the_network_back() -> None:
    net = gg.datasets.asia()
    fitted = net.fit(net.sample(200_000, random_state=0))
    for v in net.variables:
        if v != "either":
            np.testing.assert_allclose(fitted.conditional(v).table(), net.conditional(v).table(), atol=0.06)
    assert fitted.variables == net.variables and fitted.edges == net.edges


def test_expected_counts_equal_enumeration() -> None:
    rng = np.random.default_rng(0)
    net = random_bayesian_network(rng, 5)
    codes = np.array([[var.index(x) for var, x in zip(net.vars, row, strict=True)] for row in
                      net.sample(40, random_state=1).itertuples(index=False)])  # fmt: skip
    codes[rng.random(codes.shape) < 0.5] = -1
    weights = rng.random(40) + 0.5
    counts, log_likelihood = expected_counts(net, codes, weights)
    names = net.variables
    total = 0.0
    for v, name in enumerate(names):
        family = (*net.parents(name), name)
        expected = np.zeros(counts[v].shape)
        for row, weight in zip(codes, weights, strict=True):
            case = {n: net.states(n)[c] for n, c in zip(names, row, strict=True) if c >= 0}
            answer = net.query([family], case, engine="enumeration")
            expected += weight * answer[family].probabilities
            total += weight * answer.log_evidence if v == 0 else 0.0
        np.testing.assert_allclose(counts[v], expected, atol=1e-10)
    assert log_likelihood == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("seed", seeds(18, 50))
def test_em_never_goes_down(seed) -> None:
    rng = np.random.default_rng(seed)
    net = random_bayesian_network(rng, 5, zeros=0.1)
    frame = net.sample(80, random_state=seed).astype(object)
    frame = frame.mask(rng.random(frame.shape) < 0.3)
    if seed % 3 == 0:
        frame = frame.drop(columns=net.variables[1])  # a hidden variable
    fitted = net.fit(frame, prior=None if seed % 2 else "bdeu", max_iter=12, tol=0.0, random_state=seed)
    trace = np.array(fitted.fit_report.trace)
    assert len(trace) >= 2
    assert (np.diff(trace) >= -1e-8 * abs(trace[0])).all()
    if seed % 2:  # without a prior the objective is the likelihood, which the last step has raised once more
        assert float(np.sum(fitted.log_evidence(frame))) >= fitted.fit_report.log_likelihood - 1e-8


def test_em_without_gaps_is_counting() -> None:
    net = gg.datasets.asia()
    frame = net.sample(500, random_state=0)
    from gramgraph.learn.em import fit_em
    from gramgraph.learn.parameters import pseudo_counts, read_cases

    table = read_cases(net, frame)
    em, _ = fit_em(net, table, pseudo_counts(net, table.variables, "k2", 1.0), max_iter=3)
    for v in net.variables:
        np.testing.assert_allclose(
            em.conditional(v).table(), net.fit(frame, prior="k2").conditional(v).table(), atol=1e-12
        )


def test_gaps_at_random_cost_little() -> None:
    net = gg.datasets.asia()
    frame = net.sample(20_000, random_state=0).astype(object)
    gaps = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.2)

    def error(fitted) -> float:
        shown = ("lung", "bronc", "dysp", "smoke")
        return float(
            np.mean([np.abs(fitted.conditional(v).table() - net.conditional(v).table()).mean() for v in shown])
        )

    em = net.fit(gaps, tol=1e-6)
    assert em.fit_report.converged
    assert error(em) < error(net.fit(gaps.dropna()))


def test_restarts_keep_the_best() -> None:
    frame = gg.datasets.sprinkler().sample(300, random_state=0).drop(columns="cloudy")
    net = gg.datasets.sprinkler()
    one = net.fit(frame, random_state=0, max_iter=20)
    many = net.fit(frame, random_state=0, max_iter=20, restarts=4)
    assert many.fit_report.trace[-1] >= one.fit_report.trace[-1]
    assert net.fit(frame, random_state=0, max_iter=20) == one


def test_frames_of_other_libraries() -> None:
    polars = pytest.importorskip("polars")
    net = gg.BayesianNetwork("rain -> wet")
    assert net.fit(polars.DataFrame(RAIN.to_dict("list"))) == net.fit(RAIN)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"prior": "bde"}, gg.OptionError, "prior is None"),
        ({"prior": -1}, gg.OptionError, "prior is None"),
        ({"prior": {"wet": [1, 2, 3]}}, gg.OptionError, "shape"),
        ({"prior": {"wett": 1}}, gg.VariableError, "Did you mean 'wet'"),
        ({"equivalent_sample_size": 0}, gg.OptionError, "positive"),
        ({"weights": [1.0]}, gg.VariableError, "one weight for each"),
        ({"data": RAIN[:0]}, gg.VariableError, "no rows"),
        ({"data": RAIN.rename(columns={"rain": "Rain", "wet": "Wet"})}, gg.VariableError, "no column"),
        ({"data": RAIN.drop(columns="wet"), "max_iter": 0}, gg.OptionError, "max_iter"),
        ({"data": RAIN.drop(columns="wet"), "restarts": 0}, gg.OptionError, "restarts"),
    ],
)
def test_mistakes_are_named(change, error, words) -> None:
    options = dict(change)
    data = options.pop("data", RAIN)
    with pytest.raises(error, match=words):
        gg.BayesianNetwork("rain -> wet").fit(data, **options)


def test_columns_beside_the_network_and_an_array_of_weights() -> None:
    net = gg.BayesianNetwork("rain -> wet")
    assert net.fit(RAIN.assign(id="1"), weights=np.ones(4)) == net.fit(RAIN)


def test_a_structure_learns_from_a_file(tmp_path) -> None:
    path = tmp_path / "rain.csv"
    RAIN.to_csv(path, index=False)
    assert gg.BayesianNetwork("rain -> wet").fit(path) == gg.BayesianNetwork("rain -> wet").fit(RAIN)
