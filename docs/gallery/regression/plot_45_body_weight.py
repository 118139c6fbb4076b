"""
Body weight: slow change, the week, and what a diet did
=======================================================

Hennig, Probabilistic inference and learning, chapter "Practical examples", models body weight by Gaussian process
regression: a sum of kernels says what kinds of change there are, and the evidence says how large they are.

We see fourteen months of a bathroom scale (made here: some days missing, a better scale from day 150 on, a diet from
day 200 on), the terms of the model one by one, the weight ahead with its doubt, and the day on which 75 kg may be
reached.
"""

import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import gramgraph as gg
from gramgraph.kernels import Matern, Periodic

rng = np.random.default_rng(3)
days = np.arange(420.0)
water = np.zeros(420)
for i in range(1, 420):  # water and salt: a few days of memory
    water[i] = 0.6 * water[i - 1] + 0.25 * rng.normal()
truth = 81 + 0.9 * np.sin(2 * np.pi * days / 310 + 0.4) + 0.25 * np.cos(2 * np.pi * (days - 1) / 7) + water
truth -= 0.020 * np.maximum(days - 200, 0)
kept = np.sort(rng.choice(420, size=250, replace=False))
sd = np.where(kept > 150, 0.05, 0.35)
day, weight = days[kept], truth[kept] + sd * rng.normal(size=250)


def date(d):
    return np.datetime64("2025-01-06") + np.asarray(d).astype("timedelta64[D]")


# %%
# The model: slow change, days, a week, and a mean with a level and kilograms a day on the diet. The two scales enter
# as two variances of the noise.
kernel = 0.5 * Matern(80.0, nu=2.5) + 0.1 * Matern(3.0, nu=0.5) + 0.05 * Periodic(1.0, 7.0).fix("period")
trend = gg.gp.BasisMean(features=lambda X: np.column_stack([np.ones(len(X)), np.maximum(np.asarray(X)[:, 0] - 200, 0)]))
model = gg.GaussianProcessRegressor(kernel, alpha=sd**2, mean=trend).fit(day[:, None], weight)
level, slope = model.posterior_.trend.coef[:, 0]
doubt = np.sqrt(np.diag(model.posterior_.trend.cov))
print(model.kernel_)
print(f"diet: {1000 * slope:.0f} ± {2000 * doubt[1]:.0f} g a day (true: −20)")

# %%
# The measurements, the model, and half a year ahead.
ahead = np.arange(0.0, 600.0)
mean, std = model.predict(ahead[:, None], return_std=True)
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.fill_between(date(ahead), mean - 2 * std, mean + 2 * std, color="#cfe0f5", label="two deviations")
ax.plot(date(ahead), mean, color="#1f4e9c", lw=1, label="mean")
ax.plot(date(day), weight, ".", ms=3, color="black", label="measured")
ax.axhline(75, color="#b3261e", lw=1, label="75 kg")
ax.axvline(date(200), color="#57606a", ls=":", label="diet begins")
ax.xaxis.set_major_formatter(mdates.ConciseDateFormatter(ax.xaxis.get_major_locator()))
ax.set(title="Body weight", xlabel="date", ylabel="kg")
ax.legend(fontsize=8, loc="lower left")

# %%
# The terms of the model, each with its own doubt.
panels = gg.plot.plot_components(model, span=(0.0, 420.0), points=421, size=(7.0, 7.0))
for panel, title in zip(panels, ("level and diet", "slow change", "days", "week"), strict=True):
    panel.set_title(title, loc="left", fontsize=10)
    panel.set_ylabel("kg")
panels[-1].xaxis.set_major_formatter(lambda day, _: str(date(day)))
panels[-1].set_xlabel("date")

# %%
# When will 75 kg be reached?
below = norm.cdf((75 - mean) / std)
for d in (450, 520, 599):
    print(f"{date(d)}: {mean[d]:.1f} ± {2 * std[d]:.1f} kg, p(below 75 kg) = {below[d]:.2f}")

# %%
# The numbers of the text
# -----------------------
# The text has no numbers for this study; what we put in comes out: the slope of the diet, and calibrated doubt.
assert abs(slope + 0.020) < 2.5 * doubt[1] and doubt[1] < 0.02
left_out = model.loo_
inside = np.mean(np.abs(weight - left_out.mean) < 2 * np.sqrt(left_out.var))
assert 0.90 < inside < 0.99
