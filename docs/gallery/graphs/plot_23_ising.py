"""
Ising models and Boltzmann machines
===================================

Two spins with ψ(x₁, x₂) = exp(a x₁ x₂) are the smallest Markov random field: p(1, 1) = e^a / (2e^a + 2e^−a). Zhu,
*Graphical models and kernel methods* ("Log-linear models", "The Ising model"), goes on to grids, where a Gibbs
sampler only looks at the neighbors; Hennig, *Probabilistic inference and learning* (table 2), lists the Boltzmann
machine, the same family on any graph, among the exponential families.

We see how the coupling decides between order and disorder, and three temperatures of one grid.
"""

# %%
# Two nodes: positive couplings favor equal spins, negative ones different spins.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

pair = ("x0_0", "x0_1")
couplings = np.linspace(-2, 2, 41)
tables = [gg.models.ising_grid(1, 2, coupling=a).query(pair)[pair] for a in couplings]
fig, ax = plt.subplots(layout="constrained")
ax.plot(couplings, [t.prob("+1", "+1") for t in tables], color="#4c78a8", label="p(+1, +1) = p(−1, −1)")
ax.plot(couplings, [t.prob("+1", "-1") for t in tables], color="#b03a2e", label="p(+1, −1) = p(−1, +1)")
ax.set(xlabel="coupling a", ylabel="probability", title="Two spins")
ax.legend(loc="center right")

# %%
# A Boltzmann machine: every pair may interact. Its mean parameters E[x_i] and E[x_i x_j] are what maximum likelihood
# matches; here they are computed exactly for six units.
rng = np.random.default_rng(0)
W = np.triu(rng.normal(size=(6, 6)), 1)
machine = gg.models.boltzmann_machine(W + W.T, rng.normal(size=6))
names = machine.variables
pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
moments = {(a, b): machine.query((a, b))[a, b].probabilities[1, 1] for a, b in pairs}
strongest = max(moments, key=moments.get)
print(f"E[x_i x_j] is largest for {strongest}: {moments[strongest]:.3f}")
machine.plot(machine.query())

# %%
# Gibbs sampling on a grid of 64 × 64 spins. Given its neighbors a spin is +1 with probability σ(2β Σ x_t); all black
# fields of a checkerboard can be drawn at once, then all white ones. In the infinite grid order begins at β = 0.4407.
board = np.add.outer(np.arange(64), np.arange(64)) % 2 == 0
temperatures = {"hot, β = 0.2": 0.2, "critical, β = 0.44": 0.44, "cold, β = 0.7": 0.7}
fig, axes = plt.subplots(1, 3, figsize=(7.5, 3), layout="constrained")
magnetization, agreement = {}, {}
for ax, (label, beta) in zip(axes, temperatures.items(), strict=True):
    x = rng.choice([-1, 1], size=(64, 64))
    magnetization[label] = []
    for _ in range(500):
        for color in (board, ~board):
            around = np.zeros((64, 64))
            around[1:] += x[:-1]
            around[:-1] += x[1:]
            around[:, 1:] += x[:, :-1]
            around[:, :-1] += x[:, 1:]
            up = rng.random((64, 64)) < 1 / (1 + np.exp(-2 * beta * around))
            x = np.where(color, np.where(up, 1, -1), x)
        magnetization[label].append(x.mean())
    agreement[label] = (x[1:] == x[:-1]).mean()
    ax.imshow(x, cmap="gray")
    ax.set(title=label, xticks=[], yticks=[])

# %%
# The mean spin along the three chains: hot chains forget within a sweep, critical ones wander, cold ones settle into
# large regions. Mixing is a property of the model, not of the sampler's code.
fig, ax = plt.subplots(layout="constrained")
for label, values in magnetization.items():
    ax.plot(values, label=label)
ax.set(xlabel="sweeps", ylabel="mean spin", title="Three chains", ylim=(-1, 1))
ax.legend(loc="best")

# %%
# The numbers of the text
# -----------------------
for a, table in zip(couplings, tables, strict=True):
    Z = 2 * np.exp(a) + 2 * np.exp(-a)
    assert abs(table.prob("+1", "+1") - np.exp(a) / Z) < 1e-12 and abs(table.prob("+1", "-1") - np.exp(-a) / Z) < 1e-12
# The Gibbs update of the text, for x ∈ {0, 1}: p(x_s = 1 | neighbors) = 1 / (1 + exp(−(θ_s + Σ θ_st x_t))).
J, theta = np.zeros((9, 9)), rng.normal(size=9)
for s in range(9):
    for t in [s + 1] * (s % 3 < 2) + [s + 3] * (s < 6):
        J[s, t] = J[t, s] = rng.normal()
grid = gg.models.boltzmann_machine(J, theta)
state = rng.integers(0, 2, size=9)
for s, name in enumerate(grid.variables):
    others = {v: str(state[t]) for t, v in enumerate(grid.variables) if t != s}
    update = 1 / (1 + np.exp(-(theta[s] + J[s] @ state)))
    assert abs(grid.query(name, others)[name].prob("1") - update) < 1e-12
assert agreement["hot, β = 0.2"] < agreement["critical, β = 0.44"] < agreement["cold, β = 0.7"]
