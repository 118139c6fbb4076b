"""The compiled junction tree against the brute-force joint: every road through it."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph._numerics.compiling import tier
from gramgraph._numerics.tree import runner
from gramgraph._numerics.tree.columns import C_OFF, C_SEP_SIZE, P_CLIQUES, P_WORK
from gramgraph.compile import tree as compiled_tree
from gramgraph.compile.tree import Program
from gramgraph.conditionals import NoisyOr, Table
from gramgraph.engines.exact import junction_tree, tree_runner
from gramgraph.variables import binary, discrete


def random_network(seed, n=8, zeros=0.2, max_parents=3, sizes=(1, 2, 3, 4)):
    rng = np.random.default_rng(seed)
    variables = [discrete(f"v{i}", int(rng.choice(sizes))) for i in range(n)]
    conditionals = []
    for i, var in enumerate(variables):
        k = int(rng.integers(0, min(i, max_parents) + 1))
        parents = tuple(variables[j] for j in sorted(rng.choice(i, k, replace=False))) if k else ()
        table = rng.random((*[p.size for p in parents], var.size)) ** 2 + 1e-3
        table[rng.random(table.shape) < zeros] = 0.0
        table[..., 0] += 1e-3
        conditionals.append(Table(var, parents, table / table.sum(-1, keepdims=True)))
    return gg.BayesianNetwork.from_parts(variables, conditionals)


def random_cases(net, seed, n_cases=40, missing=0.6):
    rng = np.random.default_rng(seed)
    drawn = net.sample(n_cases, random_state=seed).astype(object)
    return drawn.mask(rng.random(drawn.shape) < missing)


def assert_same(got, want, keys, atol=1e-10):
    for key in keys:
        np.testing.assert_allclose(got[key].probabilities, want[key].probabilities, atol=atol, err_msg=str(key))
    np.testing.assert_allclose(got.log_evidence, want.log_evidence, atol=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_each_row_its_own_pattern(seed):
    net = random_network(seed)
    cases = random_cases(net, seed)
    assert_same(net.query(None, cases), net.query(None, cases, engine="enumeration"), net.variables)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("general, rows, lanes", [(0, 1, 0), (0, 1, 10**9), (0, 10**9, 0), (10**9, 32, 10**9)])
def test_all_plans_agree(seed, general, rows, lanes, monkeypatch):
    """Sliced per pattern, masked, one lane or eight: the road is a matter of speed only."""
    monkeypatch.setattr(junction_tree, "GENERAL_CELLS", general)
    monkeypatch.setattr(junction_tree, "ROWS_PER_PATTERN", rows)
    monkeypatch.setattr(tree_runner, "LANE_CELLS", lanes)
    net = random_network(seed + 100)
    cases = random_cases(net, seed)
    targets = [*net.variables, ("v5", "v1", "v7"), ("v2", "v3")]
    got = net.query(targets, cases)
    want = net.query(targets, cases, engine="enumeration")
    assert_same(got, want, targets)
    one = net.query(targets, cases.iloc[3].dropna().to_dict())
    for key in targets:
        np.testing.assert_allclose(one[key].probabilities, want[key].probabilities[3], atol=1e-10)
    best = net.map_query(cases)
    for row in range(0, len(cases), 7):
        oracle = net.map_query(cases.iloc[row].dropna().to_dict(), engine="enumeration")
        assert best["log_prob"].iloc[row] == pytest.approx(oracle.log_prob, abs=1e-9)
        full = {name: best[name].iloc[row] for name in net.variables}
        assert net.joint_log_prob(full) == pytest.approx(oracle.log_prob, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alone", [10**9, 200])
def test_tables_that_take_turns_give_the_same_numbers(seed, alone, monkeypatch):
    """Tables in one place, all of them or small ones, made anew on the way down: what kept ones give."""
    net = random_network(seed + 200, n=16)
    cases = random_cases(net, seed, missing=0.4)
    targets = [*net.variables, ("v5", "v1", "v7"), ("v2", "v3")]
    weights = {"v4": np.arange(1.0, 1.0 + net.var("v4").size)}
    monkeypatch.setattr(junction_tree, "GENERAL_CELLS", 0)
    asked = [net.query(targets, cases, virtual_evidence=weights), net.map_query(cases)]
    monkeypatch.setattr(tree_runner, "ALL_NUMBERS", 0)
    monkeypatch.setattr(tree_runner, "IN_TURN_CELLS", alone)
    made = []
    in_turn = Program.in_turn

    def noted(program, cells):
        made.append((in_turn(program, cells), program))
        return made[-1][0]

    monkeypatch.setattr(Program, "in_turn", noted)
    answer, best = net.query(targets, cases, virtual_evidence=weights), net.map_query(cases)
    assert any(sum(p.section(P_WORK)) < sum(q.section(P_WORK)) for p, q in made)
    for key in targets:  # to rounding: the loops may be compiled meanwhile
        np.testing.assert_allclose(answer[key].probabilities, asked[0][key].probabilities, atol=1e-13, err_msg=str(key))
    np.testing.assert_allclose(answer.log_evidence, asked[0].log_evidence, atol=1e-13)
    pd.testing.assert_frame_equal(best, asked[1], rtol=1e-13)


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_best_states_from_parts_of_tables_that_take_turns(kind, monkeypatch):
    rng, side = np.random.default_rng(0), range(7)
    ends = [((i, j), (i + 1, j)) for i in side[:-1] for j in side] + [
        ((i, j), (i, j + 1)) for i in side for j in side[:-1]
    ]
    field = gg.MarkovNetwork({tuple(f"x{i}{j}" for i, j in pair): rng.random((2, 2)) for pair in ends})
    cases = field.sample(9, random_state=0)[list(field.variables)[::12]].astype(object)
    cases = cases.mask(rng.random(cases.shape) < 0.2)
    programs = []
    in_turn = Program.in_turn
    monkeypatch.setattr(
        Program, "in_turn", lambda program, cells: programs.append(in_turn(program, cells)) or programs[-1]
    )
    with tier(kind):
        kept = field.map_query(cases, engine="junction_tree")
        assert not programs
        monkeypatch.setattr(tree_runner, "ALL_NUMBERS", 0)
        found = field.map_query(cases, engine="junction_tree")
    pd.testing.assert_frame_equal(found, kept)
    cliques = np.concatenate([p.section(P_CLIQUES).reshape(-1, 9) for p in programs])
    assert (cliques[cliques[:, C_OFF] == 0, C_SEP_SIZE] >= runner.SMALL_PART).sum() > 5


@pytest.mark.parametrize("seed", range(5))
def test_likelihoods_sets_and_exclusions(seed):
    net = random_network(seed + 50, sizes=(2, 3, 4))
    rng = np.random.default_rng(seed)
    last = net.states("v7")
    evidence = {
        "v1": gg.Likelihood(rng.random(net.var("v1").size) + 0.1),
        "v4": gg.Not(net.states("v4")[-1]),
        "v7": set(last[:2]),
        "v0": net.states("v0")[0],
    }
    got = net.query(None, evidence, virtual_evidence={"v0": rng.random(net.var("v0").size) + 0.1})
    joint = net.query(tuple(net.variables))[tuple(net.variables)].probabilities.copy()
    rng = np.random.default_rng(seed)
    for name, weight in (
        ("v1", rng.random(net.var("v1").size) + 0.1),
        ("v4", np.r_[np.ones(net.var("v4").size - 1), 0.0]),
        ("v7", np.r_[np.ones(2), np.zeros(len(last) - 2)]),
        ("v0", (rng.random(net.var("v0").size) + 0.1) * np.eye(net.var("v0").size)[0]),
    ):
        axis = net.index(name)
        joint *= weight.reshape([-1 if i == axis else 1 for i in range(joint.ndim)])
    assert got.log_evidence == pytest.approx(np.log(joint.sum()))
    for name in net.variables:
        others = tuple(i for i in range(joint.ndim) if i != net.index(name))
        np.testing.assert_allclose(got[name].probabilities, joint.sum(others) / joint.sum(), atol=1e-12)


def test_soft_evidence_follows_jeffrey():
    net = gg.datasets.asia()
    q = {"yes": 0.9, "no": 0.1}
    got = net.query("lung", {"xray": "yes"}, soft_evidence={"smoke": q})
    rows = [net.query("lung", {"xray": "yes", "smoke": s})["lung"].prob("yes") for s in ("yes", "no")]
    assert got["lung"].prob("yes") == pytest.approx(0.9 * rows[0] + 0.1 * rows[1])
    assert got.log_evidence == pytest.approx(net.log_evidence({"xray": "yes"}))
    both = net.query(None, soft_evidence={"smoke": q, "bronc": {"yes": 0.2, "no": 0.8}})
    assert both["smoke"].prob("yes") == pytest.approx(0.9)
    assert both["bronc"].prob("yes") == pytest.approx(0.2)
    with pytest.raises(gg.StateError, match="sum to one"):
        net.query("lung", soft_evidence={"smoke": {"yes": 2.0, "no": 1.0}})
    with pytest.raises(gg.StateError, match="both"):
        net.query("lung", {"smoke": "yes"}, soft_evidence={"smoke": q})


@pytest.mark.parametrize("seed", range(4))
def test_session_equals_fresh_queries(seed):
    net = random_network(seed + 200, n=12, sizes=(1, 2, 3))
    rng = np.random.default_rng(seed)
    truth = net.sample(1, random_state=seed).iloc[0]
    session, current = net.session(), {}
    for step in range(40):
        name = net.variables[rng.integers(len(net))]
        if name in current and rng.random() < 0.6:
            del current[name]
            session.retract(name)
        else:
            current[name] = gg.Likelihood(rng.random(net.var(name).size) + 0.1) if step % 5 == 0 else truth[name]
            session.observe({name: current[name]})
        targets = None if step % 3 == 0 else [net.variables[i] for i in rng.integers(len(net), size=2)]
        got, want = session.query(targets), net.query(targets, current)
        assert_same(got, want, list(want))
        assert session.log_evidence == pytest.approx(want.log_evidence)


def test_session_reuses_messages():
    chain = gg.BayesianNetwork("; ".join(f"x{i} -> x{i + 1}" for i in range(30))).random_tables(0)
    session = chain.session()
    session.query()
    assert session.recomputed == 60  # 30 messages up, 30 beliefs
    work = []
    for near, at in (("x0", "x1"), ("x30", "x29")):
        session.observe({at: "yes"})
        session.query(near)
        work.append(session.recomputed)
        session.query(near)
        assert session.recomputed == 0
    assert min(work) <= 4  # at the end where the root is, next to nothing is computed again


def test_sampling_follows_the_posterior():
    """Chi-square of 20,000 draws against the exact joint; false alarm rate 1e-6."""
    from scipy.stats import chi2

    net = random_network(7, n=5, sizes=(2, 3))
    evidence = {"v2": net.states("v2")[0]}
    drawn = net.sample(20_000, evidence, random_state=3)
    assert (drawn["v2"] == evidence["v2"]).all()
    names = ("v0", "v1", "v3", "v4")
    p = net.query(names, evidence)[names].probabilities
    codes = np.ravel_multi_index([drawn[name].cat.codes for name in names], p.shape)
    seen, expected = np.bincount(codes, minlength=p.size), 20_000 * p.ravel()
    assert not seen[expected == 0].any()
    keep = expected > 5
    statistic = ((seen[keep] - expected[keep]) ** 2 / expected[keep]).sum()
    assert statistic < chi2.ppf(1 - 1e-6, keep.sum())
    pd.testing.assert_frame_equal(drawn, net.sample(20_000, evidence, random_state=3))


def test_structured_conditionals_answer_like_their_tables():
    causes = [binary(f"c{i}") for i in range(9)]
    effect = binary("e")
    noisy = NoisyOr(effect, tuple(causes), np.linspace(0.1, 0.8, 9), leak=0.05)
    roots = [Table(c, (), np.array([0.7, 0.3])) for c in causes]
    structured = gg.BayesianNetwork.from_parts([*causes, effect], [*roots, noisy])
    dense = gg.BayesianNetwork.from_parts([*causes, effect], [*roots, Table(effect, tuple(causes), noisy.table())])
    evidence = {"e": "yes", "c3": "no"}
    assert_same(structured.query(None, evidence), dense.query(None, evidence), dense.variables)
    assert gg.plan(structured).cells < gg.plan(dense).cells
    assert structured.map_query(evidence).log_prob == pytest.approx(dense.map_query(evidence).log_prob)
    draws = structured.sample(50, evidence, random_state=0)
    assert tuple(draws.columns) == dense.variables


def test_impossible_evidence_is_named():
    net = gg.datasets.asia()
    with pytest.raises(gg.ImpossibleEvidenceError, match="either=no, tub=yes|tub=yes, either=no") as caught:
        net.query("lung", {"smoke": "no", "either": "no", "tub": "yes", "xray": "yes"})
    assert set(caught.value.conflict) == {"either=no", "tub=yes"}
    for ask in (net.map_query, lambda e: net.sample(3, e)):
        with pytest.raises(gg.ImpossibleEvidenceError):
            ask({"either": "no", "tub": "yes"})
    assert net.log_evidence({"either": "no", "tub": "yes"}) == -np.inf
    frame = pd.DataFrame({"either": ["no", "yes"] * 3, "tub": ["yes"] * 6})
    answer = net.query(["lung", ("lung", "tub")], frame)
    assert np.isneginf(answer.log_evidence[::2]).all() and np.isfinite(answer.log_evidence[1::2]).all()
    assert np.isnan(answer["lung"].probabilities[::2]).all()
    assert np.isnan(answer[("lung", "tub")].probabilities[::2]).all()
    assert np.isfinite(answer["lung"].probabilities[1::2]).all()


def test_underflow_is_not_impossible():
    """Two observations whose only common explanation has probability 1e-400: answered in logarithms."""
    a, b, c = binary("a"), discrete("b", 3), discrete("c", 3)
    tiny = 1e-200
    net = gg.BayesianNetwork.from_parts(
        [a, b, c],
        [
            Table(a, (), np.array([0.5, 0.5])),
            Table(b, (a,), np.array([[1 - tiny, tiny, 0.0], [1 - 3 * tiny, 3 * tiny, 0.0]])),
            Table(c, (a, b), np.array([[[1 - tiny, tiny, 0.0]] * 3, [[1 - tiny, tiny, 0.0]] * 3])),
        ],
    )
    for evidence in ({"b": "1", "c": "1"}, pd.DataFrame({"b": ["1"] * 9, "c": ["1"] * 9})):
        answer = net.query("a", evidence)
        np.testing.assert_allclose(answer["a"].probabilities[..., 1], 0.75)
        np.testing.assert_allclose(answer.log_evidence, 2 * np.log(tiny) + np.log(2.0))


def test_threads_and_jobs_give_the_same_numbers():
    net = random_network(11, n=14, sizes=(2, 3))
    cases = random_cases(net, 5, 400)
    want = net.query(None, cases)
    again = net.query(None, cases, n_jobs=2)
    fresh = pickle.loads(pickle.dumps(net))
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: fresh.query(None, cases), range(8)))
        singles = list(pool.map(lambda i: fresh.query(None, cases.iloc[i].dropna().to_dict()), range(60)))
    for name in net.variables:
        np.testing.assert_array_equal(again[name].probabilities, want[name].probabilities)
        for answer in answers:
            np.testing.assert_array_equal(answer[name].probabilities, want[name].probabilities)
        for i, answer in enumerate(singles):
            np.testing.assert_allclose(answer[name].probabilities, want[name].probabilities[i], atol=1e-12)


def test_budget_is_checked_before_allocation():
    grid = gg.models.ising_grid(60, 60, 0.3, 0.1)
    with pytest.raises(gg.BudgetError) as caught:
        grid.query("x0_0", engine="junction_tree")
    assert caught.value.bytes > 1e12 and len(caught.value.clique) > 30 and caught.value.remedies
    small = gg.datasets.asia()
    with pytest.raises(gg.BudgetError, match="budget of 50 bytes"):
        small.query("lung", {"smoke": "yes"}, memory=50)
    assert small.query("lung")["lung"].prob("yes") == pytest.approx(0.055)


def test_answers_own_their_memory():
    net = gg.datasets.asia()
    first = net.query(None, {"smoke": "yes"})
    kept = first["lung"].probabilities.copy()
    net.query(None, {"smoke": "no"})
    np.testing.assert_array_equal(first["lung"].probabilities, kept)


def test_errors_at_the_door():
    net = gg.datasets.asia()
    with pytest.raises(gg.StateError, match=r"'yess' is not a state of smoke.*Did you mean 'yes'"):
        net.query("lung", {"smoke": "yess"})
    with pytest.raises(gg.VariableError, match="Did you mean 'smoke'"):
        net.query("lung", {"smok": "yes"})
    with pytest.raises(gg.VariableError, match="Did you mean 'lung'"):
        net.query("lungs")
    with pytest.raises(gg.StateError, match="row 1"):
        net.query("lung", pd.DataFrame({"smoke": ["yes", "maybe"]}))
    with pytest.raises(gg.VariableError, match="data frame, a dict"):
        net.query("lung", 3)
    with pytest.raises(ValueError, match="is not an engine"):
        net.query("lung", engine="juntion_tree")
    assert len(net.query(None, pd.DataFrame({"smoke": []}))["lung"].probabilities) == 0
    assert net.query("lung", [{"smoke": "yes"}, {}])["lung"].probabilities.shape == (2, 2)


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_other_frames(kind):
    pytest.importorskip(kind)
    net = gg.datasets.asia()
    columns = {"smoke": ["yes", None, "no"], "xray": ["no", "yes", None]}
    if kind == "polars":
        import polars

        kinds = dict.fromkeys(columns, polars.Categorical)
        frames = [polars.DataFrame(columns), polars.DataFrame(columns, schema=kinds)]
    else:
        import pyarrow

        frames = [pyarrow.table(columns)]
    for frame in frames:
        assert_same(net.query(None, frame), net.query(None, pd.DataFrame(columns)), net.variables)


def test_progress_is_reported_and_options_are_known():
    net = random_network(3)
    cases = random_cases(net, 1, 300)
    seen = []
    net.query(None, cases, progress=lambda done, total: seen.append((done, total)))
    net.map_query(cases, progress=lambda done, total: seen.append((done, total)), n_jobs=2)
    assert seen[-1] == (300, 300) and len(seen) > 4
    with pytest.raises((TypeError, gg.OptionError)):
        net.query("v0", evidnce={})


def test_tables_need_not_be_multiplied_beforehand(monkeypatch):
    """Very large trees enter every factor anew, to halve their memory; the numbers are the same."""
    net = random_network(21)
    cases = random_cases(net, 2)
    want = net.query(None, cases)
    real = compiled_tree.plan_tree

    def without_static(*args, **options):
        plan = real(*args, **options)
        plan.tree.is_static[:] = 0
        return plan

    monkeypatch.setattr(junction_tree, "plan_tree", without_static)
    again = random_network(21)
    assert_same(again.query(None, cases), want, net.variables)
    one = cases.iloc[0].dropna().to_dict()
    assert again.map_query(one).log_prob == pytest.approx(net.map_query(one).log_prob)
    assert len(next(iter(p for k, p in again.plans.items() if k[0] == "tree")).plan.program.static) == 1


def test_a_model_without_variables():
    empty = gg.MarkovNetwork(factors=[])
    assert empty.log_evidence() == 0.0 and len(empty.query()) == 0 and gg.plan(empty).n_cliques == 0


def test_the_memory_of_a_huge_plan_is_told_without_making_it():
    plan = gg.plan(gg.models.ising_grid(42, 42, 0.3, 0.1))
    assert plan.bytes > 1e12 and plan.width >= 40
    assert "PB" in str(plan) or "TB" in str(plan) or "EB" in str(plan)


def test_a_network_that_is_gone_leaves_nothing_behind():
    """Without the help of the garbage collector: compiled trees hold no reference cycles."""
    import gc
    import weakref

    net = random_network(5)
    net.query(None, random_cases(net, 1))
    net.query("v1", {"v0": net.states("v0")[0]})
    gone = weakref.ref(net)
    plans = [weakref.ref(kept.plan) for key, kept in net.plans.items() if key[0] == "tree"]
    gc.disable()
    try:
        del net
        assert gone() is None and plans and all(plan() is None for plan in plans)
    finally:
        gc.enable()


def test_little_work_stays_on_one_thread_and_much_gives_the_same_numbers(monkeypatch):
    from gramgraph.engines.exact import tree_runner

    net = gg.datasets.asia()
    cases = net.sample(400, random_state=0)[["smoke", "xray", "dysp", "asia"]]
    alone = net.query(None, cases)
    begun = []
    pool = tree_runner.ThreadPoolExecutor
    monkeypatch.setattr(tree_runner, "ThreadPoolExecutor", lambda jobs: begun.append(jobs) or pool(jobs))
    net.query(None, cases, n_jobs=2)
    assert not begun
    for name in ("WORTH_THREADS", "WORTH_COPIES"):
        monkeypatch.setattr(tree_runner, name, 0)
    both = net.query(None, cases, n_jobs=2)
    assert len(begun) == 2  # of the distinct cases, and of the copies
    np.testing.assert_array_equal(both.log_evidence, alone.log_evidence)
    for name in alone:
        np.testing.assert_array_equal(both[name].probabilities, alone[name].probabilities)


@pytest.mark.parametrize("evidence", [{}, {"dysp": "yes", "smoke": "no"}])
def test_samples_drawn_at_once_are_those_of_the_loop(evidence, monkeypatch):
    net = gg.datasets.asia()
    with tier("plain"):
        at_once = net.sample(60, evidence, random_state=0)
        monkeypatch.setattr(runner, "_AT_ONCE", 5)
        in_parts = net.sample(60, evidence, random_state=0)
        monkeypatch.setattr(runner.draw_down, "_plain", None)
        one_by_one = net.sample(60, evidence, random_state=0)
    assert at_once.equals(in_parts) and at_once.equals(one_by_one)
