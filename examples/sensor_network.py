"""A nonlinear sensor network with arbitrary missing sensors: posteriors, their errors and their calibration.

Thirty sensors hang from each other like a tree; each is a nonlinear function of its neighbor plus noise. In every case
another random half of them is silent. A linear-Gaussian network of the same shape stands beside the kernel tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import gramgraph as gg

RESPONSES = (
    lambda x: 1.2 * np.sin(2.0 * x),
    lambda x: 1.3 * (np.abs(x) - 0.8),
    lambda x: 1.2 * np.tanh(2.0 * x),
    lambda x: 0.85 * x,
)


def readings(n: int, seed: int, sensors: int = 30) -> pd.DataFrame:
    shape, rng = np.random.default_rng(7), np.random.default_rng(seed)
    X = np.zeros((n, sensors))
    X[:, 0] = rng.normal(size=n)
    for i in range(1, sensors):
        near, kind, sd = int(shape.integers(max(0, i - 6), i)), int(shape.integers(4)), shape.uniform(0.3, 0.6)
        X[:, i] = RESPONSES[kind](X[:, near]) + sd * rng.normal(size=n)
    return pd.DataFrame(X, columns=[f"s{i}" for i in range(sensors)])


def judged(net: Any, cases: pd.DataFrame, truth: pd.DataFrame) -> tuple[float, float, float]:
    """Error of the silent sensors' means, their log score, and the share inside the 90 % intervals."""
    answer = net.query(None, cases)
    errors, scores, inside = [], [], []
    for name in truth.columns:
        silent = cases[name].isna().to_numpy()
        x = truth[name].to_numpy()
        belief = answer[name]
        ends = belief.interval(0.9)
        errors.append((belief.mean() - x)[silent])
        scores.append(belief.log_score(x)[silent])
        inside.append(((ends[:, 0] <= x) & (x <= ends[:, 1]))[silent])
    error = np.sqrt(np.mean(np.concatenate(errors) ** 2))
    return float(error), float(np.concatenate(scores).mean()), float(np.concatenate(inside).mean())


def main(n: int = 4000, cases: int = 500) -> None:
    frame, truth = readings(n, 0), readings(cases, 1)
    gaps = truth.mask(np.random.default_rng(2).random(truth.shape) < 0.5)
    kernel = gg.learn_tree(frame)
    linear = gg.learn_tree(frame, edge="gaussian")
    print(f"{n} readings of {frame.shape[1]} sensors; {cases} cases, every sensor silent in half of them\n{kernel}\n")
    print("                 error   log score   in the 90 % interval")
    for name, net in (("kernel tree", kernel), ("linear Gaussian", linear)):
        error, score, share = judged(net, gaps, truth)
        print(f"{name:15s}  {error:.3f}   {score:8.3f}   {100 * share:.1f} %")
    broken = kernel.query("s1", {"s0": 1e6})["s1"]
    told = f"it is ignored ({broken.diagnostics['outside']})"
    print(
        f"\nA broken sensor reads 1,000,000: {told}, s1 stays at {broken.mean():.2f} ± {broken.sd():.2f}, its marginal"
    )


if __name__ == "__main__":
    main()
