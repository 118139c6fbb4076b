"""
Burglary, earthquake, alarm
===========================

A burglar or an earthquake sets off the alarm, and John and Mary may call. Zhu, *Graphical models and kernel methods*,
uses the network to show that a product of small tables is a joint distribution: p(B, ¬E, A, J, ¬M) ≈ 0.000253.
Hennig, *Probabilistic inference and learning* ("Probabilistic reasoning"), counts what a joint would cost without a
graph.

We see the joint probability of one story, explaining away, and numbers that need not be stored.
"""

# %%
# Five small tables. Where the figure of the text is not transcribed, the numbers are those of the example's source
# (Russell and Norvig).
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

net = gg.BayesianNetwork(
    "burglary -> alarm <- earthquake; alarm -> john; alarm -> mary",
    cpds={
        "burglary": 0.001,
        "earthquake": 0.002,
        "alarm": {("no", "no"): 0.001, ("no", "yes"): 0.29, ("yes", "no"): 0.94, ("yes", "yes"): 0.95},
        "john": {"no": 0.05, "yes": 0.90},
        "mary": {"no": 0.01, "yes": 0.70},
    },
)
story = {"burglary": "yes", "earthquake": "no", "alarm": "yes", "john": "yes", "mary": "no"}
p_story = np.exp(net.joint_log_prob(story))
print(f"p(story) = {p_story:.6f}")
calls = {"john": "yes", "mary": "yes"}
net.plot(net.query(evidence=calls), evidence=calls)

# %%
# Explaining away: both neighbors call, which points to a burglar; news of an earthquake takes most of that back,
# although burglars and earthquakes have nothing to do with each other.
cases = {
    "nothing known": {},
    "John calls": {"john": "yes"},
    "and Mary calls": calls,
    "and there was an earthquake": {**calls, "earthquake": "yes"},
}
belief = [net.query("burglary", given)["burglary"].prob("yes") for given in cases.values()]
fig, ax = plt.subplots(layout="constrained", figsize=(6.4, 3.4))
bars = ax.barh(list(cases), belief, color="#4c78a8")
ax.bar_label(bars, fmt="%.4f", padding=3)
ax.invert_yaxis()
ax.set(xlabel="p(burglary | …)", title="Explaining away", xlim=(0, 0.36))

# %%
# What a graph saves: a joint of N binary variables has 2^N − 1 numbers, a network one number for each row of each
# table. With at most k parents that is less than N 2^k.
N = np.arange(2, 31)
fig, ax = plt.subplots(layout="constrained")
ax.semilogy(N, 2.0**N - 1, color="#b03a2e", label="joint table, 2^N − 1")
for k in (2, 1):
    ax.semilogy(N, [sum(2 ** min(i, k) for i in range(n)) for n in N], label=f"network, {k} parent{'s'[: k - 1]} each")
ax.semilogy([5], [net.n_parameters], "o", color="#52606d", label=f"burglary: {net.n_parameters} instead of 31")
ax.set(xlabel="number of variables N", ylabel="free parameters", title="Counting parameters")
ax.legend(loc="upper left")

# %%
# The numbers of the text
# -----------------------
assert abs(p_story - 0.001 * 0.998 * 0.94 * 0.9 * 0.3) < 1e-15 and round(p_story, 6) == 0.000253
assert net.n_parameters == 1 + 1 + 4 + 2 + 2
assert 2**26 - 1 == 67_108_863  # the joint of 26 binary variables
assert belief[3] < belief[2] / 50 and net.is_dseparated("burglary", "earthquake")
