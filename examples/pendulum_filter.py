"""A pendulum, seen through the height of its bob alone: kernel Bayes filter and extended Kalman filter.

The kernel filter has samples of the motion and of the readings, and no equation. The extended Kalman filter has the
equations and the noise levels, and linearizes them at its mean. The reading does not tell left from right, so that the
posterior has two peaks again and again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.embeddings import MeanEmbedding, conditional_operator, kernel_filter
from gramgraph.kernels import RBF

STEP, DRAG, PUSH, NOISE = 0.1, 0.05, 0.2, 0.1


def moved(state: Any, push: Any) -> Any:
    """(angle, speed) one step later."""
    angle, speed = state[..., 0], state[..., 1]
    speed = speed - STEP * (9.81 * np.sin(angle) + DRAG * speed) + push
    return np.stack([angle + STEP * speed, speed], axis=-1)


def run(rng: np.random.Generator, steps: int) -> tuple[Any, Any]:
    states = np.zeros((steps, 2))
    states[0] = [rng.uniform(-1.5, 1.5), rng.normal()]
    for t in range(1, steps):
        states[t] = moved(states[t - 1], PUSH * rng.normal())
    return states, np.cos(states[:, 0]) + NOISE * rng.normal(size=steps)


def on_circle(states: Any) -> Any:
    """The angle as a point of the circle, the speed in units of its usual size."""
    return np.column_stack([np.cos(states[:, 0]), np.sin(states[:, 0]), states[:, 1] / 3.0])


def extended_kalman(readings: Any, m: Any, P: Any) -> Any:
    """Means of the extended Kalman filter."""
    out = []
    for t, y in enumerate(readings):
        if t:
            F = np.array([[1.0, STEP], [0.0, 1.0]])
            F[1] = [-STEP * 9.81 * np.cos(m[0]), 1.0 - STEP * DRAG]
            F[0] = [1.0 + STEP * F[1, 0], STEP * F[1, 1]]
            g = np.array([STEP, 1.0]) * PUSH
            m, P = moved(m, 0.0), F @ P @ F.T + np.outer(g, g)
        h = np.array([-np.sin(m[0]), 0.0])
        gain = P @ h / (h @ P @ h + NOISE**2)
        m, P = m + gain * (y - np.cos(m[0])), P - np.outer(gain, h @ P)
        out.append(m)
    return np.array(out)


def main(samples: int = 2400, runs: int = 6, steps: int = 60) -> None:
    rng = np.random.default_rng(0)
    pairs = [run(rng, 30) for _ in range(samples // 30)]
    X = np.concatenate([on_circle(s) for s, _ in pairs])
    before = np.concatenate([on_circle(s[:-1]) for s, _ in pairs])
    after = np.concatenate([on_circle(s[1:]) for s, _ in pairs])
    y = np.concatenate([r for _, r in pairs])
    k = RBF(0.3)
    move = conditional_operator(before, after, kernel_x=k, kernel_y=k)
    see = conditional_operator(X, y, kernel_x=k)
    errors: dict[str, list[float]] = {"kernel Bayes filter": [], "extended Kalman filter": [], "no filter": []}
    for _ in range(runs):
        states, readings = run(rng, steps)
        truth = on_circle(states)
        start = MeanEmbedding.of(np.concatenate([on_circle(s[:1]) for s, _ in pairs]), kernel=k)
        found = np.array([b.mean() for b in kernel_filter(move, see, start, readings)])
        kalman = on_circle(extended_kalman(readings, np.array([0.3, 0.0]), np.diag([0.75, 1.0])))
        for name, states_found in (("kernel Bayes filter", found), ("extended Kalman filter", kalman)):
            errors[name].append(float(((states_found - truth)[5:, :2] ** 2).sum(axis=1).mean()))
        errors["no filter"].append(float(((X.mean(axis=0) - truth)[5:, :2] ** 2).sum(axis=1).mean()))
    print(
        f"Root mean squared error of the bob's position, {runs} runs of {steps} steps, {len(X)} samples to learn from:"
    )
    for name, values in errors.items():
        print(f"  {name:23s} {np.sqrt(np.mean(values)):.3f}")


if __name__ == "__main__":
    main()
