"""
Conjugate pairs and exponential families
========================================

An exponential family is exp(φ(x)ᵀw − log Z(w)). It has a conjugate prior, whose posterior only adds up sufficient
statistics: α + Σφ(x), ν + n. Hennig, *Probabilistic inference and learning* ("Exponential family"), also notes that
the gradient of log Z is the mean of φ, so that maximum likelihood is matching moments; OuYang, *Probabilistic machine
learning* (chapter 1), works out Beta and Dirichlet. In Hennig's Gaussian row the signs of
log Z are reversed; it is w₁²/(2w₂) − ½ log w₂ + log √(2π).

We watch three pairs learn, and check the gradients.
"""

# %%
# Three worlds, three priors, and the same call for all: ``stream`` gives the belief after every observation.
import base64
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation

import gramgraph as gg
from gramgraph import distributions as d

worlds = {
    "share of heads (Beta)": (gg.BetaBernoulli(1, 1), d.Bernoulli(0.3), (0.001, 0.999)),
    "calls an hour (Gamma)": (d.GammaPoisson(1, 0.2), d.Poisson(4.0), (0.01, 12)),
    "mean, noise known (Normal)": (d.NormalNormal(0, 9, 4), d.Normal(2.0, 4.0), (-6, 6)),
}
films = {}
for name, (prior, world, span) in worlds.items():
    data = world.sample(40, random_state=2)
    films[name] = ([prior, *prior.stream([x] for x in data)], world.mean, span)

# %%
# A film strip: the prior, and the belief after 1, 5 and 40 observations. The dotted line is the truth.
fig, axes = plt.subplots(3, 1, figsize=(6.4, 7.5), layout="constrained")
for ax, (name, (beliefs, truth, span)) in zip(axes, films.items(), strict=True):
    gg.plot.plot_densities({f"{k} data": beliefs[k].posterior for k in (0, 1, 5, 40)}, span=span, ax=ax)
    ax.axvline(truth, color="#52606d", linestyle=":")
    ax.set(xlabel=name, ylabel="density", title="", xlim=span)
    ax.legend(loc="upper right")
fig.suptitle("Conjugate updates")

# %%
# The same as a film.
fig, axes = plt.subplots(1, 3, figsize=(8, 3))
fig.subplots_adjust(left=0.07, right=0.98, bottom=0.18)
lines = []
for ax, (name, (beliefs, truth, span)) in zip(axes, films.items(), strict=True):
    x = np.linspace(*span, 200)
    lines.append((ax.plot(x, beliefs[0].posterior.density(x), color="#4c78a8")[0], x, beliefs))
    ax.axvline(truth, color="#52606d", linestyle=":")
    ax.set(xlabel=name, ylim=(0, 1.1 * np.max(beliefs[-1].posterior.density(x))), xlim=span)
axes[0].set_ylabel("density")


def show(frame):
    for line, x, beliefs in lines:
        line.set_ydata(beliefs[frame].posterior.density(x))
    axes[1].set_title(f"after {frame} observations")


movie = FuncAnimation(fig, show, frames=[0, 1, 2, 3, 5, 10, 20, 40], interval=500)


class Film:
    """A picture that moves, inside the page."""

    def _repr_html_(self):
        with tempfile.TemporaryDirectory() as folder:
            movie.save(Path(folder) / "film.gif", writer="pillow", dpi=80)
            data = base64.b64encode((Path(folder) / "film.gif").read_bytes()).decode()
        return f'<img alt="Densities after 0 to 40 observations" src="data:image/gif;base64,{data}">'


Film()

# %%
# Where mean and precision are both unknown, the prior is Normal-Gamma and the prediction Student's t: wider than a
# normal distribution while data are few.
both = d.NormalGamma(mean=0, count=1, shape=1, rate=1).update([1.2, 0.4, 2.2, 1.0])
print(both, both.predictive, sep="\n")

# %%
# The numbers of the text
# -----------------------
# ∇ log Z(w) = E[φ(x)] and ∇² log Z = Var[φ(x)], by differences; maximum likelihood matches moments; and the
# predictive is a ratio of normalizers, F(φ(x) + α, ν + 1) / F(α, ν).
families = (
    d.Bernoulli(0.3),
    d.Poisson(4.0),
    d.Normal(1.0, 2.0),
    d.Gamma(3.0, 2.0),
    d.Beta(2.0, 5.0),
    gg.Dirichlet([1, 2, 3]),
)
for p in families:
    w = np.asarray(p.natural_parameters)
    for i, step in enumerate(1e-5 * np.eye(len(w))):
        slope = (p.from_natural(w + step).log_partition - p.from_natural(w - step).log_partition) / 2e-5
        assert abs(slope - p.mean_parameters[i]) < 1e-6 * max(1, abs(slope))
        curve = (p.from_natural(w + step).mean_parameters - p.from_natural(w - step).mean_parameters) / 2e-5
        assert np.allclose(curve, p.log_partition_hessian[i], rtol=1e-5)
counts = np.array([3, 5, 4, 0, 7])
assert abs(d.Poisson.fit(counts).mean - counts.mean()) < 1e-12
coin = gg.BetaBernoulli(2, 3)
assert abs(np.exp(coin.update([1]).log_normalizer - coin.log_normalizer) - coin.predictive.density(1)) < 1e-12
assert both.predictive.dof == 2 * (1 + 4 / 2)
