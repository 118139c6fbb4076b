r"""
A robot before a door, and a robot in a corridor
================================================

Triebel, Machine learning for computer vision, section 1: the Bayes filter alternates sensing, :math:`Bel(x) \propto
p(z \mid x) Bel(x)`, and acting, :math:`Bel(x) = \sum_{x'} p(x \mid u, x') Bel(x')`. Sensing a door twice gives 2/3
and 5/8 that it is open; closing it, 1/16.

We see these numbers, and the same two lines of algebra when x is a place: a robot in a round corridor of twenty cells
with three doors knows nothing at first, has as many peaks as there are doors after it saw one, and knows where it is
after it has passed all of them.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg
from gramgraph.sequences import BayesFilter

door = BayesFilter([0.5, 0.5])  # open, closed
first = door.sense([0.6, 0.3])[0]
second = door.sense([0.5, 0.6])[0]
after = door.act([[0.1, 0.9], [0.0, 1.0]])[0]
print(f"p(open): {first:.4f} after z1, {second:.4f} after z2, {after:.4f} after closing")

# %%
# The corridor: the sensor is right in nine of ten looks; a move of one cell stays or goes too far in 5 % each.
cells, doors = 20, [2, 4, 11]
has_door = np.isin(np.arange(cells), doors)
sees = np.where(has_door, 0.9, 0.1)
move = 0.05 * np.eye(cells) + 0.9 * np.roll(np.eye(cells), 1, axis=1) + 0.05 * np.roll(np.eye(cells), 2, axis=1)

rng = np.random.default_rng(2)
belief = BayesFilter(np.full(cells, 1 / cells))
place, history, places = 4, [belief.belief], [4]
for _ in range(40):
    belief.act(move)
    place = (place + rng.choice(3, p=[0.05, 0.9, 0.05])) % cells
    z = rng.uniform() < sees[place]
    belief.sense(sees if z else 1 - sees)
    history.append(belief.belief)
    places.append(place)
history = np.array(history)

# %%
# The belief over time: from nothing, over several peaks, to one.
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.8), layout="constrained")
left.imshow(history, aspect="auto", cmap="Blues", origin="lower", vmax=0.4)
left.plot(places, np.arange(41), ".", ms=4, color="#b3261e")
left.set(title="Belief, step by step (dots: truth)", xlabel="cell", ylabel="step")
for step, color in ((2, "#57606a"), (12, "#1f4e9c"), (40, "#b3261e")):
    right.plot(history[step], color=color, label=f"after {step} steps")
right.plot(doors, np.full(3, -0.01), "k^", ms=5, label="doors")
right.set(title="Three beliefs", xlabel="cell", ylabel="probability")
right.legend(fontsize=8)

# %%
# The numbers of the text
# -----------------------
# 2/3, 5/8 and 1/16, by the filter and by the network; in the corridor the robot is found.
assert abs(first - 2 / 3) < 1e-12 and abs(second - 5 / 8) < 1e-12 and abs(after - 1 / 16) < 1e-12
net = gg.datasets.door()
evidence = {"z1": net.states("z1")[1], "z2": net.states("z2")[1]}
assert abs(net.query("door", evidence)["door"].prob("open") - 5 / 8) < 1e-12
assert abs(net.query("after", evidence)["after"].prob("open") - 1 / 16) < 1e-12
near = (np.arange(-2, 3) + places[-1]) % cells
assert np.allclose(history.sum(axis=1), 1.0) and history[-1][near].sum() > 0.8 > history[2].max()
