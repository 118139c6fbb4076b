"""
Burglary by sampling
====================

How probable is a burglary given an earthquake and a call from Mary? Zhu, *Graphical models and kernel methods*
("Forward sampling", "Gibbs sampling"), answers by drawing: forward with rejection, and by Gibbs sampling in the order
B, A, J, whose transition matrix T has p(x | evidence) as its stationary distribution. Errors fall as O(1/m) in
variance; where a part of the expectation is known in closed form, it need not be drawn.

We see three samplers against the exact 0.0031607, the transition matrix itself, and what Rao–Blackwellization gains.
"""

# %%
# Forward draws are thrown away unless they match the evidence, which is rare here; weighting keeps all of them; a
# Gibbs chain starts from the evidence.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

net, seen = gg.datasets.burglary(), {"earthquake": "yes", "mary": "yes"}
exact = net.query("burglary", seen)["burglary"].prob("yes")
print(f"exact: {exact:.7f}; a forward draw matches with probability {np.exp(net.log_evidence(seen)):.5f}")
for engine in ("rejection", "likelihood_weighting", "gibbs"):
    answer = net.query("burglary", seen, engine=engine, budget=20_000, random_state=1)
    error = np.max(answer.details["standard_error"]["burglary"])
    print(f"{engine:20s} {answer['burglary'].prob('yes'):.5f} ± {error:.5f}")

# %%
# The transition matrix of one sweep B, A, J over the 8 states of (B, A, J). Each factor T_i redraws one variable from
# its conditional given all others and leaves the rest as they are.
free = ("burglary", "alarm", "john")
kernel = gg.gibbs_kernel(net, order=free, evidence=seen)
T, pi, labels = kernel.matrix, kernel.stationary, ("no", "yes")
states = [dict(zip(kernel.variables, (labels.index(x) for x in state), strict=True)) for state in kernel.states]
fig, ax = plt.subplots(layout="constrained")
image = ax.imshow(T, cmap="Blues", vmin=0, vmax=1)
names = ["".join(letter if x[v] else f"¬{letter}" for letter, v in zip("BAJ", free, strict=True)) for x in states]
ax.set_xticks(range(8), names, rotation=45)
ax.set_yticks(range(8), names)
ax.set(xlabel="to", ylabel="from", title="One sweep of Gibbs sampling given E and M")
fig.colorbar(image, label="probability")

# %%
# From one start to the stationary distribution: the distance shrinks by the second eigenvalue with every sweep, which
# is what burn-in waits for.
second = np.sort(abs(np.linalg.eigvals(T)))[-2]
distance, row = [], np.eye(8)[0]  # B = A = J = 0, as in the text
for _ in range(12):
    distance.append(abs(row - pi).sum() / 2)
    row = row @ T
fig, ax = plt.subplots(layout="constrained")
ax.semilogy(distance, "o-", color="#4c78a8", label="total variation from p(x | evidence)")
ax.semilogy(distance[0] * second ** np.arange(12), ":", color="#52606d", label=f"second eigenvalue {second:.3f}")
ax.set(xlabel="sweeps", ylabel="distance", title="Burn-in")
ax.legend(loc="upper right")

# %%
# 400 chains of 4,000 sweeps, from T. Counting B = 1 against averaging p(B = 1 | A, E): the second has the same mean
# and less variance. Both fall with 1/m.
rng = np.random.default_rng(0)
cdf, at = T.cumsum(axis=1), rng.choice(8, size=400, p=pi)
visits = np.empty((4000, 400), dtype=int)
for sweep in range(4000):
    at = visits[sweep] = (rng.random((400, 1)) > cdf[at]).sum(axis=1)
p_b = np.array([net.query("burglary", {"earthquake": "yes", "alarm": a})["burglary"].prob("yes") for a in labels])
burglary, alarm = np.array([x["burglary"] for x in states]), np.array([x["alarm"] for x in states])
m = np.arange(1, 4001)[:, None]
fig, ax = plt.subplots(layout="constrained")
variances = {}
for label, values in (("count B = 1", burglary[visits]), ("average p(B | A, E)", p_b[alarm[visits]])):
    variances[label] = ((values.cumsum(axis=0) / m - exact) ** 2).mean(axis=1)
    ax.loglog(m[9:], variances[label][9:], label=label)
ax.loglog(m[9:], exact * (1 - exact) / m[9:], ":", color="#52606d", label="p(1 − p)/m")
ax.set(xlabel="draws m", ylabel="mean squared error", title="Errors of 400 chains")
ax.legend(loc="best")

# %%
# The numbers of the text
# -----------------------
assert abs(exact - 0.0031607) < 5e-8
assert np.allclose(T.sum(axis=1), 1) and np.allclose(pi @ T, pi, atol=1e-14)  # π = Tπ, with π as a row
counted, averaged = variances.values()
assert 0.5 < counted[-1] * 4000 / (exact * (1 - exact)) < 2  # O(1/m): the chain mixes at once
assert averaged[-1] < counted[-1] / 10  # Rao–Blackwell
