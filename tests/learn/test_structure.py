"""Graphs from data: scores by formula, searches against brute force, constraints."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

import gramgraph as gg
from gramgraph.data import Counts, code_table
from gramgraph.learn.scores import SCORES, FamilyScores
from gramgraph.learn.search import Constraints, Search, hill_climb
from gramgraph.testing.random_models import random_bayesian_network
from tests.portions import seeds


def sample(seed: int, n: int = 4, rows: int = 300) -> pd.DataFrame:
    return random_bayesian_network(np.random.default_rng(seed), n).sample(rows, random_state=seed)


def all_graphs(n: int):
    pairs = list(itertools.permutations(range(n), 2))
    for bits in itertools.product([0, 1], repeat=len(pairs)):
        parents = [tuple(a for (a, b), on in zip(pairs, bits, strict=True) if on and b == v) for v in range(n)]
        left = set(range(n))
        while left:
            free = [v for v in left if not left.intersection(parents[v])]
            if not free:
                break
            left.difference_update(free)
        if not left:
            yield parents


def by_formula(name: str, table: np.ndarray, n: int, ess: float) -> float:
    rows = table.sum(axis=1)
    if name in ("bdeu", "k2"):
        a = ess / table.size if name == "bdeu" else 1.0
        row_a = a * table.shape[1]
        return float((gammaln(row_a) - gammaln(row_a + rows)).sum() + (gammaln(a + table) - gammaln(a)).sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        fit = float(np.nansum(table * np.log(table / rows[:, None])))
    k = table.shape[0] * (table.shape[1] - 1)
    if name == "fnml":
        return fit - sum(math.log(regret(table.shape[1], int(r))) for r in rows)
    return fit - {"log_likelihood": 0, "aic": 1, "bic": math.log(n) / 2}[name] * k


def regret(states: int, n: int) -> float:
    """Σ over all ways to share n among the states of n!/Π n_k! Π (n_k/n)^n_k."""
    if n == 0:
        return 1.0
    total = 0.0
    for shares in itertools.product(range(n + 1), repeat=states - 1):
        rest = n - sum(shares)
        if rest >= 0:
            counts = [*shares, rest]
            total += math.exp(
                math.lgamma(n + 1) + sum(-math.lgamma(c + 1) + (c * math.log(c / n) if c else 0.0) for c in counts)
            )
    return total


@pytest.mark.parametrize("name", SCORES)
def test_scores_follow_their_formulas(name) -> None:
    frame = sample(3, 4, 40)
    counts = Counts(code_table(frame))
    scores = FamilyScores(counts, name, equivalent_sample_size=3.0)
    for child, parents in [(0, ()), (1, (0,)), (2, (3, 0)), (3, (0, 1, 2))]:
        table = counts.table((*sorted(parents), child)).reshape(-1, counts.sizes[child])
        assert scores.family(child, parents) == pytest.approx(by_formula(name, table, 40, 3.0), rel=1e-9)


@pytest.mark.parametrize("name", ["bdeu", "bic", "aic"])
def test_equivalent_graphs_have_equal_scores(name) -> None:
    scores = FamilyScores(Counts(code_table(sample(1))), name)
    assert scores.total([(), (0,), (1,), ()]) == pytest.approx(scores.total([(1,), (2,), (), ()]))


@pytest.mark.parametrize("seed", seeds(2, 6))
@pytest.mark.parametrize("score", ["bic", "bdeu"])
def test_exact_search_equals_brute_force(seed, score) -> None:
    frame = sample(seed, 4, 100)
    scores = FamilyScores(Counts(code_table(frame)), score)
    best = max(scores.total(parents) for parents in all_graphs(4))
    found = gg.learn_structure(frame, method="exact", score=score)
    assert found.report.score == pytest.approx(best, abs=1e-9)
    for method in ("hill_climb", "tabu"):
        climbed = gg.learn_structure(frame, method=method, score=score)
        assert climbed.report.score <= best + 1e-9
        assert climbed.report.score == pytest.approx(gg.learn.score(climbed, frame, score))


@pytest.mark.parametrize("seed", range(4))
def test_hill_climbing_ends_where_no_step_helps(seed) -> None:
    frame = sample(seed, 6, 400)
    scores = FamilyScores(Counts(code_table(frame)), "bic")
    search = Search(scores, Constraints.none(6), [()] * 6)
    parents = hill_climb(search)
    again = Search(scores, Constraints.none(6), parents).best()
    assert again is None or again[0] <= 1e-9
    assert all(move.gain > 0 or (move.kind == "reverse" and move.gain == 0) for move in search.moves)
    assert search.score == pytest.approx(scores.total([()] * 6) + sum(move.gain for move in search.moves))


def test_constraints_hold() -> None:
    frame = gg.datasets.asia().sample(3000, random_state=0)
    tiers = [["asia", "smoke"], ["tub", "lung", "bronc"], ["either"], ["xray", "dysp"]]
    for method in ("hill_climb", "tabu", "exact"):
        net = gg.learn_structure(
            frame,
            method=method,
            required=[("asia", "dysp")],
            forbidden=[("smoke", "bronc")],
            tiers=tiers,
            max_parents=2,
        )
        assert ("asia", "dysp") in net.edges
        assert ("smoke", "bronc") not in net.edges
        rank = {name: level for level, names in enumerate(tiers) for name in names}
        assert all(rank[a] <= rank[b] for a, b in net.edges)
        assert max(len(net.parents(v)) for v in net.variables) <= 2


def test_the_network_is_ready_for_questions() -> None:
    truth = gg.datasets.asia()
    frame = truth.sample(20_000, random_state=1)
    net = gg.learn_structure(frame, method="exact")
    assert net.query("lung", {"smoke": "yes"})["lung"].prob("yes") == pytest.approx(0.1, abs=0.02)
    assert net.report.to_frame().empty
    climbed = gg.learn_structure(frame, patience=0)
    steps = climbed.report.to_frame()
    assert len(steps) == len(climbed.report.moves) > 0
    assert steps["score"].iloc[-1] == pytest.approx(climbed.report.score)


def test_chow_liu_finds_the_best_tree() -> None:
    frame = sample(5, 4, 500)
    counts = Counts(code_table(frame))
    scores = FamilyScores(counts, "log_likelihood")
    trees = [p for p in all_graphs(4) if max(map(len, p)) <= 1 and sum(map(len, p)) == 3]
    best = max(scores.total(parents) for parents in trees)
    for root in frame.columns:
        net = gg.learn_structure(frame, method="chow_liu", root=root)
        assert net.roots == (root,)
        assert scores.total(net.parent_positions) == pytest.approx(best)


def test_tree_augmented_naive_bayes_finds_the_best_of_its_kind() -> None:
    frame = sample(6, 4, 500)
    scores = FamilyScores(Counts(code_table(frame)), "log_likelihood")
    kind = [
        p for p in all_graphs(4)
        if p[0] == () and all(0 in p[v] and len(p[v]) <= 2 for v in (1, 2, 3)) and sum(map(len, p)) == 5
    ]  # fmt: skip
    net = gg.learn_structure(frame, method="tan", target=frame.columns[0])
    assert scores.total(net.parent_positions) == pytest.approx(max(scores.total(p) for p in kind))
    bayes = gg.learn_structure(frame, method="naive_bayes", target=frame.columns[2])
    assert all(bayes.parents(v) == (() if v == frame.columns[2] else (frame.columns[2],)) for v in frame.columns)


def test_rows_with_gaps_are_left_out_and_that_is_said() -> None:
    frame = gg.datasets.asia().sample(5000, random_state=2).astype(object)
    gaps = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.05)
    with pytest.warns(gg.ModelWarning, match="rows have missing cells"):
        net = gg.learn_structure(gaps, method="exact")
    assert net == gg.learn_structure(gaps.dropna(), method="exact")
    whole = gg.learn_structure(gaps, method="exact", missing="families")
    assert whole.is_dconnected("lung", "either")
    with pytest.raises(gg.VariableError, match="every row has a missing cell"):
        gg.learn_structure({"a": ["x", None], "b": [None, "y"]})


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"method": "hill_clim"}, gg.OptionError, "Did you mean 'hill_climb'"),
        ({"score": "bicc"}, gg.OptionError, "Did you mean 'bic'"),
        ({"required": [("a", "b")], "forbidden": [("a", "b")]}, gg.OptionError, "both required and forbidden"),
        ({"required": [("a", "b"), ("b", "a")]}, gg.OptionError, "cycle"),
        ({"required": ["ab"]}, gg.OptionError, "pairs"),
        ({"required": [("a", "x")]}, gg.VariableError, "x"),
        ({"patience": 1.5}, gg.OptionError, "patience"),
        ({"max_parents": -1}, gg.OptionError, "max_parents"),
        ({"method": "tan"}, gg.OptionError, "target"),
        ({"method": "exact", "required": [("a", "b"), ("b", "a")]}, gg.OptionError, "cycle"),
    ],
)
def test_mistakes_are_named(options, error, words) -> None:
    frame = pd.DataFrame({"a": [0, 1, 0, 1], "b": [0, 1, 1, 1], "c": [1, 1, 0, 0]})
    with pytest.raises(error, match=words):
        gg.learn_structure(frame, **options)


def test_a_constant_column_stays_alone() -> None:
    frame = pd.DataFrame({"a": [0, 1] * 50, "b": [0, 1] * 50, "same": ["x"] * 100})
    net = gg.learn_structure(frame)
    assert set(net.edges) in ({("a", "b")}, {("b", "a")})
    assert net.states("same") == ("x",)


def test_too_many_variables_for_exact_search() -> None:
    frame = pd.DataFrame({f"v{i}": [0, 1] for i in range(61)})
    with pytest.raises(gg.OptionError, match="up to 60"):
        gg.learn_structure(frame, method="exact")


@pytest.mark.parametrize("test", ["g2", "x2"])
def test_independence_tests_equal_scipy(test) -> None:
    from scipy.stats import chi2_contingency

    frame = sample(4, 3, 500)
    a, b, c = frame.columns
    kind = {"g2": "log-likelihood", "x2": "pearson"}[test]
    expected = chi2_contingency(pd.crosstab(frame[a], frame[b]), correction=False, lambda_=kind)
    found = gg.learn.independence_test(frame, a, b, test=test)
    assert (found.statistic, found.dof) == (pytest.approx(expected.statistic), expected.dof)
    assert found.p_value == pytest.approx(expected.pvalue)
    strata = [
        chi2_contingency(pd.crosstab(part[a], part[b]), correction=False, lambda_=kind)
        for _, part in frame.groupby(c, observed=True)
    ]
    given = gg.learn.independence_test(frame, a, b, c, test=test)
    assert given.statistic == pytest.approx(sum(s.statistic for s in strata))
    assert given.dof == sum(s.dof for s in strata)


def test_p_values_are_uniform_under_independence() -> None:
    rng = np.random.default_rng(0)
    p = []
    for _ in range(300):
        frame = pd.DataFrame(rng.integers(0, 3, (400, 3)), columns=list("abc"))
        p.append(gg.learn.independence_test(frame, "a", "b", ["c"], test="x2").p_value)
    shares = np.histogram(p, bins=4, range=(0, 1))[0] / 300
    assert np.abs(shares - 0.25).max() < 0.09


def test_pc_finds_the_class_of_the_sprinkler() -> None:
    truth = gg.datasets.sprinkler()
    frame = truth.sample(50_000, random_state=0)
    found = gg.learn_structure(frame, method="pc", alpha=0.001)
    assert found.is_equivalent(truth)
    shuffled = gg.learn_structure(frame[["wet", "rain", "cloudy", "sprinkler"]], method="pc", alpha=0.001)
    assert shuffled.is_equivalent(found)
    forced = gg.learn_structure(
        frame, method="pc", alpha=0.001, required=[("rain", "cloudy")], forbidden=[("wet", "rain")]
    )
    assert ("rain", "cloudy") in forced.edges
    with pytest.raises(gg.OptionError, match="alpha"):
        gg.learn_structure(frame, method="pc", alpha=0)


def test_bootstrap_does_not_depend_on_the_number_of_threads() -> None:
    frame = gg.datasets.sprinkler().sample(800, random_state=3)
    alone = gg.learn.bootstrap_edges(frame, 12, random_state=1)
    together = gg.learn.bootstrap_edges(frame, 12, random_state=1, n_jobs=2)
    np.testing.assert_array_equal(alone.forward, together.forward)
    assert alone.n_graphs == 12
    table = alone.to_frame()
    assert ((table["strength"] > 0) & (table["strength"] <= 1)).all()
    assert ((table["direction"] >= 0.5) & (table["direction"] <= 1)).all()
    net = alone.average_network(0.5)
    assert {frozenset(edge) for edge in net.edges} == {
        frozenset(pair) for pair in table.loc[table["strength"] >= 0.5, ["from", "to"]].itertuples(index=False)
    }
    assert net.query("wet", {"rain": "yes"})["wet"].prob("yes") > 0.5
    with pytest.raises(gg.OptionError, match="of at least 1"):
        gg.learn.bootstrap_edges(frame, 0)


@pytest.mark.parametrize("seed", range(8))
def test_pc_keeps_constraints_even_against_the_tests(seed) -> None:
    frame = gg.datasets.asia().sample(1000, random_state=seed)
    rng = np.random.default_rng(seed)
    order = list(rng.permutation(frame.columns))
    required = [(order[0], order[3]), (order[1], order[4])]
    forbidden = [(order[5], order[2]), (order[7], order[6])]
    edges = gg.learn_structure(frame, method="pc", required=required, forbidden=forbidden).edges
    assert set(required) <= set(edges)
    assert not set(forbidden) & set(edges)


def test_constraints_that_a_method_cannot_honor_are_refused() -> None:
    frame = gg.datasets.asia().sample(200, random_state=0)
    for options in ({"required": [("smoke", "asia")]}, {"forbidden": [("smoke", "asia")]}, {"max_parents": 1}):
        with pytest.raises(gg.OptionError, match="takes no constraints"):
            gg.learn_structure(frame, method="chow_liu", **options)
    with pytest.raises(gg.OptionError, match="does not bound"):
        gg.learn_structure(frame, method="pc", max_parents=2)
    with pytest.raises(gg.OptionError, match="cycle"):
        gg.learn_structure(frame, method="pc", required=[("smoke", "asia"), ("asia", "smoke")])


def test_bootstrap_and_its_average_keep_constraints() -> None:
    frame = gg.datasets.asia().sample(1000, random_state=0)
    required = [("xray", "either"), ("dysp", "bronc")]
    strengths = gg.learn.bootstrap_edges(frame, 5, random_state=0, required=required)
    assert set(required) <= set(strengths.average_network().edges)


def test_ties_go_to_fewer_parents() -> None:
    frame = pd.DataFrame({"a": list("uvuvuvuu"), "b": list("xyyxxyxy"), "k": ["1"] * 8})
    assert gg.learn_structure(frame, method="exact").edges == ()


def test_a_drawn_graph_is_scored_with_the_states_of_the_data() -> None:
    frame = pd.DataFrame({"a": [0, 1, 0, 1], "b": list("uvuu")})
    net = gg.BayesianNetwork("a -> b")
    assert gg.learn.score(net, frame) == pytest.approx(gg.learn.score(net.fit(frame), frame))
