"""Plate models in files: the same answers, the same bytes, and errors for what no model has written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramgraph as gg
from gramgraph import distributions as D
from gramgraph.exceptions import ParseError
from gramgraph.io import native

TOPICS = """
    alpha* -> theta{simplex 2};  beta* -> phi{simplex 3}
    theta -> z[2] -> w[3] <- phi
    plate documents: theta, z, w
    plate words in documents: z, w
    plate topics: phi
"""


def models() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Name → a model that uses a part of the form, and evidence."""
    topics = gg.BayesianNetwork(
        TOPICS, cpds={"theta": gg.Dirichlet("alpha"), "phi": gg.Dirichlet("beta"), "w": gg.Index("phi", by="z")},
        alpha=0.1 + 0.2, beta=0.5, name="topics",
    )  # fmt: skip
    mixture = gg.BayesianNetwork(
        "pi{simplex 2} -> k[2] -> x{real} <- mu{real}; tau -> x; plate cases[3]: k, x; plate parts: mu",
        cpds={"pi": gg.Dirichlet([1.0, 2.0]), "mu": D.Normal(0.0, 10.0), "tau": D.Gamma(2.0, 1 / 3),
              "x": D.Normal(gg.Index("mu", by="k"), precision="tau")},
    )  # fmt: skip
    table = gg.BayesianNetwork(
        "a{no|yes} -> b{no|yes}; plate days: a, b", cpds={"a": [0.3, 0.7], "b": [[0.9, 0.1], [0.2, 0.8]]}
    )
    counts = gg.BayesianNetwork(
        "w{real^2} -> n{count} <- x{real^2}; plate cases: x, n",
        cpds={"w": D.Gaussian(np.zeros(2), np.eye(2)), "n": D.Poisson(gg.Exp(gg.Dot("w", "x")))},
    )
    return {
        "topics": (topics, {"w": [[0, 0, 1], [2, 2, 1]]}),
        "mixture": (mixture, {"x": [0.3, 4.0, 5.0]}),
        "table": (table, {"b": ["yes", None]}),
        "counts": (counts, {"n": [1, 4], "x": [[1.0, 0.5], [1.0, 2.0]]}),
    }


@pytest.mark.parametrize("name", models())
@pytest.mark.parametrize("suffix", ["json", "gg"])
def test_files_keep_everything(name: str, suffix: str, tmp_path: Path) -> None:
    model, seen = models()[name]
    gg.write(model, tmp_path / f"model.{suffix}")
    again = gg.read(tmp_path / f"model.{suffix}")
    assert type(again) is type(model) and again.plates == model.plates and again.name == model.name
    assert again.variables == model.variables and [v.domain for v in again.vars] == [v.domain for v in model.vars]
    found = [one.query([], seen, random_state=0).log_evidence for one in (model, again)]
    assert found[0] == found[1]
    assert native.dumps(again) == native.dumps(model)


def test_a_hyperparameter_without_value_stays_one() -> None:
    model = gg.BayesianNetwork("a* -> p{unit}; p -> x{no|yes}; plate cases: x", cpds={"p": D.Beta("a", 1.0)})
    again = native.loads(native.dumps(model))
    assert dict(again.hyperparameters) == {"a": None}
    with pytest.raises(gg.exceptions.ModelError, match="no value for the hyper-parameter a"):
        again.unroll(cases=1)


@pytest.mark.parametrize(
    "change, told",
    [
        (lambda top: top["cpds"]["theta"].update(family="Cauchy"), "not a family"),
        (lambda top: top["cpds"].update(nobody=None), "not declared"),
        (lambda top: top["cpds"].update(theta=3), "an object or null"),
        (lambda top: top["cpds"]["theta"]["arguments"].update(alpha={"eval": "1"}), "numbers, a name"),
        (lambda top: top["plates"][0].update(outer=3), "outer is a name"),
        (lambda top: top["plates"][0].update(members=["q"]), "not a variable"),
        (lambda top: top["structure"].pop("w"), "w"),
        (lambda top: top["structure"].update(alpha=["w"], z=["theta", "w"]), "."),
        (lambda top: top["hyperparameters"].update(alpha="much"), "number"),
    ],
)
def test_damaged_files_are_refused(change: Any, told: str) -> None:
    top = json.loads(native.dumps(models()["topics"][0]))
    change(top)
    with pytest.raises(ParseError, match=told):
        native.loads(json.dumps(top).encode())
