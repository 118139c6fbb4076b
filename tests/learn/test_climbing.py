"""Hill climbing against a search that lists every step, and passes over all columns against single families."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph._numerics import compiling
from gramgraph.data import code_table, counts, stream_counts
from gramgraph.data.counts import Counts
from gramgraph.learn import passes
from gramgraph.learn.scores import FamilyScores
from gramgraph.learn.search import Constraints, Search, hill_climb
from gramgraph.learn.ties import LEAST_GAIN, slack

TIERS = ["plain", "compiled"]


def world(seed: int, columns: int = 9, rows: int = 400) -> pd.DataFrame:
    """Columns of two to five states that depend on up to three earlier ones."""
    rng = np.random.default_rng(seed)
    out: dict[str, np.ndarray] = {}
    for v in range(columns):
        size = int(rng.integers(2, 6))
        chosen = rng.choice(v, min(v, int(rng.integers(0, 4))), replace=False) if v else []
        row = sum((7 * i + 3) * out[f"v{p}"] for i, p in enumerate(chosen)) if len(chosen) else np.zeros(rows, int)
        table = rng.dirichlet(np.full(size, 0.6), 200)
        out[f"v{v}"] = (rng.random((rows, 1)) > table[row % 200].cumsum(axis=1)[:, :-1]).sum(axis=1)
    return pd.DataFrame(out).astype(str)


class Listed:
    """Hill climbing as it is told: all legal steps are listed, the best that leads to no graph seen lately is taken."""

    def __init__(self, scores: FamilyScores, constraints: Constraints, parents: list[tuple[int, ...]]) -> None:
        self.family, self.constraints, self.parents = scores.family, constraints, list(parents)

    def total(self, parents: list[tuple[int, ...]]) -> float:
        return sum(self.family(c, found) for c, found in enumerate(parents))

    def steps(self) -> list[tuple[float, tuple[str, int, int], list[tuple[int, ...]]]]:
        out = []
        for p, c in itertools.permutations(range(len(self.parents)), 2):
            there = p in self.parents[c]
            ways = {"remove": {(p, c)}, "reverse": {(p, c), (c, p)}} if there else {"add": {(p, c)}}
            for kind, pairs in ways.items():
                after = [set(found) for found in self.parents]
                for a, b in pairs:
                    after[b] ^= {a}
                if self.legal(after):
                    graph = [tuple(sorted(found)) for found in after]
                    changed = {b for _, b in pairs}
                    gain = sum(self.family(v, graph[v]) - self.family(v, self.parents[v]) for v in changed)
                    out.append((gain, (kind, p, c), graph))
        return out

    def legal(self, parents: list[set[int]]) -> bool:
        limits = self.constraints
        for c, found in enumerate(parents):
            needed = set(np.flatnonzero(limits.required[:, c]).tolist())
            if len(found) > limits.max_parents or not needed <= found or any(limits.forbidden[p, c] for p in found):
                return False
        left = set(range(len(parents)))
        while left:
            free = {v for v in left if not parents[v] & left}
            if not free:
                return False
            left -= free
        return True

    def climb(self, patience: int) -> tuple[list[tuple[str, int, int]], float]:
        """(steps in order, the best score)."""
        seen, taken, idle = [list(self.parents)], [], 0
        best = self.total(self.parents)
        while True:
            found = [step for step in self.steps() if step[2] not in seen]
            if not found:
                return taken, best
            top = max(gain for gain, _, _ in found)
            near = [step for step in found if step[0] >= top - slack(top, LEAST_GAIN)]
            gain, step, graph = min(near, key=lambda step: (step[1][0] != "add", *step[1][1:]))
            if gain <= LEAST_GAIN and idle >= patience:
                return taken, best
            self.parents = graph
            seen = [*seen, graph][-(patience + 1) :]
            taken.append(step)
            total = self.total(graph)
            idle = 0 if total > best + LEAST_GAIN else idle + 1
            best = max(best, total)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("score", "patience"), [("aic", 0), ("bic", 0), ("aic", 6), ("bdeu", 6)])
def test_the_search_takes_the_steps_of_one_that_lists_them_all(seed, score, patience) -> None:
    scores = FamilyScores(Counts(code_table(world(seed, 6, 300))), score)
    scores.equivalent = False  # single steps alone
    limits = Constraints.none(6)
    limits.required[0, 1], limits.forbidden[2, 4] = seed % 2 == 0, True
    start = [(0,) if limits.required[0, v] else () for v in range(6)]
    search = Search(scores, Constraints(limits.required, limits.forbidden, 3), list(start))
    found = hill_climb(search, patience=patience)
    taken, best = Listed(scores, search.constraints, start).climb(patience)
    assert [(move.kind, move.parent, move.child) for move in search.moves] == taken
    assert scores.total(found) == pytest.approx(best, rel=1e-12)


def test_what_can_be_reached_is_right_after_every_step() -> None:
    rng = np.random.default_rng(0)
    frame = world(3, 8)
    search = Search(FamilyScores(Counts(code_table(frame)), "bic"), Constraints.none(8), [()] * 8)
    for _ in range(60):
        steps = [("remove", p, c) for c in range(8) for p in search.parents[c]]
        free = ~search.below.T
        steps += [("add", int(p), int(c)) for p, c in np.argwhere(free) if p not in search.parents[c]]
        steps += [
            ("reverse", p, c) for c in range(8) for p in search.parents[c]
            if not any(x != p and search.below[p, x] for x in search.parents[c])
        ]  # fmt: skip
        kind, p, c = steps[rng.integers(len(steps))]
        search.take((0.0, kind, p, c))
        reached = np.eye(8, dtype=bool)
        for _ in range(8):
            for child, found in enumerate(search.parents):
                reached[list(found)] |= reached[child]
        np.testing.assert_array_equal(search.below, reached)
        step = search.best()
        fresh = Search(search.scores, search.constraints, list(search.parents)).best()
        assert step == fresh


def turnings(parents: list[set[int]], a: int, b: int, limits: Constraints) -> list[set[int]] | None:
    """The graph with a → b turned after the one arrow above it that must be turned before, and so on; None if not."""
    if limits.required[a, b] or limits.forbidden[b, a]:
        return None
    above = parents[a] - parents[b]
    if not parents[b] - {a} <= parents[a] or len(above) > 1:
        return None
    for p in above:
        found = turnings(parents, p, a, limits)
        if found is None:
            return None
        parents = found
    after = [set(found) for found in parents]
    after[b] ^= {a}
    after[a] ^= {b}
    return after


def gain_behind_turnings(search: Search) -> float:
    """The largest gain of an arrow more or less at the ends of a turned arrow, by listing them all."""
    family, limits = search.scores.family, search.constraints
    listed, best = Listed(search.scores, limits, search.parents), -np.inf
    for b, a in [(b, a) for b, now in enumerate(search.parents) for a in now]:
        turned = turnings([set(now) for now in search.parents], a, b, limits)
        if turned is None:
            continue
        for v, p in itertools.product((a, b), range(len(turned))):
            after = [set(now) for now in turned]
            after[v] ^= {p}
            tells = p in turned[v] or family(v, (p,)) > family(v, ())
            if p != v and {p, v} != {a, b} and tells and listed.legal(after):
                best = max(best, family(v, tuple(after[v])) - family(v, tuple(turned[v])))
    return best


@pytest.mark.parametrize("seed", range(3))
def test_the_best_step_behind_turned_arrows_is_found_after_every_step(seed) -> None:
    rng, n = np.random.default_rng(seed), 7
    limits = Constraints.none(n)
    limits.required[0, 1], limits.forbidden[2, 4] = True, True
    limits = Constraints(limits.required, limits.forbidden, 3)
    scores = FamilyScores(Counts(code_table(world(seed, n, 2000))), "bic")
    search = Search(scores, limits, [(0,) if v == 1 else () for v in range(n)])
    gains = 0
    for _ in range(25):
        expected, found = gain_behind_turnings(search), search.turned(LEAST_GAIN) or []
        anew = Search(scores, limits, list(search.parents)).turned(LEAST_GAIN) or []
        assert [step[1:] for step in found] == [step[1:] for step in anew]
        gain = [step[0] for step in anew]  # a loop that is compiled meanwhile sums in another order
        assert [step[0] for step in found] == pytest.approx(gain, abs=1e-9)
        assert (found[-1][0] if found else 0.0) == pytest.approx(max(expected, 0.0), abs=1e-8)
        if found and rng.random() < 0.5:
            gains, before = gains + 1, search.score
            for step in found:
                assert search.score == pytest.approx(before, abs=1e-7)
                search.take(step)
            assert search.score == pytest.approx(before + found[-1][0], abs=1e-7)
            assert Listed(scores, limits, []).legal([set(now) for now in search.parents])
        else:
            steps = Listed(scores, limits, search.parents).steps()
            search.take((0.0, *steps[rng.integers(len(steps))][1]))
    assert gains > 2


def test_a_collider_is_found_behind_a_first_arrow_that_points_the_other_way() -> None:
    rng = np.random.default_rng(0)
    x, y, noise = rng.integers(0, 2, (3, 3000))
    z = np.where(rng.random(3000) < 0.1, noise, x + y)
    twin = np.where(rng.random(3000) < 0.02, noise, z)  # the strongest pair leaves z with an arrow of either direction
    net = gg.learn_structure(pd.DataFrame({"z": z, "twin": twin, "x": x, "y": y}).astype(str), patience=0)
    assert set(net.parents("z")) == {"x", "y"}
    assert set(net.parents("twin")) == {"z"}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("score", ["log_likelihood", "aic", "bic", "bdeu", "k2", "fnml"])
def test_a_pass_over_all_columns_equals_single_families(tier, score, monkeypatch) -> None:
    frame = world(1, 8, 700)
    scores = FamilyScores(Counts(code_table(frame)), score, equivalent_sample_size=3.0)
    for parents in [(), (2,), (5, 2), (6, 1, 3, 0)]:
        more = np.array([v for v in range(8) if v not in (4, *parents)])
        expected = [scores.family(4, (*parents, p)) for p in more.tolist()]
        for cells, large in [(1, 100), (1, 10_000), (10_000, 1)]:  # by scan of columns, of the matrix, by bits
            monkeypatch.setattr(passes, "BIT_CELLS", cells)
            monkeypatch.setattr(passes, "LARGE", large)
            with compiling.tier(tier):
                np.testing.assert_allclose(scores.additions(4, parents, more), expected, rtol=1e-12)


def test_families_beyond_the_largest_table_are_no_candidates(monkeypatch) -> None:
    from gramgraph.learn import scores as module

    scores = FamilyScores(Counts(code_table(world(2, 6))), "bic")
    monkeypatch.setattr(module, "MAX_CELLS", 30)
    found = scores.additions(5, (4,), np.arange(4))
    cells = [np.prod([scores.counts.sizes[v] for v in (5, 4, p)]) for p in range(4)]
    assert [bool(np.isinf(x)) for x in found] == [size > 30 for size in cells]


@pytest.mark.parametrize("score", ["bic", "bdeu"])
def test_rows_in_memory_in_a_file_and_with_weights_give_one_graph(tmp_path, score) -> None:
    frame = world(4, 6, 600)
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    net = gg.learn_structure(frame, score=score)
    assert stream_counts(path).coded is None
    assert gg.learn_structure(path, score=score).report.score == pytest.approx(net.report.score, rel=1e-12)
    weighted = gg.learn_structure(frame, score=score, weights=np.ones(600))
    assert weighted.report.score == pytest.approx(net.report.score, rel=1e-12)
    assert set(weighted.edges) == set(net.edges)


@pytest.mark.parametrize("score", ["bic", "k2"])
def test_threads_change_no_number(score, monkeypatch) -> None:
    monkeypatch.setattr(passes, "SHARE", 1e-9)  # small work is shared out, too
    monkeypatch.setattr(counts, "MANY", 0)
    frame = world(5, 9, 800)
    alone = gg.learn_structure(frame, score=score)
    for cells, large in [(1, 1), (1, passes.LARGE), (passes.BIT_CELLS, 1)]:
        monkeypatch.setattr(passes, "BIT_CELLS", cells)
        monkeypatch.setattr(passes, "LARGE", large)
        for n_jobs in (2, 3):
            shared = gg.learn_structure(frame, score=score, n_jobs=n_jobs)
            assert set(shared.edges) == set(alone.edges)
            assert shared.report.score == alone.report.score


def test_configurations_that_occur_are_numbered_in_their_order() -> None:
    codes = np.random.default_rng(0).integers(0, 3, (8, 30))
    table = code_table(pd.DataFrame(dict(zip("abcdefgh", codes, strict=True))).astype(str))
    found = passes.Passes.over(Counts(table))
    for parents in [(0, 1), (0, 1, 2, 3, 4, 5, 6)]:  # fewer than the rows, and many more
        place = np.ravel_multi_index([codes[p] for p in parents], [3] * len(parents))
        kept, place = np.unique(place, return_inverse=True)
        key, count = found._cells(table, parents, 7)
        assert count == len(kept)
        np.testing.assert_array_equal(key, place * 3 + codes[7])


def test_threads_change_no_table_of_em(monkeypatch) -> None:
    from gramgraph.learn import em

    monkeypatch.setattr(em, "ROWS", 50)
    rows = gg.datasets.asia().sample(300, random_state=0)
    rows = rows.mask(np.random.default_rng(0).random(rows.shape) < 0.2)
    with compiling.tier("plain"):  # which adds up in another order than compiled code
        alone = gg.datasets.asia().fit(rows, max_iter=2)
        assert gg.datasets.asia().fit(rows, max_iter=2, n_jobs=2) == alone
    with pytest.raises(gg.OptionError, match="n_jobs is a number of threads"):
        gg.datasets.asia().fit(rows, n_jobs=0)
