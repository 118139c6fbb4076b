"""Every sampler: right within its own errors, reproducible, clear about what it cannot do."""

from __future__ import annotations

import sys
import types
import warnings

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.engines import Run, get_engine
from gramgraph.engines.sampling.chains import MixingWarning
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError, OptionError
from gramgraph.factors import TableFactor
from gramgraph.models import MarkovNetwork
from gramgraph.models.builders import ising_grid, potts_grid
from gramgraph.testing.random_models import random_bayesian_network, random_markov_network, random_question
from gramgraph.variables import binary, discrete

CHAINS = ("gibbs", "colored_gibbs", "block_gibbs", "metropolis", "tempering", "swendsen_wang")
DIRECTED = ("likelihood_weighting", "importance", "rejection")
SAMPLERS = (*CHAINS, "annealed", *DIRECTED)
#: Those whose coverage `make test` looks at; the loops of the others would have to be compiled for it.
QUICK = ("gibbs", "colored_gibbs", "metropolis", "likelihood_weighting", "rejection")
#: Draws for one question of the coverage tests.
DRAWS = {"annealed": 200, "tempering": 500, "block_gibbs": 2000, "metropolis": 4000, "rejection": 8000}


def random_case(engine, seed, *, directed):
    """A model and a question with zero-free likelihoods that the engine can answer."""
    rng = np.random.default_rng([seed, directed])
    if engine == "swendsen_wang":
        couplings = abs(0.6 * rng.normal(size=(2, 2))), abs(0.6 * rng.normal(size=(1, 3)))
        model = ising_grid(2, 3, coupling=couplings, field=0.5 * rng.normal(size=(2, 3)))
    elif directed:
        model = random_bayesian_network(rng, 5, max_parents=2)
    else:
        model = random_markov_network(rng, 5, log_range=0.5)
    question = random_question(rng, model, cases=None, likelihood=0.2, joints=1)
    weights = tuple((v, w + 0.1) for v, w in question.likelihoods)
    return model, type(question)(question.targets, question.joints, question.observed, question.codes, weights)


def deviations(engine, seeds, *, directed, part=1):
    """(estimate − truth) / standard error of up to two targets of every question; 1 / `part` of the draws are made."""
    out = []
    for seed in seeds:
        model, question = random_case(engine, seed, directed=directed)
        truth = get_engine("enumeration").answer(model, question)
        try:
            run = Run(random_state=seed, draws=DRAWS.get(engine, 4000) // part)
            found = get_engine(engine).answer(model, question, run)
        except OptionError:  # rejection: no draw agrees
            continue
        mine = []
        for key in truth:
            p, q, error = found[key].probabilities, truth[key].probabilities, found.details["standard_error"][key]
            assert p.shape == q.shape == error.shape
            if 0.02 < q.flat[0] < 0.98:
                mine.append((p.flat[0] - q.flat[0]) / error.flat[0])
        out += mine[:2]
    return np.array(out)


@pytest.mark.parametrize("engine", QUICK)
def test_two_standard_errors_cover_the_truth_in_a_few_questions(engine):
    """About 60 intervals at 95 %: below 84 % comes by chance once in 1,500."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixingWarning)
        z = deviations(engine, range(40), directed=engine in DIRECTED, part=2)
    assert len(z) > 40
    assert np.mean(np.abs(z) <= 2) >= 0.84
    assert abs(np.mean(z)) < 4 * max(z.std(), 1) / np.sqrt(len(z))


@pytest.mark.slow
@pytest.mark.parametrize("engine", SAMPLERS)
def test_two_standard_errors_cover_the_truth(engine):
    """93–97 % of 600 intervals or more; an engine that holds 95.4 % falls out by chance once in 20 sets of seeds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixingWarning)
        kinds = (True,) if engine in DIRECTED or engine == "swendsen_wang" else (True, False)
        z = np.concatenate([deviations(engine, range(400 // len(kinds)), directed=kind) for kind in kinds])
    assert len(z) >= 600
    assert 0.93 <= np.mean(np.abs(z) <= 2) <= 0.97


# ------------------------------------------------------------------------------------------------- diagnostics


def test_answers_carry_their_diagnostics():
    model = ising_grid(3, 3, coupling=0.3, field=0.1)
    for engine in CHAINS:
        answer = model.query(["x0_0", ("x0_0", "x1_1")], {"x2_2": "+1"}, engine=engine, random_state=0, budget=800)
        details = answer.details
        assert details["draws"] >= 800 and details["n_chains"] == 4 and details["burn_in"] > 0
        assert details["max_r_hat"] < 1.2 and details["min_effective_draws"] > 20
        for key in ("standard_error", "r_hat", "effective_draws"):
            assert details[key]["x0_0"].shape == (2,) and details[key][("x0_0", "x1_1")].shape == (2, 2)


@pytest.mark.parametrize("engine", CHAINS)
def test_threads_and_seeds(engine):
    model = ising_grid(3, 3, coupling=0.3)
    one, two, other = (
        model.query(("x1_1", "x0_2"), engine=engine, random_state=s, budget=200, n_jobs=j)[("x1_1", "x0_2")]
        for s, j in ((1, 1), (1, 2), (2, 1))
    )
    assert one == two and one != other


@pytest.mark.parametrize("options", [{}, {"burn_in": 3}, {"error": 0.02}])
def test_threads_keep_the_same_draws_in_the_same_order(options):
    one, two = (
        ising_grid(2, 2, coupling=0.3).query(
            ["x0_0", "x1_1"], engine="gibbs", keep=True, budget=300, random_state=0, n_jobs=j, **options
        )
        for j in (1, 2)
    )
    assert one.details["draws"] == two.details["draws"]
    for name in ("x0_0", "x1_1"):
        np.testing.assert_array_equal(one.details["chains"][name], two.details["chains"][name])
        np.testing.assert_array_equal(one.details["standard_error"][name], two.details["standard_error"][name])


@pytest.mark.parametrize("engine", ["gibbs", "metropolis", "colored_gibbs"])
def test_r_hat_flags_a_stuck_chain(engine):
    x, y = binary("x"), binary("y")
    model = MarkovNetwork(factors=[TableFactor((x, y), np.array([[0.5, 0.0], [0.0, 0.5]]))])
    with pytest.warns(MixingWarning, match="the chains disagree"):
        answer = model.query("x", engine=engine, random_state=1, n_chains=8, budget=800)
    assert answer.details["max_r_hat"] > 1.1 and answer.details["standard_error"]["x"][0] > 0.1


@pytest.mark.parametrize("engine", ["block_gibbs", "tempering", "swendsen_wang"])
def test_moves_of_more_than_one_variable_are_not_stuck(engine):
    x, y = binary("x"), binary("y")
    model = MarkovNetwork(factors=[TableFactor((x, y), np.array([[0.5, 0.0], [0.0, 0.5]]))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixingWarning)
        answer = model.query("x", engine=engine, random_state=1, budget=2000)
    assert answer.details["max_r_hat"] < 1.1
    assert abs(answer["x"].probabilities[0] - 0.5) < 4.5 * answer.details["standard_error"]["x"][0]


def test_burn_in_by_rule_forgets_a_bad_start():
    """From any start a magnetized grid takes a while; what is dropped is told."""
    model = ising_grid(20, 20, coupling=0.3, field=0.2)
    by_rule = model.query("x0_0", engine="gibbs", random_state=0, budget=400)
    fixed = model.query("x0_0", engine="gibbs", random_state=0, budget=400, burn_in=7)
    assert by_rule.details["burn_in"] >= 16 and fixed.details["burn_in"] == 7
    assert fixed.details["draws"] == 400


@pytest.mark.parametrize("engine", ["gibbs", "swendsen_wang"])
def test_draws_go_on_until_the_error_is_reached(engine):
    model = ising_grid(4, 4, coupling=0.3)
    rough = model.query("x1_1", engine=engine, random_state=0, budget=200)
    fine = model.query("x1_1", engine=engine, random_state=0, budget=200, error=0.01)
    assert rough.details["standard_error"]["x1_1"].max() > 0.01
    assert fine.details["standard_error"]["x1_1"].max() <= 0.01
    with pytest.warns(MixingWarning, match="a larger budget is needed"):
        model.query("x1_1", engine=engine, random_state=0, budget=20, error=1e-5)


def test_weighted_draws_go_on_until_the_error_is_reached():
    net = gg.datasets.asia()
    for engine in DIRECTED:
        answer = net.query("lung", {"smoke": "yes"}, engine=engine, random_state=0, budget=500, error=0.004)
        assert answer.details["draws"] > 500 and answer.details["standard_error"]["lung"].max() <= 0.004


@pytest.mark.parametrize("engine", SAMPLERS)
def test_a_time_is_kept(engine):
    directed = engine in DIRECTED
    model = gg.datasets.asia() if directed else ising_grid(3, 3, coupling=0.2)
    target = "lung" if directed else "x0_0"
    answer = model.query(target, engine=engine, budget="100ms", random_state=0)  # else it draws for ever
    assert answer.details["draws"] > 0


def test_an_interrupt_gives_what_was_drawn(monkeypatch):
    from gramgraph.engines.sampling.gibbs import GibbsMoves

    calls, real = [], GibbsMoves.run

    def run(self, *args):
        calls.append(1)
        if len(calls) == 30:
            raise KeyboardInterrupt
        real(self, *args)

    monkeypatch.setattr(GibbsMoves, "run", run)
    answer = ising_grid(2, 2, coupling=0.2).query("x0_0", engine="gibbs", random_state=0, budget=4000)
    assert 0 < answer.details["draws"] < 4000


# ------------------------------------------------------------------------------------------------- each kind


def test_colors_and_blocks_of_a_grid():
    model = ising_grid(6, 7, coupling=0.3)
    colored = model.query("x0_0", engine="colored_gibbs", random_state=0, budget=100)
    blocks = model.query("x0_0", engine="block_gibbs", random_state=0, budget=100)
    assert colored.details["n_colors"] == 2 and blocks.details["n_blocks"] in (2, 3)


def test_a_tree_is_one_block_and_draws_are_independent():
    chain = gg.models.markov_chain(300, 2, initial=[0.5, 0.5], transition=[[0.99, 0.01], [0.01, 0.99]])
    answer = chain.query("x150", engine="block_gibbs", random_state=0, budget=1000)
    assert answer.details["n_blocks"] == 1
    assert answer.details["min_effective_draws"] > 400


def test_swendsen_wang_refuses_what_it_is_not_for():
    a, b, c = (discrete(v, 3) for v in "abc")
    lopsided = TableFactor((a, b), np.arange(1.0, 10.0).reshape(3, 3))
    triple = TableFactor((a, b, c), np.ones((3, 3, 3)))
    two = TableFactor((a, binary("d")), np.ones((3, 2)))
    for factor, message in ((lopsided, "only ask"), (triple, "more than two"), (two, "different numbers")):
        with pytest.raises(ModelError, match=message):
            MarkovNetwork(factors=[factor]).query("a", engine="swendsen_wang")
    with pytest.raises(ModelError, match="repelling"):
        ising_grid(2, 2, coupling=-0.5).query(None, engine="swendsen_wang")
    with pytest.raises(ModelError, match="repelling"):  # as one case does, not NaN
        ising_grid(2, 2, coupling=-0.5).query(None, [{}, {"x0_0": "+1"}], engine="swendsen_wang")


def test_swendsen_wang_on_a_potts_model_with_fields():
    field = np.random.default_rng(0).normal(size=(3, 3, 3))
    model = potts_grid(3, 3, 3, coupling=1.0, field=field)
    found = model.query(None, {"x2_2": "1"}, engine="swendsen_wang", random_state=0, budget=8000)
    truth = model.query(None, {"x2_2": "1"})
    for name in truth:
        error = found.details["standard_error"][name]
        assert (np.abs(found[name].probabilities - truth[name].probabilities) < 5 * error + 1e-3).all()


def test_proposals_of_the_user():
    net = gg.datasets.asia()

    def rising(state, rng):  # an asymmetric proposal: its ratio must be used
        v = int(rng.integers(len(state)))
        up = rng.random() < 0.7
        if up == bool(state[v]):
            return state, 0.0
        state[v] = int(up)
        return state, np.log(0.3 / 0.7) if up else np.log(0.7 / 0.3)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixingWarning)
        found = net.query("bronc", {"smoke": "yes", "either": "yes", "lung": "yes", "tub": "no"}, engine="metropolis",
                          proposal=rising, steps=8, budget=4000, random_state=0)  # fmt: skip
    assert abs(found["bronc"].prob("yes") - 0.6) < 5 * found.details["standard_error"]["bronc"].max()
    for proposal, message in (
        (3, "proposal is a function"),
        (lambda s, r: list(s), "returns"),
        (lambda s, r: (s[:2], 0.0), "one for each variable"),
        (lambda s, r: (s + 5, 0.0), "it has 2 states"),
        (lambda s, r: (s, np.nan), "not a number"),
    ):
        with pytest.raises(OptionError, match=message):
            net.query("lung", engine="metropolis", proposal=proposal, budget=100)


def test_log_z_by_annealing():
    model = ising_grid(5, 5, coupling=0.5, field=0.1)
    answer = model.query("x0_0", {"x4_4": "-1"}, engine="annealed", random_state=0)
    error = answer.details["log_evidence_error"]
    assert 0 < error < 0.2
    assert abs(answer.log_evidence - model.log_evidence({"x4_4": "-1"})) < 4 * error
    net, seen = gg.datasets.asia(), {"xray": "yes", "dysp": "no"}
    answer = net.query("lung", seen, engine="annealed", random_state=0)
    assert abs(answer.log_evidence - net.log_evidence(seen)) < 4 * answer.details["log_evidence_error"]


def test_proposals_from_beliefs_help_with_unlikely_evidence():
    n = 12
    cpds = {"c": 0.01, **{f"x{i}": {"no": 0.05, "yes": 0.9} for i in range(n)}}
    net = gg.BayesianNetwork("; ".join(f"c -> x{i}" for i in range(n)), cpds=cpds)
    seen = {f"x{i}": "yes" for i in range(0, n, 2)}
    plain, bp, adaptive = (
        net.query("c", seen, engine="importance", proposal=how, random_state=0, budget=4000)
        for how in ("prior", "bp", "adaptive")
    )
    assert bp.details["effective_draws"] > 20 * plain.details["effective_draws"]
    assert adaptive.details["effective_draws"] > 20 * plain.details["effective_draws"]
    assert abs(bp.log_evidence - net.log_evidence(seen)) < 5 * bp.details["log_evidence_error"] + 1e-3


# ------------------------------------------------------------------------------------------------- hard cases


@pytest.mark.parametrize("engine", SAMPLERS)
def test_impossible_evidence_is_told(engine):
    if engine == "swendsen_wang":
        x, y = binary("x"), binary("y")
        model = MarkovNetwork(factors=[TableFactor((x, y), np.array([[1.0, 0.0], [0.0, 1.0]]))])
        seen, target = {"x": "no", "y": "yes"}, "x"
    elif engine in DIRECTED:
        model, seen, target = gg.datasets.asia(), {"lung": "yes", "either": "no"}, "smoke"
    else:
        model, seen, target = gg.datasets.asia(), {"lung": "yes", "either": "no"}, "smoke"
    with pytest.raises((ImpossibleEvidenceError, OptionError), match="impossible|zero|cannot"):
        model.query(target, seen, engine=engine, budget=400, random_state=0)
    many = model.query([target], [seen, {}], engine=engine, budget=400, random_state=0)
    p = many[target].probabilities
    assert np.isnan(p[0]).all() and np.isfinite(p[1]).all()


@pytest.mark.filterwarnings("ignore::gramgraph.engines.sampling.chains.MixingWarning")
@pytest.mark.parametrize("engine", SAMPLERS)
def test_disconnected_models_with_single_states(engine):
    if engine in DIRECTED:
        model = gg.BayesianNetwork("A; B; C{only}", cpds={"A": 0.3, "B": 0.6, "C": [1.0]})
    else:
        a, b, c = binary("A"), binary("B"), discrete("C", 1)
        factors = [TableFactor((a,), np.array([0.7, 0.3])), TableFactor((b,), np.array([0.4, 0.6]))]
        model = MarkovNetwork.from_parts([a, b, c, binary("D")], factors)
    answer = model.query(None, engine=engine, random_state=0, budget=2000)
    assert answer["A"].prob("yes") == pytest.approx(0.3, abs=0.12)
    assert answer["C"].probabilities == pytest.approx([1.0])
    assert all(np.isfinite(answer[key].probabilities).all() for key in answer)
    everything = {name: model.states(name)[0] for name in model.variables}
    sure = model.query(None, everything, engine=engine, random_state=0, budget=100)
    assert sure["A"].probabilities.tolist() == [1.0, 0.0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::gramgraph.engines.sampling.chains.MixingWarning")
@pytest.mark.parametrize("engine", SAMPLERS)
def test_trees_of_100_000_variables(engine):
    n = 100_000
    if engine == "swendsen_wang":
        model = ising_grid(1, n, coupling=0.3)
        target = f"x0_{n - 1}"
    else:
        model = gg.models.markov_chain(n, 2, initial=[0.5, 0.5], transition=[[0.8, 0.2], [0.4, 0.6]])
        target = f"x{n - 1}"
    answer = model.query(target, engine=engine, random_state=0, budget=16)
    assert np.isfinite(answer[target].probabilities).all()


def test_kept_draws_go_to_arviz(monkeypatch):
    model = ising_grid(2, 2, coupling=0.3)
    answer = model.query(["x0_0", "x1_1"], engine="gibbs", keep=True, budget=400, random_state=0)
    kept = answer.details["chains"]["x0_0"]
    assert kept.shape == (4, 100)
    assert kept.mean() == pytest.approx(answer["x0_0"].prob("+1"))
    with pytest.raises(OptionError, match="holds no draws"):
        gg.io.to_arviz(model.query("x0_0", engine="gibbs", budget=100))
    with pytest.raises(OptionError, match="has no kept draws"):
        gg.io.to_arviz(answer, names=["x0_1"])

    class Column:
        def __init__(self):
            self.attrs = {}

    def from_dict(*, posterior):
        return {"posterior": {name: Column() for name in posterior}}

    monkeypatch.setitem(sys.modules, "arviz", types.SimpleNamespace(__version__="0.18.0", from_dict=from_dict))
    assert gg.io.to_arviz(answer)["posterior"]["x1_1"].attrs["states"] == ["-1", "+1"]


def test_kept_draws_in_arviz_itself():
    arviz = pytest.importorskip("arviz")
    answer = ising_grid(2, 2, coupling=0.3).query("x0_0", engine="gibbs", keep=True, budget=400, random_state=0)
    assert float(arviz.summary(gg.io.to_arviz(answer))["mean"].iloc[0]) == pytest.approx(0.5, abs=0.2)


@pytest.mark.parametrize(
    ("engine", "options", "message"),
    [
        ("gibbs", {"error": 0}, "error is a standard error"),
        ("gibbs", {"keep": 1}, "keep is a list of columns"),
        ("gibbs", {"start": "no"}, "start is a dict"),
        ("gibbs", {"start": {"lung": "yes", "either": "no"}}, "start is a state of probability zero"),
        ("tempering", {"hottest": 1.0}, "hottest is a number from 0 to below 1"),
        ("annealed", {"n_level": 3}, "Did you mean 'n_levels'"),
        ("importance", {"proposal": "pb"}, "proposal is one of adaptive, bp, prior"),
    ],
)
def test_bad_options(engine, options, message):
    with pytest.raises(OptionError, match=message):
        gg.datasets.asia().query("lung", {"xray": "yes"}, engine=engine, **options)


# ------------------------------------------------------------------------------------------------- Onsager


def magnetization(n, temperature, engine, *, budget, burn_in, step):
    """(mean of the spins inside a grid whose rim is +1, its standard error) from an ordered start."""
    model = ising_grid(n, n, coupling=1 / temperature)
    rim = {v: "+1" for v in model.variables if {*v[1:].split("_")} & {"0", str(n - 1)}}
    inside = [f"x{r}_{c}" for r in range(n // 4, 3 * n // 4, step) for c in range(n // 4, 3 * n // 4, step)]
    answer = model.query(
        inside, rim, engine=engine, random_state=0, budget=budget, burn_in=burn_in, keep=True, n_jobs=-1,
        start=dict.fromkeys(model.variables, "+1") if temperature < 2.27 else None,
    )  # fmt: skip
    spins = 2.0 * np.mean([answer.details["chains"][v] for v in inside], axis=0) - 1.0  # (chains, draws)
    pieces = spins[:, : spins.shape[1] // 8 * 8].reshape(len(spins) * 8, -1).mean(axis=1)
    return pieces.mean(), pieces.std(ddof=1) / np.sqrt(len(pieces))


def onsager(temperature):
    """m = (1 − sinh(2/T)⁻⁴)^(1/8) below the critical temperature, else 0."""
    return max(1 - np.sinh(2 / temperature) ** -4, 0.0) ** 0.125


@pytest.mark.filterwarnings("ignore::gramgraph.engines.sampling.chains.MixingWarning")
@pytest.mark.parametrize(("temperature", "engine"), [(2.0, "swendsen_wang"), (2.0, "gibbs"), (3.0, "swendsen_wang")])
def test_magnetization_of_a_small_grid(temperature, engine):
    mean, error = magnetization(40, temperature, engine, budget=1600, burn_in=100, step=2)
    assert 1e-4 < error < 0.01
    assert abs(mean - onsager(temperature)) < 3.5 * error + 1e-3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::gramgraph.engines.sampling.chains.MixingWarning")
@pytest.mark.parametrize("engine", ["swendsen_wang", "gibbs"])
@pytest.mark.parametrize("temperature", [2.0, 3.0])
def test_magnetization_of_a_large_grid(temperature, engine):
    mean, error = magnetization(512, temperature, engine, budget=320, burn_in=60, step=2)
    assert error < 0.003
    assert abs(mean - onsager(temperature)) < 3 * error
