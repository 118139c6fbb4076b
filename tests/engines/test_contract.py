"""Every engine that the package defines is in the registry and answers as the truth: classes are found, not listed.

The truth is a sum over all states, or an integral on a grid; the models are as small as that allows. Each kind of model
that an engine claims is asked, real-valued ones included.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import gramgraph as gg
from gramgraph import conditionals as C
from gramgraph import engines, variables
from gramgraph._numerics.compiling import tier
from gramgraph.engines.base import Engine, EngineError
from gramgraph.engines.registry import ENGINES, engine_class, engine_names
from gramgraph.exceptions import GramGraphError
from gramgraph.testing import find_classes

PAIRS = [(name, kind) for name, kinds in ENGINES.items() for kind in kinds]
GRID = np.linspace(-12.0, 12.0, 24001)
#: How far an approximate mean may be from the true one, in deviations, and a probability.
LOOSE = 0.12
#: Engines that stay with one explanation where the truth has several may be so many times farther off.
BIASED = {("mean_field", "mixed"): 2.0}
#: How far an exact one may be: what stands on cells is integrated on a grid of its own.
CLOSE = {"cells": 2e-3}
#: Engines whose own number of draws costs seconds; fewer are near enough for these bounds.
EFFORT = {"tempering": {"budget": 1000}}
#: An engine for questions that end in another engine; what it refuses, it says.
ELSEWHERE = {("closed", "general"), ("enumeration", "general"), ("collapsed_gibbs", "general"), ("steps", "general")}


def tables() -> list[Any]:
    """A directed and an undirected network of three binary variables: some engines take one of them only."""
    cpds = {"a": [0.3, 0.7], "b": [[0.8, 0.2], [0.4, 0.6]], "c": [[[0.9, 0.1], [0.5, 0.5]], [[0.6, 0.4], [0.2, 0.8]]]}
    same = [[2.0, 1.0], [1.0, 2.0]]
    field = gg.MarkovNetwork({("a", "b"): same, ("b", "c"): same, ("a", "c"): same, ("a",): [1.0, 1.5]})
    return [gg.BayesianNetwork("a -> b; a -> c; b -> c", cpds=cpds), field]


def truth_of_tables(model: Any, state: Any) -> tuple[float, float]:
    """p(b = last state | c) and log p(c), for directed models; of an undirected one the log of the sum."""
    states = {v: model.states(v) for v in "ab"}
    joint = np.array([[model.joint_log_prob({"a": a, "b": b, "c": state}) for b in states["b"]] for a in states["a"]])
    p = np.exp(joint).sum(axis=0)
    return float(p[-1] / p.sum()), float(np.log(p.sum()))


def real(kind: str) -> tuple[Any, dict[str, Any], np.ndarray]:
    """A model with a real variable x, evidence, and p(x, evidence) on the grid."""
    x, y, d = variables.real("x"), variables.real("y"), variables.binary("d")
    if kind == "gaussian":
        parts = [C.LinearGaussian(x, (), {}, 0.5, sd=1.5), C.LinearGaussian(y, (x,), {"x": 0.8}, 0.2, sd=0.7)]
        return _net(parts), {"y": 1.3}, norm.pdf(GRID, 0.5, 1.5) * norm.pdf(1.3, 0.2 + 0.8 * GRID, 0.7)
    if kind == "mixed":
        mixture = C.ConditionalLinearGaussian(x, (d,), {}, [0.0, 2.0], sd=[1.0, 0.6])
        parts = [C.Table(d, (), [0.4, 0.6]), mixture, C.LinearGaussian(y, (x,), {"x": 1.0}, 0.0, sd=0.9)]
        prior = 0.4 * norm.pdf(GRID, 0.0, 1.0) + 0.6 * norm.pdf(GRID, 2.0, 0.6)
        return _net(parts), {"y": 1.3}, prior * norm.pdf(1.3, GRID, 0.9)
    if kind == "cells":
        rng = np.random.default_rng(0)
        data = rng.normal(0.5, 1.5, size=2000)
        model = gg.learn_tree({"x": data, "y": 0.8 * data + 0.7 * rng.normal(size=2000)})
        rows = {"x": GRID, "y": np.full(len(GRID), 1.3)}
        return model, {"y": 1.3}, np.exp(model.log_likelihood(rows))  # of complete rows: no messages
    soft = C.Softmax.logistic(d, (x,), weights=[2.0], bias=-0.5)
    density = norm.pdf(GRID, 0.3, 1.0) / (1.0 + np.exp(-(2.0 * GRID - 0.5)))
    return _net([C.LinearGaussian(x, (), {}, 0.3, sd=1.0), soft]), {"d": d.states[1]}, density


def _net(parts: list[Any]) -> Any:
    return gg.BayesianNetwork.from_parts([part.child for part in parts], parts)


def check(name: str, kind: str) -> None:
    """The contract for an engine and one of its kinds of models, whoever wrote it."""
    made = engine_class(name, kind)
    assert issubclass(made, Engine) and made.name, f"{name}: a class under Engine with a name"
    assert isinstance(made.exact, bool) and kind in made.kinds, f"{name} does not say that it answers {kind}"
    answers, finds = made.answer is not Engine.answer, hasattr(made, "best")
    assert answers or finds, f"{name} answers nothing"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "tables":
            check_tables(name, made.exact, answers, finds)
        elif kind == "plates":
            check_plates(name, made.exact)
        elif answers and (name, kind) not in ELSEWHERE:
            check_real(name, kind, made.exact)


def check_tables(name: str, exact: bool, answers: bool, finds: bool) -> None:
    done, refused = False, ""
    for model in tables():
        state = model.states("c")[1]
        p, log_p = truth_of_tables(model, state)
        try:
            if answers:
                found = model.query("b", {"c": state}, engine=name, **_effort(name, exact))
                assert found["b"].probabilities[-1] == pytest.approx(p, abs=1e-9 if exact else 2 * LOOSE), name
                if exact:
                    assert found.log_evidence == pytest.approx(log_p, abs=1e-9), f"{name}: log p(evidence)"
            if finds:
                best = model.map_query(evidence={"c": state}, engine=name)
                top = max(
                    model.joint_log_prob({"a": a, "b": b, "c": state})
                    for a in model.states("a")
                    for b in model.states("b")
                )
                assert best.log_prob == pytest.approx(top, abs=1e-9 if exact else 1.0), f"{name}: best assignment"
            done = True
        except GramGraphError as error:
            refused = str(error)
    assert done, f"{name} answers neither a directed nor an undirected network: {refused}"


def check_real(name: str, kind: str, exact: bool) -> None:
    model, evidence, density = real(kind)
    assert model.kind == kind
    width = GRID[1] - GRID[0]
    total = float(density.sum() * width)
    mean = float(density @ GRID * width / total)
    sd = float(np.sqrt(density @ (GRID - mean) ** 2 * width / total))
    found = model.query("x", evidence, engine=name, **_effort(name, exact))
    loose = LOOSE * BIASED.get((name, kind), 1.0)
    close = CLOSE.get(kind, 1e-7) if exact else 2 * loose
    assert found["x"].mean() == pytest.approx(mean, abs=close * sd), f"{name}: mean of {kind}"
    assert np.sqrt(found["x"].var()) == pytest.approx(sd, rel=10 * close if exact else 3 * loose), (
        f"{name}: deviation of {kind}"
    )
    if exact:
        assert found.log_evidence == pytest.approx(np.log(total), abs=close), f"{name}: log p(evidence) of {kind}"


def check_plates(name: str, exact: bool) -> None:
    """Draws from an unknown distribution: a prior with one of each, two of the first were seen."""
    cpds = {"theta": gg.Dirichlet([1.0, 1.0])}
    model = gg.BayesianNetwork("theta{simplex 2} -> z[2]; plate draws: z", cpds=cpds)
    found = model.query(["z", "theta"], {"z": [0, 0, None]}, engine=name, **_effort(name, exact))
    close = 1e-9 if exact else 2 * LOOSE
    assert found["z"].probabilities[2, 0] == pytest.approx(0.75, abs=close), name
    assert found["theta"].mean()[0] == pytest.approx(0.75, abs=close), name
    assert found["theta"].sd()[0] == pytest.approx(np.sqrt(0.75 * 0.25 / 5), abs=close), name
    if exact:
        assert found.log_evidence == pytest.approx(np.log(1 / 3), abs=close), f"{name}: log p(evidence)"


def _effort(name: str, exact: bool) -> dict[str, Any]:
    return {} if exact else {"random_state": 0, **EFFORT.get(name, {})}


@pytest.mark.parametrize("name, kind", PAIRS)
def test_contract(name: str, kind: str) -> None:
    check(name, kind)


@pytest.fixture(scope="module")
def every_model() -> dict[str, tuple[Any, str, dict[str, Any]]]:
    """A small model of every kind, a variable to ask for and evidence; undirected ones and such without noise too."""
    x, y, d = variables.real("x"), variables.real("y"), variables.binary("d")
    silent = C.ConditionalLinearGaussian(y, (d,), {}, [0.0, 1.0], sd=[0.0, 1.0])
    network, field = tables()
    data, more = np.random.default_rng(0).normal(size=(2, 30))
    urn = gg.BayesianNetwork("theta{simplex 2} -> z[2]; plate draws: z", cpds={"theta": gg.Dirichlet([1.0, 1.0])})
    found = {kind: (real(kind)[0], "x", real(kind)[1]) for kind in ("gaussian", "mixed", "general")}
    return found | {
        "network": (network, "b", {"c": network.states("c")[1]}),
        "field": (field, "b", {"c": field.states("c")[1]}),
        "precision": (gg.MarkovNetwork.from_precision([[2.0, -1.0], [-1.0, 2.0]]), "x0", {"x1": 1.0}),
        "function": (_net([C.LinearGaussian(x), C.LinearGaussian(y, (x,), [2.0], sd=0.0)]), "x", {"y": 1.0}),
        "points": (_net([C.Table(d, (), [0.5, 0.5]), silent]), "d", {"y": 0.5}),
        "cells": (gg.learn_tree({"x": data, "y": data + more}, cells=8), "x", {"y": 0.3}),
        "plates": (urn, "theta", {"z": [0, 0, None]}),
    }


@pytest.mark.parametrize("name", [*ENGINES, "auto", "nobody"])
def test_every_engine_answers_or_refuses_every_model(name: str, every_model: Any) -> None:
    """What does not fit is refused in the library's own words, and so is an option; an answer can be shown."""
    exact = all(engine_class(name, kind).exact for kind in ENGINES.get(name, ()))
    with warnings.catch_warnings(), tier("plain"):
        warnings.simplefilter("ignore")
        for model, target, evidence in every_model.values():
            with refusals():
                assert str(model.query(target, evidence, engine=name, **({} if exact else {"budget": 20})))
            with refusals():
                assert str(model.map_query(evidence, engine=name))


@contextmanager
def refusals() -> Iterator[None]:
    """Errors of the library are answers too, where they say something."""
    try:
        yield
    except GramGraphError as error:
        assert str(error)


def test_what_engines_cannot_do_is_not_advised(every_model: Any) -> None:
    """Engines for tables answer about cells and find nothing there; the strong tree takes directed models."""
    cells, _, evidence = every_model["cells"]
    assert engine_names("cells", "best") == engine_names("cells", "draw") == ("cells",)
    with pytest.raises(GramGraphError, match="these do: cells$"):
        cells.map_query(evidence, engine="icm")
    with pytest.raises(GramGraphError, match="'icm' looks for best assignments only. Use engine='auto'"):
        cells.query("x", evidence, engine="icm")
    with pytest.raises(EngineError, match="'strong_tree' takes Bayesian networks; ask an undirected"):
        every_model["precision"][0].query("x0", {"x1": 1.0}, engine="strong_tree")


def unregistered() -> set[str]:
    """Names of engines that no line of the registry leads to."""
    listed = {engine_class(name, kind) for name, kind in PAIRS}
    return {kind.__name__ for kind in find_classes(Engine, "engines") if kind not in listed and "name" in vars(kind)}


def test_every_engine_is_in_the_registry() -> None:
    assert not unregistered(), f"add a line in engines/registry.py for {unregistered()}"


NEW = """
from gramgraph.engines.propagation.mean_field import MeanField

class Boastful(MeanField):
    '''Exact, it says.'''
    name = "boastful"
    exact = True
"""


def test_the_contract_finds_a_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "boastful.py").write_text(NEW)
    monkeypatch.setattr(engines, "__path__", [*engines.__path__, str(tmp_path)])
    assert unregistered() == {"Boastful"}
    monkeypatch.setitem(ENGINES, "boastful", {"tables": "boastful:Boastful"})
    with pytest.raises(AssertionError, match="boastful"):
        check("boastful", "tables")
