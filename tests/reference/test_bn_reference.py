"""Discrete networks of the shared data against answers that pyAgrum and a second solver computed.

Marginals within 1e-8, log p(evidence) within 1e-6, the value of the most probable explanation within 1e-6 relative,
for the prior and every evidence set of every network; one case at a time and all evidence sets as a table of cases.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramgraph as gg

DATA = Path(os.environ.get("GRAMGRAPH_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
#: Networks that take more than a second or two.
HEAVY = {"diabetes", "link", "mildew", "munin", "munin2", "munin4"}
MARGINAL, LOG = 1e-8, 1e-6


def pairs() -> dict[str, tuple[Path, Path]]:
    """Name → (network, reference)."""
    found = {}
    for networks, references, suffix in (("bn", "bn_ref", ".bif.gz"), ("bn_bnrep", "bn_ref/bnrep", ".json.gz")):
        for path in sorted((DATA / networks).glob(f"*{suffix}")):
            name = path.name.removesuffix(suffix)
            reference = DATA / references / f"{name}.json.gz"
            if reference.exists():
                found[name if networks == "bn" else f"bnrep-{name}"] = (path, reference)
    return found


PAIRS = pairs()
NAMES = [pytest.param(name, marks=pytest.mark.slow if name in HEAVY else ()) for name in PAIRS] or [
    pytest.param("", marks=pytest.mark.skip(reason=f"no reference networks under {DATA}: set GRAMGRAPH_DATA"))
]


@functools.lru_cache(maxsize=2)
def network(name: str) -> Any:
    return gg.read(PAIRS[name][0])


@functools.lru_cache(maxsize=2)
def reference(name: str) -> dict[str, Any]:
    with gzip.open(PAIRS[name][1]) as file:
        return json.load(file)


def cases(name: str) -> list[tuple[str, dict[str, str], dict[str, Any]]]:
    """(label, evidence, reference) of the prior and of every evidence set."""
    found = reference(name)
    prior = ("prior", {}, {"log_p_evidence": 0.0, **found["prior"]})
    return [prior, *((e["id"], e["evidence"], e) for e in found["evidence_sets"])]


def worst(answer: Any, expected: dict[str, list[float]], row: Any = ...) -> tuple[float, str]:
    """Largest difference of the marginals in `answer` from the reference, and where; NaN counts as infinite."""
    top, where = 0.0, ""
    for variable in answer:
        ours = answer[variable].probabilities[row]
        gap = np.abs(ours - np.asarray(expected[variable]))
        gap = float(np.where(np.isnan(gap), np.inf, gap).max())
        if gap > top:
            top, where = gap, variable
    return top, where


def test_every_network_has_a_reference() -> None:
    if not PAIRS:
        pytest.skip(f"no reference networks under {DATA}: set GRAMGRAPH_DATA")
    files = [*(DATA / "bn").glob("*.bif.gz"), *(DATA / "bn_bnrep").glob("*.json.gz")]
    assert len(files) == len(PAIRS) > 100


@pytest.mark.parametrize("name", NAMES)
def test_states_and_structure(name: str) -> None:
    net, expected = network(name), reference(name)
    assert sorted(net.variables) == sorted(expected["nodes"])
    assert {v: list(net.states(v)) for v in net.variables} == expected["states"]
    assert sum(len(net.parents(v)) for v in net.variables) == expected["n_arcs"]
    assert net.check_model()


@pytest.mark.parametrize("name", NAMES)
def test_marginals(name: str) -> None:
    net = network(name)
    for label, evidence, expected in cases(name):
        answer = net.query(None, evidence=evidence)
        assert answer.exact
        assert set(answer) == set(net.variables) - set(evidence), label
        gap, where = worst(answer, expected["marginals"])
        assert gap <= MARGINAL, f"{label}: p({where} | e) is off by {gap:.3g}"
        assert answer.log_evidence == pytest.approx(expected["log_p_evidence"], abs=LOG), label


@pytest.mark.parametrize("name", NAMES)
def test_marginals_of_a_table_of_cases(name: str) -> None:
    """All evidence sets at once, the prior among them as a row without observations."""
    import pandas as pd

    net, wanted = network(name), cases(name)
    columns = list(dict.fromkeys(v for _, evidence, _ in wanted for v in evidence))
    frame = pd.DataFrame([[e.get(v) for v in columns] for _, e, _ in wanted], columns=columns, dtype=object)
    targets = [v for v in net.variables if v not in columns] or list(net.variables[:1])
    answer = net.query(targets, evidence=frame)
    assert answer.log_evidence.shape == (len(wanted),)
    for row, (label, _, expected) in enumerate(wanted):
        gap, where = worst(answer, expected["marginals"], row)
        assert gap <= MARGINAL, f"{label}: p({where} | e) is off by {gap:.3g}"
        assert answer.log_evidence[row] == pytest.approx(expected["log_p_evidence"], abs=LOG), label


@pytest.mark.parametrize("name", NAMES)
def test_most_probable_explanation(name: str) -> None:
    """The value, as ties are possible; and the assignment has this value and holds the evidence."""
    net = network(name)
    for label, evidence, expected in cases(name):
        best = net.map_query(evidence=evidence)
        tolerance = LOG * max(1.0, abs(expected["mpe_logp"]))
        assert best.log_prob == pytest.approx(expected["mpe_logp"], abs=tolerance), label
        full = {**best.assignment, **evidence}
        assert {v: full[v] for v in evidence} == evidence
        assert net.joint_log_prob(full) == pytest.approx(best.log_prob, abs=tolerance), label


@pytest.mark.parametrize("name", NAMES)
def test_reference_explanation_has_the_reference_value(name: str) -> None:
    """Our tables give the reference's own explanation the reference's own value."""
    net = network(name)
    for label, _, expected in cases(name):
        if "mpe" in expected:
            value = net.joint_log_prob(expected["mpe"])
            assert value == pytest.approx(expected["mpe_logp"], abs=LOG * max(1.0, abs(value))), label
