"""Dynamic networks: the interface algorithm against the unrolled network, streams, learning."""

import json

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError
from gramgraph.sequences import CategoricalHMM, DynamicBayesianNetwork

TEMPLATES = (
    "x' -> x -> y",
    "a' -> a; b' -> b; a -> b -> z; a -> z",
    "a' -> a[3]; a' -> b; b' -> b -> u; a -> u[4]; c -> u; w' -> w; u -> w",
)


def random_network(template: str, seed: int) -> DynamicBayesianNetwork:
    rng = np.random.default_rng(seed)
    step = gg.BayesianNetwork(template)
    states = {name: step.states(name.rstrip("'")) for name in step.variables}
    step = gg.BayesianNetwork(template, states=states)
    own = [name for name in step.variables if not name.endswith("'")]

    def table(parents, name):
        shape = [step.var(p).size for p in (*parents, name)]
        return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1]).reshape(shape)

    cpds = {name: table(step.parents(name), name) for name in own}
    inner = {name: [p for p in step.parents(name) if not p.endswith("'")] for name in own}
    first = {name: table(inner[name], name) for name in own if len(inner[name]) < len(step.parents(name))}
    return DynamicBayesianNetwork(template, cpds, first=first, states=states)


def rows_of(net: DynamicBayesianNetwork, T: int, seed: int, share: float) -> pd.DataFrame:
    """Rows with some of the cells hidden."""
    rows = net.sample(T, random_state=seed)
    hide = np.random.default_rng(seed).random(rows.shape) < share
    return rows.astype(object).mask(hide, None)


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("share", [0.4, 0.8, 1.0])
def test_the_interface_is_the_unrolled_network(template, share) -> None:
    net = random_network(template, 3)
    rows = rows_of(net, 6, 1, share)
    flat = net.unroll(6)
    seen = {f"{name}_{t}": rows[name][t] for t in range(6) for name in net.variables if rows[name][t] is not None}
    smooth, filtered = net.smooth(rows), net.filter(rows)
    everything = flat.query([f"{name}_{t}" for name in net.variables for t in range(6)], seen)
    for name in net.variables:
        for t in range(6):
            want = everything[f"{name}_{t}"].probabilities
            np.testing.assert_allclose(smooth[name].probabilities[t], want, atol=1e-12)
            now = {key: value for key, value in seen.items() if int(key.rsplit("_", 1)[1]) <= t}
            want = flat.query([f"{name}_{t}"], now)[f"{name}_{t}"].probabilities
            np.testing.assert_allclose(filtered[name].probabilities[t], want, atol=1e-12)
    assert net.log_likelihood(rows) == pytest.approx(flat.log_evidence(seen), abs=1e-10)
    assert smooth.log_evidence.sum() == pytest.approx(flat.log_evidence(seen), abs=1e-10)
    best, log = net.decode(rows)
    assert log == pytest.approx(flat.map_query(seen).log_prob, abs=1e-10)
    assert all(value is None or best[name][t] == value for name in rows for t, value in enumerate(rows[name]))


def test_predictions_are_those_of_the_unrolled_network() -> None:
    net = random_network(TEMPLATES[1], 5)
    rows = rows_of(net, 4, 2, 0.5)
    seen = {f"{name}_{t}": rows[name][t] for t in range(4) for name in net.variables if rows[name][t] is not None}
    ahead = net.predict(rows, 3)
    for k in range(3):
        want = net.unroll(7).query([f"z_{4 + k}"], seen)[f"z_{4 + k}"].probabilities
        np.testing.assert_allclose(ahead["z"].probabilities[k], want, atol=1e-12)


def test_a_hidden_markov_model_is_a_small_dynamic_network() -> None:
    start, A, B = [0.6, 0.4], [[0.7, 0.3], [0.2, 0.8]], [[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]]
    hmm = CategoricalHMM.from_parameters(start, A, B)
    net = DynamicBayesianNetwork("x' -> x[2] -> y[3]", {"x": A, "y": B}, first={"x": start})
    y = np.random.default_rng(0).integers(0, 3, size=5000)
    found = net.smooth(pd.DataFrame({"y": y.astype(str)}))
    np.testing.assert_allclose(found["x"].probabilities, hmm.predict_proba(y), atol=1e-10)
    assert found.log_evidence.sum() == pytest.approx(hmm.score(y), rel=1e-12)


def test_a_stream_is_the_filter_and_goes_on_bit_by_bit() -> None:
    net = random_network(TEMPLATES[2], 9)
    rows = rows_of(net, 8, 4, 0.6)
    dicts = [{k: v for k, v in row.items() if v is not None} for row in rows.to_dict("records")]
    filtered, stream = net.filter(rows), net.stream()
    for t, row in enumerate(dicts):
        answer = stream.update(row)
        for name in net.variables:
            np.testing.assert_allclose(answer[name].probabilities, filtered[name].probabilities[t], atol=1e-12)
        assert answer.log_evidence == pytest.approx(filtered.log_evidence[t], abs=1e-12)
        if t == 3:
            resumed = net.stream(state=json.loads(json.dumps(stream.state)))
        if t > 3:
            assert (resumed.update(row)["u"].probabilities == answer["u"].probabilities).all()
    assert stream.log_likelihood == resumed.log_likelihood == pytest.approx(net.log_likelihood(rows))
    with pytest.raises(ModelError, match="state belongs to"):
        random_network(TEMPLATES[0], 1).stream(state=stream.state)


@pytest.mark.parametrize("seed", range(6))
def test_em_never_falls_and_counting_is_one_pass(seed) -> None:
    truth = random_network(TEMPLATES[seed % 2], seed)
    rows = truth.sample(20, 15, random_state=seed)
    hidden = rows.astype(object).mask(np.random.default_rng(seed).random(rows.shape) < 0.3, None)
    hidden["sequence"] = rows["sequence"]
    start = random_network(TEMPLATES[seed % 2], seed + 100)
    learned = start.fit(hidden, by="sequence", max_iter=15, tol=0.0)
    assert len(learned.history) > 3 and (np.diff(learned.history) > -1e-9).all()
    assert learned.log_likelihood(hidden, by="sequence") > start.log_likelihood(hidden, by="sequence")
    counted = start.fit(rows, by="sequence")
    assert len(counted.history) == 1
    name = truth.interface[0]
    parts = [part.reset_index(drop=True) for _, part in rows.groupby("sequence")]
    pairs = pd.concat([pd.DataFrame({"old": part[name][:-1], "new": part[name].shift(-1)[:-1]}) for part in parts])
    want = pd.crosstab(pairs["old"], pairs["new"], normalize="index").to_numpy()
    if truth.step.parents(name) == (name + "'",):
        np.testing.assert_allclose(counted.step.conditional(name).table(), want, atol=1e-12)


def test_learning_finds_the_truth_behind_gaps() -> None:
    truth = DynamicBayesianNetwork(
        "x' -> x -> y", {"x": [[0.9, 0.1], [0.3, 0.7]], "y": [[0.8, 0.2], [0.1, 0.9]]}, first={"x": [0.5, 0.5]}
    )
    rows = truth.sample(40, 300, random_state=0)
    gaps = rows.astype(object).mask(np.random.default_rng(1).random(rows.shape) < 0.3, None)
    gaps["sequence"] = rows["sequence"]
    learned = DynamicBayesianNetwork("x' -> x{no|yes} -> y{no|yes}").fit(gaps, by="sequence", random_state=0)
    for name in "xy":
        gap = learned.step.conditional(name).table() - truth.step.conditional(name).table()
        assert np.abs(gap).max() < 0.04
    assert (learned.first.conditional("y").table() == learned.step.conditional("y").table()).all()


def test_real_valued_templates_unroll() -> None:
    walk = DynamicBayesianNetwork(
        "x' -> x{real} -> y{real}",
        {"x": {"coefficients": 0.8, "sd": 1.0}, "y": {"coefficients": 1.0, "sd": 0.5}},
        first={"x": (0.0, 1.0)},
    )
    exact = gg.sequences.KalmanFilter(0.8, 1.0, 1.0, 0.25, 0.0, 1.0)
    y = [0.3, -0.2, 1.0]
    answer = walk.unroll(3).query(evidence={f"y_{t}": value for t, value in enumerate(y)})
    means = [answer[f"x_{t}"].mean() for t in range(3)]
    np.testing.assert_allclose(np.ravel(means), exact.smooth(y).means.ravel(), atol=1e-9)
    with pytest.raises(ModelError, match="real-valued: ask unroll"):
        walk.filter([{"y": 1.0}])


def test_bad_templates_and_rows_are_named() -> None:
    with pytest.raises(ModelError, match="no variable depends on the slice before"):
        DynamicBayesianNetwork("x -> y")
    with pytest.raises(ModelError, match="there is no q"):
        DynamicBayesianNetwork("q' -> x")
    with pytest.raises(ModelError, match="cannot have parents"):
        DynamicBayesianNetwork("x -> x'; x' -> y")
    with pytest.raises(ModelError, match="first names 'z'"):
        DynamicBayesianNetwork("x' -> x", {"x": [[0.9, 0.1], [0.2, 0.8]]}, first={"z": [0.5, 0.5]})
    net = DynamicBayesianNetwork("x' -> x", {"x": [[1.0, 0.0], [0.0, 1.0]]}, first={"x": [0.5, 0.5]})
    with pytest.raises(ImpossibleEvidenceError, match="row 2 has probability zero.*x = yes cannot follow"):
        net.filter([{"x": "no"}, {}, {"x": "yes"}])
    stream = net.stream()
    stream.update({"x": "no"})
    with pytest.raises(ImpossibleEvidenceError, match="belief stays"):
        stream.update({"x": "yes"})
    assert stream.update({"x": "no"})["x"].prob("no") == 1.0
    with pytest.raises(ModelError, match="there are no rows"):
        net.filter(pd.DataFrame({"x": []}))
    with pytest.raises(ModelError, match="one row"):
        net.filter({"x": "no"})
    with pytest.raises(gg.exceptions.StateError):
        net.filter([{"x": "perhaps"}])
    with pytest.raises(ModelError, match="no column 'id'"):
        net.fit(pd.DataFrame({"x": ["no"]}), by="id")


def test_every_kind_of_table_of_sequences_gives_the_same_fit():
    pl = pytest.importorskip("polars")
    truth = DynamicBayesianNetwork("x' -> x", {"x": [[0.9, 0.1], [0.4, 0.6]]})
    rows = truth.sample(6, 4, random_state=0)
    net = DynamicBayesianNetwork("x' -> x{no|yes}")
    wanted = net.fit(rows, by="sequence")
    for data in (pl.from_dict(rows.to_dict("list")), rows.to_dict("list"), rows.to_dict("records")):
        assert net.fit(data, by="sequence") == wanted
    with pytest.raises(gg.VariableError, match="'xx' is not a variable.*Did you mean 'x'"):
        net.fit(rows.rename(columns={"x": "xx"}), by="sequence")
