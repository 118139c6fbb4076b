"""Row F10: German credit, 1,000 loans with 20 features; probabilities held out by ten folds."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

import gramgraph as gg


@pytest.fixture(scope="module")
def loans(shared_data: Path) -> tuple[pd.DataFrame, np.ndarray]:
    path = shared_data / "kernel" / "german.data.gz"
    if not path.exists():
        pytest.skip("the German credit data are not there")
    with gzip.open(path, "rt") as lines:
        frame = pd.read_csv(lines, sep=r"\s+", header=None)
    X = pd.get_dummies(frame.drop(columns=20).rename(columns=str), dtype=float)
    X[["1", "4"]] = np.log(X[["1", "4"]])
    return (X - X.mean()) / X.std(), (frame[20] == 2).to_numpy().astype(int)


def held_out(make: Any, X: pd.DataFrame, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    averaged, plugged = np.empty(len(y)), np.empty(len(y))
    for inside, outside in StratifiedKFold(10, shuffle=True, random_state=0).split(X, y):
        model = make().fit(X.iloc[inside], y[inside])
        averaged[outside] = model.predict_proba(X.iloc[outside])[:, 1]
        plugged[outside] = model.predict_proba(X.iloc[outside], average=False)[:, 1]
    return averaged, plugged


def test_row_f10_bayesian_logistic_regression(loans: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = loans
    averaged, plugged = held_out(lambda: gg.BayesianLogisticRegression(prior="evidence"), X, y)
    assert log_loss(y, averaged) <= 0.535
    assert roc_auc_score(y, averaged) >= 0.75
    assert log_loss(y, averaged) <= log_loss(y, plugged)
