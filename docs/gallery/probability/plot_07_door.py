"""
A robot in front of a door
==========================

A robot looks at a door with sensors that err, then closes it, which does not always succeed. Triebel, *Machine
learning for computer vision* (section 1), follows the belief by hand: 1/2 before, 2/3 after the first sensor, 5/8
after the second, and 1/16 that the door is still open after the action "close".

We ask a Bayesian network all of it at once, and then run the same as a Bayes filter, which needs only the last
belief.
"""

# %%
# Both sensors depend on the door and, given the door, not on each other: the Markov assumption as missing arrows.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

net = gg.BayesianNetwork(
    "door{closed|open} -> z1; door -> z2; door -> after{closed|open}",
    cpds={
        "door": [0.5, 0.5],
        "z1": {"closed": 0.3, "open": 0.6},
        "z2": {"closed": 0.6, "open": 0.5},
        "after": {"closed": [1, 0], "open": [0.9, 0.1]},  # "close" works in 90 % of all cases
    },
)
seen = {"z1": "yes", "z2": "yes"}
net.plot(net.query(evidence=seen), evidence=seen)

# %%
# Diagnostic reasoning, one observation after the other. The second light lowers the belief: it is lit more often when
# the door is closed.
one = net.query("door", {"z1": "yes"})["door"].prob("open")
two = net.query("door", seen)["door"].prob("open")
closed = net.query("after", seen)["after"].prob("open")
print(f"p(open | z1) = {one:.4f}, p(open | z1, z2) = {two:.4f}, p(open after closing) = {closed:.4f}")

# %%
# A filter forgets the past but for its belief: ``sense`` multiplies by a likelihood, ``act`` by a transition matrix
# (from each state to each state).
states = ("open", "closed")
robot = gg.sequences.BayesFilter([0.5, 0.5])
steps = [
    ("prior", robot.belief),
    ("sees z1", robot.sense([0.6, 0.3])),
    ("sees z2", robot.sense([0.5, 0.6])),
    ("closes", robot.act([[0.1, 0.9], [0.0, 1.0]])),
    ("sees z1", robot.sense([0.6, 0.3])),
    ("closes", robot.act([[0.1, 0.9], [0.0, 1.0]])),
]
beliefs = np.array([belief for _, belief in steps])

fig, ax = plt.subplots(layout="constrained")
ax.bar(range(len(steps)), beliefs[:, 0], color="#dd9a27", label="open")
ax.bar(range(len(steps)), beliefs[:, 1], bottom=beliefs[:, 0], color="#4c78a8", label="closed")
for k, p in enumerate(beliefs[:, 0]):
    ax.text(k, p + 0.02, f"{p:.3g}", ha="center", color="white" if p < 0.9 else "black")
ax.set_xticks(range(len(steps)), [f"{k}. {name}" if k else name for k, (name, _) in enumerate(steps)])
ax.set(xlabel="step", ylabel="belief", title="Sensing and acting", ylim=(0, 1))
ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))

# %%
# The numbers of the text
# -----------------------
assert abs(one - 2 / 3) < 1e-12
assert abs(two - 5 / 8) < 1e-12
assert abs(closed - 1 / 16) < 1e-12
assert np.allclose(beliefs[:4, 0], [1 / 2, 2 / 3, 5 / 8, 1 / 16], atol=1e-12)
