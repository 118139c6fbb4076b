"""Instances of the UAI competitions: bounds around the reference, errors of propagation."""

from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.engines.fallback import log_evidence_interval
from gramgraph.io.uai_results import read_uai_evidence, read_uai_result
from gramgraph.questions.reading import read


def load(shared_data, name):
    base = shared_data / "uai" / "2014_mar_pr" / f"{name}.uai"
    if not base.with_name(base.name + ".gz").is_file():
        pytest.skip(f"no instance {name} in the reference data")
    net = gg.read(base.with_name(base.name + ".gz"))
    evidence = read_uai_evidence(base.with_name(base.name + ".evid"), net)
    return net, (evidence or [{}])[0], base


@pytest.mark.parametrize(
    "name", ["Alchemy_11", "CSP_11", "DBN_14", "Grids_11", "ObjectDetection_71", "Promedus_11", "linkage_14"]
)
def test_the_interval_holds_the_reference(shared_data, name):
    net, evidence, base = load(shared_data, name)
    low, high = log_evidence_interval(net, read(net, [], evidence))
    reference = read_uai_result(base.with_name(base.name + ".PR")).log_z
    assert low[0] - 1e-3 <= reference <= high[0] + 1e-3


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("Alchemy_11", 0.001),
        ("CSP_11", 0.03),
        ("DBN_14", 0.001),
        ("Pedigree_11", 0.08),
        ("Promedus_13", 0.03),
        ("Segmentation_13", 0.06),
    ],
)
def test_marginals_near_the_reference(shared_data, name, error):
    net, evidence, base = load(shared_data, name)
    answer = net.query(None, evidence, engine="bp")
    assert answer.details["converged"]
    reference = read_uai_result(base.with_name(base.name + ".MAR")).marginals
    gaps = [np.abs(p - answer[v].probabilities).mean() for v, p in zip(net.variables, reference, strict=True)]
    assert np.mean(gaps) < error


@pytest.mark.parametrize("name", ["linkage_11", "linkage_23", "ObjectDetection_71", "DBN_16"])
def test_clusters_are_nearer_than_residual_messages(shared_data, name):
    net, evidence, base = load(shared_data, name)
    reference = read_uai_result(base.with_name(base.name + ".MAR")).marginals
    clusters = net.query(None, evidence, engine="join_graph")
    standard = net.query(None, evidence, engine="bp", schedule="residual", damping=0.5)
    known = {v: p for v, p in zip(net.variables, reference, strict=True) if v not in evidence}
    ours, theirs = (
        np.mean([np.abs(p - a[v].probabilities).mean() for v, p in known.items()]) for a in (clusters, standard)
    )
    assert ours < 0.8 * theirs


@pytest.mark.parametrize("schedule", ["sequential", "flooding", "auto"])
def test_rounding_is_not_mistaken_for_impossibility(shared_data, schedule):
    """Clauses in loops drive messages out of the range of doubles, but assignments that satisfy them exist."""
    net, evidence, _ = load(shared_data, "2bitadd_11.cnf")
    answer = net.query(None, evidence, engine="bp", schedule=schedule, max_iter=60)
    assert np.isfinite(answer.log_evidence)
    assert all(np.isfinite(answer[v].probabilities).all() for v in answer)
