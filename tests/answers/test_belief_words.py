"""All beliefs share the same words: each where it makes sense, and a clear error where it does not."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.answers import Belief, DensityBelief, MixtureBelief, RealBelief, SampledBelief
from gramgraph.answers.boxes import Boxes
from gramgraph.answers.pieces import Pieces
from gramgraph.answers.words import WORDS
from gramgraph.variables import Var, discrete, real

ARGUMENTS: dict[str, tuple[Any, ...]] = {"quantile": (0.3,), "density": (0.5,), "expect": (lambda *x: 1.0,)}
#: Words that some beliefs cannot answer.
SOME = {"mean", "var", "quantile", "interval", "prob", "density", "plot"}


def _tables() -> dict[str, Any]:
    colors, sizes = discrete("color", ["red", "green"]), discrete("size", [0, 2, 10])
    both = np.array([[0.1, 0.2, 0.3], [0.1, 0.1, 0.2]])
    return {
        "labels": Belief((colors,), np.array([0.25, 0.75])),
        "numbers": Belief((sizes,), np.array([0.5, 0.3, 0.2])),
        "table of cases": Belief((sizes,), np.array([[0.5, 0.3, 0.2], [0.0, 1.0, 0.0]]), batched=True),
        "joint table": Belief((colors, sizes), both),
        "vectors": Belief((discrete("v", ["a", "b"]),), np.array([0.5, 0.5]), points=((0.0, 1.0), (2.0, 1.0))),
        "words": Belief((discrete("w", ["a", "b"]),), np.array([0.4, 0.6]), points=("ab", "ba")),
    }


def _reals() -> dict[str, Any]:
    x, pair = (real("x"),), (real("x"), real("y"))
    w, m = np.array([[0.3, 0.7]]), np.array([[[-1.0], [2.0]]])
    draws = np.random.default_rng(0).normal(1.0, 2.0, size=(1500, 2))
    even = np.full(1500, 1 / 1500)
    mixed = (discrete("s", ["no", "yes"]), real("x"))
    cut = Pieces(w[0], m[0, :, 0], np.ones(2), -np.ones(2), np.full(2, 3.0))
    return {
        "gaussian": MixtureBelief(x, np.ones((1, 1)), np.ones((1, 1, 1)), np.full((1, 1, 1, 1), 4.0)),
        "mixture": MixtureBelief(x, w, m, np.array([[[[0.5]], [[2.0]]]])),
        "many gaussians": MixtureBelief(
            x, np.ones((2, 1)), np.array([[[0.0]], [[3.0]]]), np.ones((1, 1, 1, 1)), batched=True
        ),
        "joint gaussian": MixtureBelief(pair, np.ones((1, 1)), np.zeros((1, 1, 2)), np.eye(2)[None, None]),
        "states and numbers": MixtureBelief(mixed, w, m, np.ones((1, 2, 1, 1)), codes=np.array([[0], [1]])),
        "draws": SampledBelief(x, draws[:, :1], even),
        "joint draws": SampledBelief(pair, draws, even),
        "cut gaussians": DensityBelief(real("x"), [cut]),
        "nodes": _nodes(np.array([1.0])),
        "nodes of two cases": _nodes(np.array([0.0, 3.0]), batched=True),
    }


def _nodes(means: Any, *, batched: bool = False) -> DensityBelief:
    """Normal densities with standard deviation 2 on nodes."""
    cases = []
    for mean in means:
        ends = mean + np.linspace(-14.0, 14.0, 129)
        nodes = 0.5 * (ends[1:] + ends[:-1])
        p = np.exp(-0.125 * (nodes - mean) ** 2)
        cases.append(Boxes(nodes, ends[:-1], ends[1:], p / p.sum()))
    return DensityBelief(real("x"), cases, batched=batched)


def _kernels() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    angle = np.arctan2(np.sin(x), np.cos(x))
    net = gg.learn_tree({"x": x, "y": 2.0 * x + rng.normal(size=300), "t": angle}, domains={"t": "circle"}, cells=16)
    answer = net.query(["y", "t", ("x", "y")], {})
    return {"line": answer["y"], "circle": answer["t"], "joint line": answer["x", "y"]}


@pytest.fixture(scope="module")
def beliefs() -> dict[str, Any]:
    return {**_tables(), **_reals(), **_kernels()}


def _classes() -> set[str]:
    """Names of all classes of beliefs in the sources: by their own name, or by that of a base."""
    root = Path(gg.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        if "Belief" in (text := path.read_text(encoding="utf-8")):
            classes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
            for node in classes:
                names = [node.name, *(ast.unparse(base) for base in node.bases)]
                if any(name.endswith("Belief") for name in names):
                    found.add(node.name)
    return found


def test_every_class_of_beliefs_is_among_the_examples(beliefs: dict[str, Any]) -> None:
    shown = {type(belief).__name__ for belief in beliefs.values()}
    assert _classes() - {"RealBelief"} == shown
    assert len(shown) <= 6, "another kind of density is a shape of a belief (`Boxes`, `Pieces`), not a class of beliefs"


@pytest.mark.parametrize("word", WORDS)
def test_every_belief_has_every_word(beliefs: dict[str, Any], word: str) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    for name, belief in beliefs.items():
        given = ARGUMENTS.get(word, ())
        if word == "prob" and isinstance(belief, Belief):
            given = tuple(var.states[0] for var in belief.scope)
        if word == "density" and name.startswith("joint") and isinstance(belief, RealBelief):
            given = ((0.5, 0.5),)
        try:
            found = getattr(belief, word)(*given)
        except gg.VariableError as error:
            assert word in SOME | {"sample", "expect"}, (name, word, error)
            assert f"{word}()" in str(error) and "needs" in str(error), (name, word, str(error))
        else:
            assert found is not None, (name, word)


def test_words_that_make_no_sense_say_what_does(beliefs: dict[str, Any]) -> None:
    with pytest.raises(
        gg.VariableError, match=r"quantile\(\) needs a single scalar variable; this belief is over \(x, y\)"
    ):
        beliefs["joint gaussian"].quantile(0.5)
    with pytest.raises(gg.VariableError, match=r"interval\(\) needs a single scalar variable; .* \(x, y\)"):
        beliefs["joint line"].interval()
    with pytest.raises(gg.VariableError, match=r"mean\(\) needs numbers; the states of color are red, green"):
        beliefs["labels"].mean()
    with pytest.raises(gg.VariableError, match=r"density\(\) needs a real-valued variable; size has states. Use prob"):
        beliefs["numbers"].density(2)
    with pytest.raises(gg.VariableError, match=r"sample\(\) needs a single case"):
        beliefs["table of cases"].sample(3)


def test_moments_are_expectations(beliefs: dict[str, Any]) -> None:
    for name in ("numbers", "gaussian", "mixture", "draws", "line", "states and numbers"):
        belief = beliefs[name]
        mean = belief.mean()
        loose = 2e-2 if name == "line" else 1e-9
        assert belief.expect(lambda x: x) == pytest.approx(mean, rel=loose, abs=loose)
        spread = belief.expect(lambda x, m=mean: (x - m) ** 2)
        assert belief.var() == pytest.approx(spread, rel=loose) and belief.sd() == pytest.approx(belief.var() ** 0.5)
        drawn = np.asarray(belief.sample(20_000, random_state=1), dtype=float)
        assert drawn.mean() == pytest.approx(mean, abs=0.1 * belief.sd())


def test_numeric_labels_have_moments_and_quantiles(beliefs: dict[str, Any]) -> None:
    numbers, cases = beliefs["numbers"], beliefs["table of cases"]
    assert numbers.mean() == pytest.approx(2.6) and numbers.var() == pytest.approx(0.3 * 4 + 0.2 * 100 - 2.6**2)
    assert [numbers.quantile(q) for q in (0.0, 0.5, 0.51, 0.8, 0.81, 1.0)] == [0, 0, 2, 2, 10, 10]
    assert cases.mean() == pytest.approx([2.6, 2.0]) and cases.var()[1] == 0.0
    assert cases.quantile([0.1, 0.9]).tolist() == [[0.0, 10.0], [2.0, 2.0]] == cases.interval(0.8).tolist()
    assert cases.entropy()[1] == 0.0 and cases.expect({"0": 1.0, "2": 0.0, "10": 0.0}).tolist() == [0.5, 0.0]
    assert beliefs["vectors"].mean().tolist() == [1.0, 1.0] and beliefs["vectors"].var().tolist() == [1.0, 0.0]
    assert beliefs["joint table"].expect(lambda color, size: size * (color == "red")) == pytest.approx(0.4 + 3.0)


def test_probabilities_of_intervals_are_integrals_of_the_density(beliefs: dict[str, Any]) -> None:
    for name in ("gaussian", "mixture", "line"):
        belief = beliefs[name]
        low, high = belief.interval(0.8)
        x = np.linspace(low, high, 20_001)
        assert belief.prob(low, high) == pytest.approx(0.8, abs=1e-6)
        assert np.trapezoid(belief.density(x), x) == pytest.approx(0.8, abs=1e-4), name
        assert belief.prob(high=low) == pytest.approx(0.1, abs=1e-6) and belief.prob() == 1.0
    assert beliefs["many gaussians"].prob(0.0, 3.0)[0] == pytest.approx(beliefs["many gaussians"].prob(0.0, 3.0)[1])


def test_entropies_are_those_of_the_definition(beliefs: dict[str, Any]) -> None:
    p = beliefs["joint table"].probabilities
    assert beliefs["joint table"].entropy() == pytest.approx(-(p * np.log(p)).sum())
    assert beliefs["labels"].entropy(base=2) == pytest.approx(-(0.25 * np.log2(0.25) + 0.75 * np.log2(0.75)))
    for name, tight in (("gaussian", 1e-6), ("mixture", 1e-3), ("line", 2e-2), ("draws", 0.1)):
        belief = beliefs[name]
        x = np.linspace(belief.mean() - 12 * belief.sd(), belief.mean() + 12 * belief.sd(), 2_001)
        y = np.maximum(belief.density(x), 1e-300)
        assert belief.entropy() == pytest.approx(-np.trapezoid(y * np.log(y), x), abs=tight), name
    two = beliefs["states and numbers"]  # the states, and a unit Gaussian in each of them
    states = -(0.3 * np.log(0.3) + 0.7 * np.log(0.7))
    assert two.entropy() == pytest.approx(states + 0.5 * np.log(2 * np.pi * np.e))
    assert beliefs["joint gaussian"].entropy() == pytest.approx(np.log(2 * np.pi * np.e))
    joint, alone = beliefs["joint line"].entropy(), beliefs["line"].entropy()
    assert 0.2 < alone + np.log(np.sqrt(2 * np.pi * np.e)) - joint < 1.4  # mutual information, 0.8 of a normal pair


def test_a_value_that_is_certain_has_no_entropy_and_an_infinite_density() -> None:
    at, one = np.array([2.0]), np.ones(1)
    certain = DensityBelief(real("x"), [Boxes(at, at, at, one)])
    assert certain.mean() == certain.mode() == certain.quantile(0.3) == 2.0 and certain.var() == 0.0
    assert certain.density(2.0) == np.inf and certain.density(1.9) == 0.0 and certain.entropy() == -np.inf


def test_beliefs_and_answers_are_made_once(beliefs: dict[str, Any]) -> None:
    for belief in beliefs.values():
        with pytest.raises(AttributeError, match="does not change"):
            belief.scope = ()
        assert belief.replace(batched=belief.batched) is not belief
    assert issubclass(SampledBelief, RealBelief) and isinstance(beliefs["labels"].scope[0], Var)
    for answer in (gg.datasets.asia().query("lung"), gg.BayesianNetwork("x{real}", cpds={"x": (0, 1)}).query("x")):
        for name in ("engine", "exact", "log_evidence", "details", "hidden", "quality"):
            with pytest.raises(AttributeError):
                setattr(answer, name, None)
        assert answer.replace(engine="other").engine == "other" != answer.engine


def test_categorical_distributions_have_moments() -> None:
    die = gg.distributions.Categorical([0.5, 0.3, 0.2])
    assert die.mean == pytest.approx(0.7) and die.var == pytest.approx(0.3 + 0.8 - 0.49)
