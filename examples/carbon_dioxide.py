"""A record like that of carbon dioxide on Mauna Loa: trend, changing seasons, irregular years, and a forecast.

Monthly values of 45 years are made here. The kernel is a sum whose terms are read separately after learning; the last
ten years are held back and forecast. Figures go to demo/carbon_dioxide*.png.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import gramgraph as gg
from gramgraph.gp import LogNormal
from gramgraph.kernels import RBF, Matern, Periodic, RationalQuadratic, White

FOLDER = Path("demo")


def record(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Years and parts per million."""
    rng = np.random.default_rng(seed)
    t = 1975.0 + np.arange(45 * 12) / 12.0
    s = t - 1975.0
    trend = 330.0 + 1.2 * s + 0.012 * s**2
    season = (2.6 + 0.02 * s) * np.sin(2 * np.pi * t) + 0.8 * np.cos(4 * np.pi * t)
    irregular = np.zeros(len(t))
    for i in range(1, len(t)):  # years that are warmer or cooler
        irregular[i] = 0.96 * irregular[i - 1] + 0.12 * rng.normal()
    return t, trend + season + irregular + 0.15 * rng.normal(size=len(t))


def main() -> None:
    t, y = record()
    train = t < 2010.0
    kernel = (
        50.0**2 * RBF(50.0)
        + 2.0**2 * (Periodic(1.0, 1.0).fix("period") * Matern(80.0, nu=2.5))
        + 0.5**2 * RationalQuadratic(1.0, alpha=1.0)
        + White(0.04)
    )
    # a season is a curve of a few waves: without this prior a very stiff periodic term would compete with the level
    prior = {"terms[1].base.factors[0].length_scale": LogNormal(1.0, 0.3)}
    model = gg.GaussianProcessRegressor(kernel, mean="linear", hyper_prior=prior, random_state=0)
    model.fit(t[train][:, None], y[train])
    print(f"{train.sum()} months; {model.explanation_}")
    print(f"log evidence {model.log_marginal_likelihood_value_:.1f} after {model.search_.evaluations} evaluations")
    print("learned:", model.kernel_)

    mean, std = model.predict(t[~train][:, None], return_std=True)
    error = y[~train] - mean
    for years in (1, 3, 10):
        part = slice(0, 12 * years)
        inside = np.mean(np.abs(error[part]) < 2 * std[part])
        print(f"forecast of {years:2d} years: RMSE {np.sqrt(np.mean(error[part] ** 2)):.2f} ppm, "
              f"{inside:.0%} within two deviations (± {2 * std[part][-1]:.1f} at the end)")  # fmt: skip
    slope, doubt = model.predict_gradient(np.array([[1980.0], [2009.0]]), return_std=True)
    for year, value, sd in zip((1980, 2009), slope[:, 0], doubt[:, 0], strict=True):
        print(f"rate in January {year}, season included: {value:.1f} ± {2 * sd:.1f} ppm a year")
    print("Reading: the smooth term and the line carry the rise, the periodic term the seasons, whose size may drift;\n"
          "the rational quadratic takes irregular years. Bands widen where only the rise goes on.")  # fmt: skip
    draw(model, t, y)


def draw(model: gg.GaussianProcessRegressor, t: np.ndarray, y: np.ndarray) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from gramgraph.plot import plot_components, plot_evidence, plot_process

    FOLDER.mkdir(exist_ok=True)
    ax = plot_process(model, span=(1975.0, 2022.0), points=1200, draws=2)
    ax.plot(t[t >= 2010], y[t >= 2010], ".", ms=2, color="#dd9a27", label="held back")
    ax.set_ylabel("ppm")
    ax.legend(fontsize=8, frameon=False)
    ax.figure.set_size_inches(7.0, 3.8)
    ax.figure.savefig(FOLDER / "carbon_dioxide.png", dpi=120)
    panels = plot_components(model, span=(1975.0, 2015.0), points=1000, size=(7.0, 8.0))
    panels[0].figure.savefig(FOLDER / "carbon_dioxide_terms.png", dpi=120)
    ax = plot_evidence(model, "terms[1].variance", points=15, width=1.5)
    ax.figure.savefig(FOLDER / "carbon_dioxide_evidence.png", dpi=120)
    print(f"Figures: {FOLDER}/carbon_dioxide.png, carbon_dioxide_terms.png, carbon_dioxide_evidence.png")


if __name__ == "__main__":
    main()
