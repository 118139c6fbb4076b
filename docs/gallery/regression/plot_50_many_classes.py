"""
More than two classes: four ways to use support vectors
=======================================================

Triebel, Machine learning for computer vision, section 6 (Multiple classes), names one class against the rest, a
single objective for all classes, and pairs arranged in a directed acyclic graph (DAG-SVM); votes of all pairs are the
fourth way.

We see the four regions on one set of points: they differ where the classes meet and where no data are. On handwritten
digits they do nearly the same; what differs is the number of machines and how many of them have to be asked.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import gramgraph as gg

rng = np.random.default_rng(3)
centers = [(0, 0), (2.2, 0.4), (0.9, 2.0), (-1.6, 1.6)]
X = np.vstack([rng.normal(center, 0.65, (25, 2)) for center in centers])
t = np.repeat(np.arange(4), 25)


def machines(**options):
    return {
        "one against the rest": gg.SVC(gg.kernels.RBF(**options), C=5.0, multiclass="ovr"),
        "votes of all pairs": gg.SVC(gg.kernels.RBF(**options), C=5.0, multiclass="ovo"),
        "pairs in a graph": gg.SVC(gg.kernels.RBF(**options), C=5.0, multiclass="dag"),
        "one objective": gg.MulticlassSVC(kernel=gg.kernels.RBF(**options), C=5.0, random_state=0),
    }


# %%
# Four classes in the plane.
figure, axes = plt.subplots(2, 2, figsize=(7, 6), layout="constrained")
regions = {}
for ax, (name, machine) in zip(axes.flat, machines(length_scale=1.5).items(), strict=True):
    gg.plot.plot_decision_regions(machine.fit(X, t), X, t, ax=ax, resolution=60, support=False)
    ax.set(title=name, xlabel="x1", ylabel="x2")
    ax.get_legend().remove()
    regions[name] = machine.predict(np.random.default_rng(0).uniform(-3, 4, (2000, 2)))

# %%
# Ten digits, 300 images to learn from and 500 to judge.
images, digit = load_digits(return_X_y=True)
order = rng.permutation(len(digit))
images, digit = images[order], digit[order]
right = {}
for name, machine in machines(length_scale=25.0).items():
    right[name] = machine.fit(images[:300], digit[:300]).score(images[300:800], digit[300:800])
    print(f"{name:22s} {right[name]:.1%} right")

# %%
# The numbers of the text
# -----------------------
# The ways agree where it matters, and a graph of pairs is asked k − 1 times only; with two classes all are one
# machine.
agreement = [np.mean(regions[a] == regions[b]) for a in regions for b in regions]
assert min(agreement) > 0.75 and min(right.values()) > 0.9
assert max(right.values()) - min(right.values()) < 0.04
two = t < 2
answers = [machine.fit(X[two], t[two]).predict(X[two]) for machine in list(machines(length_scale=1.5).values())[:3]]
assert all(np.array_equal(answers[0], other) for other in answers[1:])
