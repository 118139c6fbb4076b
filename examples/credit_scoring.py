"""Credit scoring by Gaussian process classification: who pays back, how sure is that, and what a wrong yes costs.

German credit: 1,000 loans with 20 columns (account, months, purpose, amount, savings, …), 700 of them paid back. Reads
german.data.gz from GRAMGRAPH_DATA (default ../shared/data). Each loan is judged by a model that learned from the other
nine of ten folds. The data's own cost table is used: a bad loan that is granted costs five, a good one that is refused
costs one. About a minute; a figure goes to demo/credit_scoring.png.
"""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import gramgraph as gg

COLUMNS = (
    "account", "months", "history", "purpose", "amount", "savings", "employed", "rate", "status", "guarantor",
    "resident", "property", "age", "plans", "housing", "credits", "job", "dependents", "telephone", "foreign",
)  # fmt: skip
FOLDER = Path("demo")
REFUSED_GOOD, GRANTED_BAD = 1.0, 5.0


def loans() -> tuple[pd.DataFrame, np.ndarray]:
    """The columns with their names, and whether the loan was paid back."""
    path = Path(os.environ.get("GRAMGRAPH_DATA", "../shared/data")) / "kernel" / "german.data.gz"
    if not path.exists():
        sys.exit(f"{path} is not there: set GRAMGRAPH_DATA to the folder with the data")
    with gzip.open(path, "rt") as lines:
        frame = pd.read_csv(lines, sep=r"\s+", header=None)
    return frame.drop(columns=20).set_axis(list(COLUMNS), axis=1), np.where(frame[20] == 1, "paid", "default")


def features(frame: pd.DataFrame) -> pd.DataFrame:
    """A column of zeros and ones for each label, numbers on their scale; all of unit spread."""
    numbers = frame.assign(months=np.log(frame["months"]), amount=np.log(frame["amount"]))
    X = pd.get_dummies(numbers, dtype=float)
    return (X - X.mean()) / X.std()


def log_loss(p: np.ndarray, paid: np.ndarray) -> float:
    return float(-np.log(np.where(paid, p, 1.0 - p)).mean())


def area(p: np.ndarray, paid: np.ndarray) -> float:
    """P(a payer is said to be safer than a defaulter), the area under the curve."""
    gap = p[paid][:, None] - p[~paid]
    return float((gap > 0).mean() + 0.5 * (gap == 0).mean())


def main() -> None:
    frame, y = loans()
    X, paid = features(frame).to_numpy(), y == "paid"
    folds = np.random.default_rng(0).permutation(len(y)) % 10
    averaged, plugged, straight, low, high = np.empty((5, len(y)))
    kernel = 1.0 * gg.kernels.RBF(10.0)
    for fold in range(10):
        train, test = folds != fold, folds == fold
        first = gg.GaussianProcessClassifier(kernel, mean="constant").fit(X[train], paid[train])
        model = gg.GaussianProcessClassifier(first.kernel_, optimizer=None, inference="ep", mean="constant")
        model.fit(X[train], paid[train])  # the kernel by Laplace's approximation, the posterior by a closer one
        averaged[test] = model.predict_proba(X[test])[:, 1]
        plugged[test] = model.predict_proba(X[test], average=False)[:, 1]
        mean, var = model.latent_mean_and_variance(X[test])
        low[test], high[test] = (1.0 / (1.0 + np.exp(-mean - side * np.sqrt(var))) for side in (-2.0, 2.0))
        line = gg.BayesianLogisticRegression(prior="evidence").fit(X[train], paid[train])
        straight[test] = line.predict_proba(X[test])[:, 1]
    kernel = model.kernel_
    print(f"{len(y)} loans, {paid.mean():.0%} paid back; the last kernel: {kernel}, mean {model.beta_[0]:+.2f}")
    print("\nleft out of ten folds            log loss   area under the curve")
    for name, p in (
        ("averaged over the posterior", averaged),
        ("plugged in at its mean", plugged),
        ("Bayesian logistic regression", straight),
        ("share of payers for everyone", np.full(len(y), paid.mean())),
    ):
        print(f"  {name:30s} {log_loss(p, paid):8.4f} {area(p, paid):10.3f}")

    limit = GRANTED_BAD / (REFUSED_GOOD + GRANTED_BAD)
    yes = averaged > limit
    cost = GRANTED_BAD * (yes & ~paid).mean() + REFUSED_GOOD * (~yes & paid).mean()
    print(
        f"\nA bad loan granted costs {GRANTED_BAD:g}, a good one refused {REFUSED_GOOD:g}: lend where p > {limit:.2f}"
    )
    print(
        f"  yes to {yes.mean():.0%}: {cost:.2f} a loan; yes to all {GRANTED_BAD * (~paid).mean():.2f}, to none "
        f"{REFUSED_GOOD * paid.mean():.2f}"
    )
    at = int(np.argmax(high - low))
    who = frame.iloc[at]
    print(f"\nThe applicant known least about: {who['amount']} marks for {who['months']} months, age {who['age']}")
    print(f"  p(paid) = {averaged[at]:.2f}; two deviations reach from {low[at]:.2f} to {high[at]:.2f}: ask a person.")
    print(
        "\nReading: nearly all that the columns say is said by their sum: the process learns a long scale and agrees\n"
        "with a logistic regression. Averages over the posterior are less sure than the plug-in. With costs of five\n"
        "to one a careful lender says no far more often than the bank did."
    )
    picture(frame, averaged, plugged, paid, limit)


def picture(frame: pd.DataFrame, p: np.ndarray, plugged: np.ndarray, paid: np.ndarray, limit: float) -> None:
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        print("\nmatplotlib is not installed: no figure")
        return
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
    shade = left.scatter(frame["months"], frame["amount"], c=p, s=12, cmap="RdYlGn", vmin=0, vmax=1)
    figure.colorbar(shade, ax=left, label="p(paid), averaged")
    left.set(xlabel="months", ylabel="amount", yscale="log", title="loans left out")
    middle.plot([0, 1], [0, 1], color="#999999", linewidth=1)
    middle.scatter(plugged, p, s=8, color="#4c72b0")
    middle.set(xlabel="plug-in", ylabel="averaged", title="averages are less sure")
    edges = np.quantile(p, np.linspace(0, 1, 9))
    group = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, 7)
    said, happened = (np.array([x[group == g].mean() for g in range(8)]) for x in (p, paid.astype(float)))
    right.plot([0, 1], [0, 1], color="#999999", linewidth=1)
    right.plot(said, happened, "o-", color="#4c72b0")
    right.axvline(limit, color="black", linewidth=0.8, linestyle=":")
    right.set(xlabel="said", ylabel="happened", title="reliability of loans left out")
    FOLDER.mkdir(exist_ok=True)
    figure.savefig(FOLDER / "credit_scoring.png", dpi=110)
    print(f"\nFigure: {FOLDER / 'credit_scoring.png'}")


if __name__ == "__main__":
    main()
