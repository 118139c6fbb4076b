"""Scores of a known graph on published data, against values that another library (pgmpy 1.1.2) computed."""

import os
from pathlib import Path

import pandas as pd
import pytest

import gramgraph as gg

DATA = Path(os.environ.get("GRAMGRAPH_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "bn_data"
FILE = DATA / "learning.test.csv.gz"


@pytest.mark.skipif(not FILE.exists(), reason="the shared data (GRAMGRAPH_DATA) hold no bn_data/learning.test.csv.gz")
@pytest.mark.parametrize(
    ("score", "expected"),
    [
        ("bic", -24006.734232498166),
        ("aic", -23873.131772074135),
        ("k2", -23958.695337811467),
        ("bdeu", -23967.64962540108),
    ],
)
def test_scores_of_the_learning_test(score, expected):
    frame = pd.read_csv(FILE, dtype=str)
    states = {name: sorted(frame[name].unique()) for name in frame}
    net = gg.BayesianNetwork("A -> B; A -> D <- C; B -> E <- F", states=states)
    assert gg.learn.score(net, frame, score, equivalent_sample_size=10) == pytest.approx(expected, rel=1e-12)
    found = gg.learn_structure(frame, method="exact", score=score)
    assert found.report.score >= expected - 1e-9
