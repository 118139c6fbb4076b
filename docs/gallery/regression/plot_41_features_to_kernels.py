r"""
More and more features until a kernel is left
=============================================

Hennig, Probabilistic inference and learning, chapter "Gaussian processes", lets the number of features grow while
each of them gets less weight, :math:`\Sigma = \sigma^2 \frac{c_{\max} - c_{\min}}{F} I`. Bell curves become the RBF
kernel, steps the Wiener process, ramps the cubic spline: infinitely many features for the price of one evaluation.

We see how fast :math:`\phi_a^T \Sigma \phi_b` settles, and draws of the three processes. For the bells the text
prints the factor :math:`\sqrt{2\pi}\,\lambda\sigma^2`; the integral of :math:`e^{-u^2/\lambda^2}` is
:math:`\sqrt{\pi}\,\lambda`, and that is the limit.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

lam, low, high = 0.7, -10.0, 20.0
points = np.linspace(0.3, 6, 25)[:, None]
bell_limit = np.sqrt(np.pi) * lam * gg.kernels.RBF(np.sqrt(2) * lam)
cases = {
    "bells → RBF": (low, lambda c: gg.gp.GaussianBasis(c, lam, bias=False).transform(points), bell_limit),
    "steps → Wiener": (0.0, lambda c: 1.0 - gg.gp.SwitchBasis(c, bias=False).transform(points), gg.kernels.Wiener()),
    "ramps → cubic spline": (0.0, lambda c: np.maximum(points - c, 0.0), gg.kernels.CubicSpline()),
}


def gap(start, features, kernel, F):
    """Largest distance between the features' Gram matrix and the kernel's."""
    c = start + (high - start) * (np.arange(F) + 0.5) / F
    Phi = features(c)
    return np.abs(Phi @ Phi.T * (high - start) / F - kernel.gram(points)).max()


# %%
# The distance to the limit, against the number of features.
numbers = [10, 30, 100, 300, 1000, 3000, 10000]
figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
gaps = {name: [gap(*case, F) for F in numbers] for name, case in cases.items()}
for name, values in gaps.items():
    ax.loglog(numbers, np.maximum(values, 1e-15), "o-", label=name)
ax.set(title="From features to kernels", xlabel="number of features F", ylabel="largest error of φᵀΣφ")
ax.legend(fontsize=8)

# %%
# Draws of the limits.
figure, axes = plt.subplots(1, 3, figsize=(7, 2.8), layout="constrained")
for ax, (name, (_, _, kernel)) in zip(axes, cases.items(), strict=True):
    gg.plot.plot_kernel_draws(kernel, span=(0.01, 6), random_state=0, ax=ax)
    ax.set(title=name.split("→ ")[1], xlabel="x", ylabel="f(x)")

# %%
# The numbers of the text
# -----------------------
# The limits hold, with √π and not √(2π); kernels are what the text writes.
assert gaps["bells → RBF"][-1] < 1e-9 and gaps["steps → Wiener"][-1] < 3e-3 and gaps["ramps → cubic spline"][-1] < 1e-4
printed = np.sqrt(2 * np.pi) * lam * gg.kernels.RBF(np.sqrt(2) * lam)
assert gap(low, cases["bells → RBF"][1], printed, 10000) > 0.5
a, b = 1.3, 2.9
assert abs(gg.kernels.Wiener(0.5).gram([a], [b])[0, 0] - (a - 0.5)) < 1e-12
cubic = (a - 0.5) ** 3 / 3 + abs(a - b) * (a - 0.5) ** 2 / 2
assert abs(gg.kernels.CubicSpline(0.5).gram([a], [b])[0, 0] - cubic) < 1e-12
assert abs(bell_limit.gram([a], [b])[0, 0] - np.sqrt(np.pi) * lam * np.exp(-((a - b) ** 2) / (4 * lam**2))) < 1e-12
