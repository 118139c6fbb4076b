"""Mean field below, tree-reweighted propagation above: log Z comes as an interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.engines import get_engine
from gramgraph.exceptions import OptionError
from gramgraph.factors import TableFactor
from gramgraph.models import MarkovNetwork
from gramgraph.models.builders import ising_grid
from gramgraph.testing.engines import compare_answers
from gramgraph.testing.random_models import random_bayesian_network, random_markov_network, random_question
from gramgraph.variables import binary
from tests.portions import examples


def random_ising(seed, rows=3, cols=4, coupling=1.0, field=0.5):
    rng = np.random.default_rng(seed)
    shapes = (rows, cols - 1), (rows - 1, cols)
    return ising_grid(
        rows,
        cols,
        coupling=tuple(coupling * rng.normal(size=shape) for shape in shapes),
        field=field * rng.normal(size=(rows, cols)),
    )


@settings(max_examples=examples(20), deadline=None)
@given(seed=st.integers(0, 10**6), coupling=st.sampled_from([0.1, 0.5, 1.5, 4.0]))
def test_the_interval_of_an_ising_grid_holds_log_z(seed, coupling):
    model = random_ising(seed, coupling=coupling)
    truth = model.log_evidence()
    below = model.query(None, engine="mean_field", random_state=seed)
    above = model.query(None, engine="trw", random_state=seed)
    assert below.log_evidence <= truth + 1e-9 <= above.log_evidence + 2e-9
    assert np.all(np.diff(below.details["bounds"]) >= -1e-9)
    assert below.details["lower_bound"] == below.log_evidence and above.details["upper_bound"] == above.log_evidence


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_interval_holds_for_awkward_models(seed):
    rng = np.random.default_rng(seed)
    model = (
        random_bayesian_network(rng, 7, zeros=0.3, single=0.2, max_parents=3, density=0.7, noisy=0.2)
        if seed % 2
        else random_markov_network(rng, 6, zeros=0.3, single=0.2)
    )
    question = random_question(rng, model, cases=3, joints=0)
    truth = get_engine("enumeration").answer(model, question).log_evidence
    above = get_engine("trw").answer(model, question)
    below = get_engine("mean_field").answer(model, question)
    for case in range(3):
        assert above.log_evidence[case] >= truth[case] - 1e-9 * max(1, abs(truth[case]))
        if np.isfinite(truth[case]):
            if below.details["feasible"][case]:
                assert below.log_evidence[case] <= truth[case] + 1e-9 * max(1, abs(truth[case]))
            for key in above:
                assert np.isfinite(above[key].probabilities[case]).all()
                assert np.isfinite(below[key].probabilities[case]).all()


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10**6), coupling=st.sampled_from([0.2, 0.7, 1.5, 4.0]))
def test_blocks_raise_the_lower_bound_and_never_pass_log_z(seed, coupling):
    model = random_ising(seed, coupling=coupling)
    plain = model.query(None, engine="mean_field", random_state=seed)
    blocks = model.query(None, engine="structured_mean_field", random_state=seed)
    assert plain.log_evidence - 1e-9 <= blocks.log_evidence <= model.log_evidence() + 1e-9
    assert np.all(np.diff(blocks.details["bounds"]) >= -1e-8)


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_blocks_with_zeros_and_many_states(seed):
    rng = np.random.default_rng(seed)
    model = random_markov_network(rng, 6, zeros=0.3, single=0.2)
    question = random_question(rng, model, cases=2, joints=0)
    truth = get_engine("enumeration").answer(model, question).log_evidence
    plain = get_engine("mean_field").answer(model, question)
    blocks = get_engine("structured_mean_field").answer(model, question)
    for case in range(2):
        if np.isfinite(truth[case]) and plain.details["feasible"][case]:
            assert plain.log_evidence[case] - 1e-9 <= blocks.log_evidence[case] <= truth[case] + 1e-9


def test_a_forest_is_one_block_and_its_bound_is_exact():
    model = ising_grid(1, 12, coupling=0.8, field=0.2)
    found = model.query(None, engine="structured_mean_field")
    exact = model.query(None)
    assert found.details["blocks"] == 1
    assert found.log_evidence == pytest.approx(exact.log_evidence, abs=1e-10)
    for name in exact:
        assert np.abs(found[name].probabilities - exact[name].probabilities).max() < 1e-10


def test_blocks_that_are_given():
    model = ising_grid(3, 3, coupling=0.6, field=0.1)
    rows = [[f"x{r}_{c}" for c in range(3)] for r in range(3)]
    found = model.query("x0_0", engine="structured_mean_field", blocks=rows)
    assert found.details["blocks"] == 3
    assert model.query("x0_0", engine="mean_field").log_evidence < found.log_evidence < model.log_evidence()
    with pytest.raises(OptionError, match="block 0 .* has a loop of factors"):
        model.query("x0_0", engine="structured_mean_field", blocks=[["x0_0", "x0_1", "x1_0", "x1_1"]])
    with pytest.raises(OptionError, match="x0_0 is named twice"):
        model.query("x0_0", engine="structured_mean_field", blocks=[["x0_0"], ["x0_0"]])
    with pytest.raises(OptionError, match="list of lists of names"):
        model.query("x0_0", engine="structured_mean_field", blocks=["x0_0"])


def test_the_upper_bound_is_tight_on_trees():
    rng = np.random.default_rng(0)
    model = random_bayesian_network(rng, 7, max_parents=1, zeros=0.2)
    compare_answers(get_engine("trw"), model, random_question(rng, model, cases=3), atol=1e-9)


def test_the_upper_bound_holds_when_messages_have_not_settled():
    model = random_ising(3, coupling=2.0)
    bounds = [model.query(None, engine="trw", max_iter=n, n_trees=30).log_evidence for n in (1, 3, 10, 200)]
    assert min(bounds) >= model.log_evidence() - 1e-9
    assert bounds[-1] < bounds[0]


def test_the_lower_bound_is_tight_without_dependence():
    variables = [binary(f"x{i}") for i in range(4)]
    model = MarkovNetwork(factors=[TableFactor((v,), np.array([1.0, 2.0 + i])) for i, v in enumerate(variables)])
    answer = model.query(None, engine="mean_field")
    assert answer.log_evidence == pytest.approx(np.log(3 * 4 * 5 * 6))
    np.testing.assert_allclose(answer["x1"].probabilities, [0.25, 0.75])


def test_mean_field_of_two_spins_solves_its_equation():
    """m = tanh(J m + h) for two equal spins: the number from iterating the equation itself."""
    answer = ising_grid(1, 2, coupling=0.6, field=0.3).query(None, engine="mean_field", tol=1e-15)
    m = 0.5
    for _ in range(500):
        m = np.tanh(0.6 * m + 0.3)
    np.testing.assert_allclose(answer["x0_0"].probabilities, [(1 - m) / 2, (1 + m) / 2], atol=1e-6)


def test_zeros_and_impossible_evidence():
    net = gg.datasets.asia()
    for engine in ("mean_field", "trw"):
        with pytest.raises(gg.ImpossibleEvidenceError):
            net.query("smoke", {"lung": "yes", "either": "no"}, engine=engine)
    below = net.query("lung", {"xray": "yes"}, engine="mean_field")
    assert below.details["feasible"] and -5.0 < below.log_evidence < net.log_evidence({"xray": "yes"})


def test_deterministic_given_the_seed():
    model = random_ising(1)
    for engine in ("mean_field", "trw"):
        a, b = (model.query(None, engine=engine, random_state=4) for _ in range(2))
        assert a.log_evidence == b.log_evidence and a["x0_0"] == b["x0_0"]


@pytest.mark.parametrize(
    ("engine", "options", "message"),
    [
        ("mean_field", {"n_starts": 0}, "n_starts is a whole number from 1"),
        ("mean_field", {"damping": 0.1}, "'damping' is not an option of engine 'mean_field'"),
        ("trw", {"n_trees": 1.5}, "n_trees is a whole number"),
        ("trw", {"dampin": 0.1}, "Did you mean 'damping'"),
    ],
)
def test_bad_options(engine, options, message):
    with pytest.raises(OptionError, match=message):
        random_ising(0).query(None, engine=engine, **options)


@pytest.mark.parametrize("engine", ["mean_field", "structured_mean_field", "trw"])
def test_zeros_that_leave_no_state_are_told(engine):
    x, y, z = (binary(v) for v in "xyz")
    same, apart = np.eye(2), 1.0 - np.eye(2)
    net = MarkovNetwork(factors=[TableFactor((x, y), same), TableFactor((y, z), same), TableFactor((x, z), apart)])
    with pytest.raises(gg.ImpossibleEvidenceError):
        net.query(None, {"x": "yes"}, engine=engine)
    cases = [{"x": "yes"}, {"x": "no"}]
    assert np.isneginf(net.query(None, cases, engine=engine).log_evidence).all()
