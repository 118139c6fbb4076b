"""
Max-sum, ties and back-tracking
===============================

The most probable assignment is found like a marginal, with max in place of the sum, in log space so that products of
many small numbers do not vanish. Triebel, *Machine learning for computer vision* (section 4a, "The max-sum
algorithm"), gives two warnings: the best state of every marginal need not be the best assignment, and where several
assignments are best, states must be picked by back-tracking, not one by one.

We see an example of each.
"""

# %%
# Two variables. Each marginal prefers 0, yet (0, 1) is the most probable pair.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

table = np.array([[0.30, 0.40], [0.30, 0.00]])
pair = gg.FactorGraph([(("x", "y"), table)], names=["f"], states={"x": ("0", "1"), "y": ("0", "1")})
best = pair.map_query()
marginal_modes = {name: pair.query(name)[name].mode() for name in ("x", "y")}
fig, ax = plt.subplots(layout="constrained", figsize=(5.5, 4))
ax.imshow(table, cmap="Blues", vmin=0, vmax=0.6)
for (i, j), p in np.ndenumerate(table):
    ax.text(j, i, f"{p:.1f}", ha="center", va="center", fontsize=13)
ax.add_patch(plt.Rectangle((0.5, -0.5), 1, 1, fill=False, edgecolor="#b03a2e", linewidth=3))
ax.set_xticks([0, 1], [f"y = 0\np = {table[:, 0].sum():.1f}", f"y = 1\np = {table[:, 1].sum():.1f}"])
ax.set_yticks([0, 1], [f"x = 0\np = {table[0].sum():.1f}", f"x = 1\np = {table[1].sum():.1f}"])
ax.set_title("The best pair (red) is not the pair of best states")
print(best.assignment, "against", marginal_modes)

# %%
# A chain that likes equal neighbors and has no other preference: all 0 and all 1 are equally good. Max-marginals tie
# everywhere, so states picked one by one may disagree. Back-tracking follows one solution.
chain = gg.models.ising_grid(1, 8, coupling=1.0)
sent = chain.to_factor_graph().max_sum()
names = chain.variables
ties = np.array([sent.max_marginal(name) for name in names])
picked = dict(zip(names, np.random.default_rng(0).choice(["-1", "+1"], size=8), strict=True))
followed = sent.assignment.assignment
print("max-marginals tie:", np.allclose(ties[:, 0], ties[:, 1]))
print(f"one by one:     {' '.join(picked[v] for v in names)}   log weight {chain.joint_log_prob(picked):.1f}")
print(f"back-tracking:  {' '.join(followed[v] for v in names)}   log weight {chain.joint_log_prob(followed):.1f}")

# %%
# Back-tracking by hand on a chain with 4 states: φ(x_n) remembers which predecessor was best. Gray lines are the
# pointers, the red one is the path that they trace back.
rng = np.random.default_rng(3)
N, K = 12, 4
T = rng.dirichlet(np.full(K, 0.7), K)
net = gg.models.markov_chain(N, K, initial=rng.dirichlet(np.ones(K)), transition=T)
score, pointers = np.log(net.cpt["x0"].values), []
for _ in range(1, N):
    through = score[:, None] + np.log(T)
    pointers.append(through.argmax(axis=0))
    score = through.max(axis=0)
path = [int(score.argmax())]
for back in reversed(pointers):
    path.append(int(back[path[-1]]))
path = path[::-1]
fig, ax = plt.subplots(layout="constrained")
for n, back in enumerate(pointers):
    for state, origin in enumerate(back):
        ax.plot([n, n + 1], [origin, state], color="#9aa5b1", linewidth=1)
ax.plot(path, "o-", color="#b03a2e", linewidth=2.5, label="most probable path")
ax.set(xlabel="place", ylabel="state", yticks=range(K), title="Pointers, and the path they trace back")
ax.legend(loc="upper left", bbox_to_anchor=(0, -0.12))

# %%
# The numbers of the text
# -----------------------
assert best.assignment == {"x": "0", "y": "1"} and marginal_modes == {"x": "0", "y": "0"}
assert abs(np.exp(best.log_prob) - 0.4) < 1e-12
assert np.allclose(ties[:, 0], ties[:, 1]) and len(set(followed.values())) == 1
assert chain.joint_log_prob(followed) > chain.joint_log_prob(picked)
found = net.map_query()
assert [int(found.assignment[f"x{n}"]) for n in range(N)] == path and abs(found.log_prob - score.max()) < 1e-12
