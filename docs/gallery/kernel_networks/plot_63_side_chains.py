r"""
Side chains of a protein on a graph of contacts
===============================================

Parikh, Kernel graphical models: the goal is the most probable configuration of all side chains. Each is a direction,
residues that are near each other are joined by an edge, the kernel is :math:`K(p_i, p_j) = \exp(p_i^T p_j)`, and
belief propagation with kernels finds the answer on a graph with loops.

We see six residues, each with an angle that sits in one of three wells which its neighbors prefer or not. The library
learns the field from 800 molecules without knowing of wells. Two angles are measured; the others follow. (The
molecules are drawn here from a known field, so that the truth can be told.)
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gramgraph as gg

edges = [("r1", "r2"), ("r2", "r3"), ("r3", "r4"), ("r4", "r1"), ("r3", "r5"), ("r5", "r6")]
rng = np.random.default_rng(1)
prefer = {e: np.exp(1.5 * rng.normal(size=(3, 3))) for e in edges}
wells = gg.MarkovNetwork(factors=[(list(e), prefer[e]) for e in edges], states={f"r{i}": 3 for i in range(1, 7)})
names = [f"r{i}" for i in range(1, 7)]
center = np.array([-np.pi / 3, np.pi / 3, np.pi])

# %%
# Eight hundred molecules: wells from the field of contacts, angles around them.
hidden = wells.sample(800, random_state=0)[names].astype(str).apply(lambda c: c.map({"0": 0, "1": 1, "2": 2}))
angles = np.angle(np.exp(1j * (center[hidden.to_numpy()] + 0.25 * rng.normal(size=(800, 6)))))
frame = pd.DataFrame(angles, columns=names)
field = gg.learn_markov(frame, edges, domains=dict.fromkeys(names, "circle"), rank=6, penalty=0.003, cells=48)

# %%
# Two angles are known: r1 in the first well, r6 in the last. Beliefs of the others, by the junction tree or by loopy
# propagation.
known = {"r1": center[0], "r6": center[2]}
answer = field.query(None, known)
best = field.map_query(known).assignment
exact = wells.query(None, {"r1": wells.states("r1")[0], "r6": wells.states("r6")[2]})
grid = np.linspace(-np.pi, np.pi, 200)
figure, axes = plt.subplots(2, 2, figsize=(7, 4.4), layout="constrained")
for ax, name in zip(axes.flat, ("r2", "r3", "r4", "r5"), strict=True):
    ax.plot(np.degrees(grid), answer[name].density(grid), color="#1f4e9c", label="learned belief")
    p = exact[name].probabilities
    ax.bar(np.degrees(center) - 360 * (center > 3.1), p, width=18, color="#1a7f37", alpha=0.5, label="true wells")
    ax.axvline(np.degrees(best[name]), color="#b3261e", label="most probable")
    ax.set(title=name, xlabel="angle in degrees", ylabel="density", xlim=(-190, 180))
    ax.set_ylim(0, 1.25 * ax.get_ylim()[1])
figure.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
print(answer.engine, {name: round(float(np.degrees(value))) for name, value in best.items()})

# %%
# The numbers of the text
# -----------------------
# The kernel is the text's; beliefs of wells are near the true ones; the most probable configuration is that of the
# known field.
p, q = np.array([[0.6, 0.8, 0.0]]), np.array([[0.0, 0.6, 0.8]])
assert abs(gg.kernels.Directional(1.0).gram(p, q)[0, 0] - np.exp(p @ q.T)[0, 0]) < 1e-12
truth = wells.map_query({"r1": wells.states("r1")[0], "r6": wells.states("r6")[2]}).assignment
for name in ("r2", "r3", "r4", "r5"):
    distance = np.abs(np.angle(np.exp(1j * (center - best[name]))))
    assert wells.states(name)[int(distance.argmin())] == str(truth[name]) and distance.min() < 0.4
    shares = [
        answer[name].expect(lambda t, c=c: (np.abs(np.angle(np.exp(1j * (t - c)))) < np.pi / 3).astype(float))
        for c in center
    ]
    assert np.abs(np.array(shares) - exact[name].probabilities).max() < 0.15
