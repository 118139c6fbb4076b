r"""
Hyper-parameters: the best, the most probable, or all of them
=============================================================

Hennig, Probabilistic inference and learning, chapters "Hierarchical inference" and "Gaussian processes": parameters θ
of a kernel can be fitted by maximum likelihood, by the posterior with a prior on θ, or summed over by quadrature,
:math:`p(f) = \int p(f \mid \theta)\, p(\theta \mid y)\, d\theta \approx \sum_i \alpha_i\, p(f \mid \theta_i)`.

We see the evidence over length scale and noise from only twelve points, where its peak is broad; the two points that
are chosen, the nodes of the quadrature, and the three bands: the average is the widest, as it does not forget that θ
is unknown.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rng = np.random.default_rng(11)
x = np.sort(rng.uniform(-4, 4, 12))[:, None]
y = np.sin(1.5 * x[:, 0]) + 0.3 * rng.normal(size=12)
kernel = gg.kernels.RBF(1.0) + gg.kernels.White(0.1)
prior = {"terms[0].length_scale": gg.gp.LogNormal(1.0, 0.7), "terms[1].variance": gg.gp.LogNormal(0.1, 1.0)}

ml = gg.GaussianProcessRegressor(kernel, n_restarts_optimizer=3, random_state=0).fit(x, y)
most_probable = gg.GaussianProcessRegressor(kernel, hyper_prior=prior, random_state=0).fit(x, y)
averaged = gg.GaussianProcessRegressor(
    kernel, hyper_prior=prior, integrate="quadrature", n_hyper=7, random_state=0
).fit(x, y)

# %%
# The log evidence over both parameters.
scales, noises = np.linspace(np.log(0.1), np.log(6), 50), np.linspace(np.log(0.005), np.log(2), 50)
surface = np.array([[ml.log_marginal_likelihood(np.array([a, b])) for a in scales] for b in noises])
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
shade = ax.contourf(np.exp(scales), np.exp(noises), np.maximum(surface, surface.max() - 8), levels=16, cmap="Blues")
figure.colorbar(shade, ax=ax, label="log evidence")
ax.plot(*np.exp(ml.kernel_.theta), "s", color="#b3261e", label="maximum likelihood")
ax.plot(*np.exp(most_probable.kernel_.theta), "^", color="#8a4b00", label="most probable, with a prior")
ax.set(
    title="Evidence of twelve points", xlabel="length scale", ylabel="variance of the noise", xscale="log", yscale="log"
)
ax.set_xticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
ax.minorticks_off()
ax.legend(fontsize=8, loc="upper right")

# %%
# The three predictions.
grid = np.linspace(-6, 6, 200)[:, None]
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
width = {}
for model, name, color in (
    (averaged, "averaged", "#57606a"),
    (most_probable, "most probable", "#8a4b00"),
    (ml, "maximum likelihood", "#b3261e"),
):
    mean, std = model.predict(grid, return_std=True)
    width[name] = std
    ax.plot(grid, mean, color=color, label=name)
    ax.plot(grid, np.column_stack([mean - 2 * std, mean + 2 * std]), "--", lw=0.8, color=color)
ax.plot(x, y, "o", color="black", ms=4)
ax.set(title="Mean and two deviations", xlabel="x", ylabel="y")
figure.legend(loc="outside lower center", ncols=3)

# %%
# The numbers of the text
# -----------------------
# Each choice is the top of its objective, and quadrature agrees with a fine grid over θ.
assert ml.log_marginal_likelihood_value_ >= surface.max() - 1e-6
of_scale, of_noise = (p.log_density(np.array(t)) for p, t in zip(prior.values(), (scales, noises), strict=True))
objective = surface + of_scale[None, :] + of_noise[:, None]
p = np.exp(objective - objective.max())[::4, ::4]
processes = [
    [gg.GaussianProcessRegressor(kernel.with_theta([a, b]), optimizer=None).fit(x, y) for a in scales[::4]]
    for b in noises[::4]
]
means = np.array([[process.predict([[0.0]])[0] for process in row] for row in processes])
assert abs(averaged.predict([[0.0]])[0] - (p * means).sum() / p.sum()) < 0.02
assert width["averaged"].mean() > width["maximum likelihood"].mean()
best = np.unravel_index(objective.argmax(), objective.shape)
assert np.abs(most_probable.kernel_.theta - [scales[best[1]], noises[best[0]]]).max() < 0.13  # the grid's step
