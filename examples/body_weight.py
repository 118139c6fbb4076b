"""Body weight from a bathroom scale: slow change, weekly rhythm, what a diet did, and when 75 kg will be reached.

The measurements are made here: 14 months, some days missing, two scales of different precision, a diet from day 200 on.
The model is a Gaussian process with a structured kernel (slow + days + week + noise) and a mean with two weights that
have vague priors: the level, and kilograms a day on the diet. A figure goes to demo/body_weight.png.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.stats import norm

import gramgraph as gg
from gramgraph.gp import BasisMean
from gramgraph.kernels import RBF, Matern, Periodic, White

FOLDER = Path("demo")
DIET = 200.0  # the day on which it began
TRUE_SLOPE = -0.020  # kg a day
GOAL = 75.0


def measurements(seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Day, weight in kg, and the variance of the scale that was used."""
    rng = np.random.default_rng(seed)
    day = np.arange(420.0)
    slow = 0.9 * np.sin(2 * np.pi * day / 310.0 + 0.4)
    week = 0.25 * np.cos(2 * np.pi * (day - 1.0) / 7.0)
    days = np.zeros(len(day))
    for t in range(1, len(day)):  # water and salt: a few days of memory
        days[t] = 0.6 * days[t - 1] + 0.25 * rng.normal()
    truth = 81.0 + slow + week + days + TRUE_SLOPE * np.maximum(day - DIET, 0.0)
    kept = np.sort(rng.choice(len(day), size=300, replace=False))
    precise = kept > 150  # a better scale was bought
    sd = np.where(precise, 0.05, 0.35)
    return day[kept], truth[kept] + sd * rng.normal(size=len(kept)), sd**2


def trend(X: np.ndarray) -> np.ndarray:
    """1, and the days on the diet."""
    return np.column_stack([np.ones(len(X)), np.maximum(np.asarray(X)[:, 0] - DIET, 0.0)])


def main() -> None:
    day, weight, variance = measurements()
    kernel = (
        0.5 * Matern(80.0, nu=2.5)
        + 0.1 * Matern(3.0, nu=0.5)
        + 0.05 * (Periodic(1.0, 7.0).fix("period") * RBF(200.0))
        + White(0.01)
    )
    model = gg.GaussianProcessRegressor(
        kernel,
        alpha=variance,  # the two scales
        mean=BasisMean(features=trend),
        n_restarts_optimizer=2,
        random_state=0,
    ).fit(day[:, None], weight)

    print(f"{len(day)} measurements on {int(day[-1]) + 1} days; {model.explanation_}")
    print(f"log evidence {model.log_marginal_likelihood_value_:.1f}, jitter {model.jitter_:g}")
    print(f"learned kernel: {model.kernel_}")
    level, slope = model.posterior_.trend.coef[:, 0]
    doubt = np.sqrt(np.diag(model.posterior_.trend.cov))
    print(f"level {level:.1f} ± {2 * doubt[0]:.1f} kg; diet {1000 * slope:.0f} ± {2000 * doubt[1]:.0f} g a day "
          f"(true: {1000 * TRUE_SLOPE:.0f})")  # fmt: skip

    ahead = np.arange(day[-1] + 1, day[-1] + 181)
    mean, std = model.predict(ahead[:, None], return_std=True)
    below = norm.cdf((GOAL - mean) / std)
    for step in (30, 90, 179):
        print(f"in {step + 1:3d} days: {mean[step]:.1f} ± {2 * std[step]:.1f} kg, "
              f"p(below {GOAL:g} kg) = {below[step]:.2f}")  # fmt: skip
    found = model.loo_
    gap = (weight - found.mean) / np.sqrt(found.var)
    print(f"leaving one out: {np.mean(np.abs(gap) < 2):.0%} within two deviations (95% expected)")
    print("Reading: the weekly term is small and regular; the new scale makes the days' term visible; the diet's\n"
          "slope is known less well than a straight line would claim: slow change explains a part too.")  # fmt: skip
    draw(model)


def draw(model: gg.GaussianProcessRegressor) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from gramgraph.plot import plot_components, plot_process

    FOLDER.mkdir(exist_ok=True)
    panels = plot_components(model, span=(0.0, 600.0), spans={3: (280.0, 287.0)}, points=1201, size=(7.0, 8.5))
    for ax, title in zip(panels, ("mean: level and diet", "slow change", "days", "one week"), strict=True):
        ax.set_title(title, fontsize=9, loc="left")
        ax.set_ylabel("kg")
    panels[-1].set_xlabel("day")
    panels[0].figure.savefig(FOLDER / "body_weight_terms.png", dpi=120)
    ax = plot_process(model, span=(0.0, 600.0), points=900, draws=3)
    ax.axhline(GOAL, color="#dd9a27", lw=1)
    ax.axvline(DIET, color="#7b8794", lw=0.8, ls=":")
    ax.set_xlabel("day")
    ax.set_ylabel("kg")
    ax.figure.set_size_inches(7.0, 3.6)
    ax.figure.savefig(FOLDER / "body_weight.png", dpi=120)
    print(f"Figures: {FOLDER / 'body_weight.png'}, {FOLDER / 'body_weight_terms.png'}")


if __name__ == "__main__":
    main()
