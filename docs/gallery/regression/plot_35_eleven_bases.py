r"""
Eleven bases for one regression
===============================

Hennig, Probabilistic inference and learning, chapter "Parametric Gaussian regression" (Feature functions), shows that
the choice of :math:`\phi(x)` is free: the posterior of the weights is the same linear algebra every time. The text
draws polynomials, sines, pixels, switches, V shapes, Legendre and Laguerre polynomials, Eiffel towers and bell
curves; Triebel, Machine learning for computer vision, section 3, adds Gaussian and sigmoid functions.

We see the functions, and below what each of them makes of the same 25 points: α and β are learned by the evidence.
Far from the points each basis goes on in its own way.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rng = np.random.default_rng(1)
x = np.sort(rng.uniform(-6, 6, 25))
y = 2 * np.tanh(x) + np.cos(1.3 * x) + 0.3 * rng.normal(size=25)
grid = np.linspace(-8, 8, 400)[:, None]
at = np.arange(-7.0, 8.0)
bases = {
    "polynomial": gg.gp.PolynomialBasis(5),
    "Fourier": gg.gp.FourierBasis(4, period=16.0),
    "Legendre": gg.gp.LegendreBasis(7, -8, 8),
    "Laguerre": gg.gp.LaguerreBasis(4),
    "Gaussian": gg.gp.GaussianBasis(at, 1.0),
    "bell": gg.gp.BellBasis(at, 1.0),
    "Eiffel tower": gg.gp.LaplaceBasis(at, 1.0),
    "sigmoid": gg.gp.SigmoidBasis(at, 0.5),
    "switch": gg.gp.SwitchBasis(at),
    "pixel": gg.gp.PixelBasis(at),
    "V": gg.gp.VBasis(at),
}

# %%
# The functions.
figure, axes = plt.subplots(4, 3, figsize=(7, 8), layout="constrained")
for ax, (name, basis) in zip(axes.flat, bases.items(), strict=False):
    ax.plot(grid, basis.transform(grid)[:, 1:])
    ax.set(title=name, xlabel="x", ylabel="φ(x)")
axes.flat[-1].axis("off")

# %%
# What they make of the points: mean and two standard deviations. The last panel compares the log evidence.
figure, axes = plt.subplots(4, 3, figsize=(7, 8), layout="constrained")
evidence = {}
for ax, (name, basis) in zip(axes.flat, bases.items(), strict=False):
    model = gg.BayesianLinearRegression(basis).fit(x[:, None], y)
    evidence[name] = model.log_evidence_
    mean, std = model.predict(grid, return_std=True)
    ax.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, color="#cfe0f5")
    ax.plot(grid, mean, color="#1f4e9c")
    ax.plot(x, y, ".", color="black")
    ax.set(title=name, xlabel="x", ylabel="y", ylim=(-6, 6))
ranked = sorted(evidence, key=evidence.get)
axes.flat[-1].barh(ranked, [evidence[name] for name in ranked], color="#1f4e9c")
axes.flat[-1].tick_params(axis="y", labelsize=8)
axes.flat[-1].set(title="log evidence", xlim=(min(evidence.values()) - 5, max(evidence.values()) + 2))

# %%
# The numbers of the text
# -----------------------
# Every basis is the formula that the text writes.
a = 2.0
point = np.array([[3.5]])
assert np.allclose(gg.gp.PolynomialBasis(7).transform(point)[0], 3.5 ** np.arange(8))
assert np.allclose(gg.gp.FourierBasis(1).transform(point)[0, 1:], [np.cos(3.5), np.sin(3.5)])
assert gg.gp.PixelBasis([a]).transform([[2.5], [3.5]])[:, 1].tolist() == [1.0, -1.0]
assert gg.gp.SwitchBasis([a]).transform([[1.5], [3.5]])[:, 1].tolist() == [1.0, 0.0]
assert gg.gp.VBasis([a]).transform(point)[0, 1] == abs(3.5 - a) - a
assert np.isclose(gg.gp.LaplaceBasis([a]).transform(point)[0, 1], np.exp(-abs(3.5 - a)))
assert np.isclose(gg.gp.BellBasis([a]).transform(point)[0, 1], np.exp(-((3.5 - a) ** 2)))
assert np.isclose(gg.gp.LegendreBasis(2).transform([[0.5]])[0, 2], (3 * 0.5**2 - 1) / 2)
assert np.isclose(gg.gp.LaguerreBasis(2).transform(point)[0, 2], (3.5**2 - 4 * 3.5 + 2) / 2)
assert np.isclose(gg.gp.GaussianBasis([a]).transform(point)[0, 1], np.exp(-((3.5 - a) ** 2) / 2))
assert np.isclose(gg.gp.SigmoidBasis([a]).transform(point)[0, 1], 1 / (1 + np.exp(-(3.5 - a))))
