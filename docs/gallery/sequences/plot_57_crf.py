r"""
Labels of a tour: a random field on top of a local classifier
=============================================================

Triebel, Machine learning for computer vision, section 4a (Conditional random fields): potentials are :math:`\exp(w^T
f(x_C, y_C))`, and f may be the output of any local classifier; a Gaussian prior on w keeps it small.

We see a robot that walks through corridor, office and kitchen. A classifier that looks at one scan at a time errs
again and again; a chain that takes its log probabilities as features learns how far to trust them, and that rooms do
not change at every step.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rooms = ["corridor", "office", "kitchen"]
moves = np.array([[0.90, 0.06, 0.04], [0.12, 0.88, 0.0], [0.15, 0.0, 0.85]])
rng = np.random.default_rng(0)


def tour(n):
    """Rooms, and two numbers of each scan: width of the free space and clutter."""
    labels = [0]
    while len(labels) < n:
        labels.append(int(rng.choice(3, p=moves[labels[-1]])))
    scans = np.array([[1.5, 0.2], [3.0, 0.9], [2.6, 1.4]])[labels] + rng.normal(size=(n, 2)) * [0.9, 0.5]
    return scans, [rooms[label] for label in labels]


train = [tour(60) for _ in range(30)]
test = [tour(60) for _ in range(20)]

# %%
# The local classifier: a Gaussian for each room.
scans, labels = np.vstack([s for s, _ in train]), np.concatenate([r for _, r in train])
local = gg.GaussianClassifier("own").fit(scans, labels)


def features(s):
    return [dict(zip(local.classes_.tolist(), map(float, row), strict=True)) for row in local.predict_log_proba(s)]


# %%
# The field: its features are the classifier's log probabilities, its transitions are learned.
crf = gg.LinearChainCRF(c2=0.1, all_possible_transitions=True, all_possible_states=True)
crf.fit([features(s) for s, _ in train], [r for _, r in train])
said = [local.predict(s) for s, _ in test]
together = crf.predict([features(s) for s, _ in test])
right = [
    np.mean([np.mean(np.array(a) == np.array(r)) for a, (_, r) in zip(answers, test, strict=True)])
    for answers in (said, together)
]
print(f"scan by scan {right[0]:.1%} right, as a field {right[1]:.1%}")

# %%
# One tour: the truth, both answers, and the probabilities of the rooms.
s, r = test[1]
figure, (top, bottom) = plt.subplots(2, 1, figsize=(7, 4.4), layout="constrained", sharex=True)
rows = {"truth": r, "scan by scan": said[1].tolist(), "field": together[1]}
top.imshow(
    [[rooms.index(x) for x in row] for row in rows.values()], aspect="auto", cmap="viridis", interpolation="nearest"
)
top.set_yticks(range(3), rows)
top.set_title("Corridor (dark), office, kitchen (light)")
probability = np.array([[m[room] for room in rooms] for m in crf.predict_marginals_single(features(s))])
bottom.stackplot(np.arange(60), probability.T, labels=rooms, colors=["#440154", "#21918c", "#fde725"])
bottom.set(xlabel="step", ylabel="probability", xlim=(-0.5, 59.5), ylim=(0, 1))
bottom.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))

# %%
# The numbers of the text
# -----------------------
# p(y | x) sums to one over all labellings of a short tour, marginals are those of the same field as a Markov network,
# and the field is better than its own feature.
short = features(s[:4])
total = sum(np.exp(crf.log_likelihood([short], [list(y)])[0]) for y in product(rooms, repeat=4))
assert abs(total - 1) < 1e-9
net = crf.to_network(short)
name = net.variables[2]
answer, marginal = net.query(name)[name].to_dict(), crf.predict_marginals_single(short)[2]
assert all(abs(answer[str(room)] - marginal[room]) < 1e-9 for room in rooms)
assert right[1] > right[0] + 0.05
