"""
Trees: when to stop, what to cut, and why to grow a forest
==========================================================

Triebel, Machine learning for computer vision, section 5 (Decision trees): a leaf keeps the distribution of its
labels; growth stops when the gain is small, the depth is reached, the leaf is pure or too small; or a full tree is
grown first and pruned by cross-validation. Many trees on random subsets of rows and features (random forests) reduce
the variance.

We see the regions of a full tree, a pruned one and a forest, and errors against size. The trees are scikit-learn's;
afterwards the forest stands on an arrow of a network, and is asked for y although one of its features is not known.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

import gramgraph as gg

rng = np.random.default_rng(1)


def draw(n):
    X = rng.uniform(-1, 1, (n, 2))
    p = 1 / (1 + np.exp(-6 * (np.sin(3 * X[:, 0]) - X[:, 1])))
    return X, (rng.uniform(size=n) < p).astype(int), p


X, y, _ = draw(300)
new, y_new, p_new = draw(4000)

# %%
# Grown until every leaf is pure; pruned by cross-validated cost complexity; a forest of 200 trees.
full = DecisionTreeClassifier(random_state=0).fit(X, y)
alphas = full.cost_complexity_pruning_path(X, y).ccp_alphas
search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"ccp_alpha": np.unique(alphas[:-1].clip(0))}, cv=5).fit(
    X, y
)
pruned = search.best_estimator_
forest = RandomForestClassifier(200, min_samples_leaf=3, max_features=1, random_state=0).fit(X, y)
models = {
    f"full, {full.get_n_leaves()} leaves": full,
    f"pruned, {pruned.get_n_leaves()} leaves": pruned,
    "forest of 200": forest,
}
u, v = np.meshgrid(np.linspace(-1, 1, 120), np.linspace(-1, 1, 120))
figure, axes = plt.subplots(1, 3, figsize=(7, 2.9), layout="constrained", sharey=True)
error = {}
for ax, (name, model) in zip(axes, models.items(), strict=True):
    ax.contourf(
        u,
        v,
        model.predict_proba(np.column_stack([u.ravel(), v.ravel()]))[:, 1].reshape(u.shape),
        levels=10,
        cmap="RdBu_r",
    )
    ax.plot(u[0], np.sin(3 * u[0]), "k--", lw=1)
    error[name] = np.mean(model.predict(new) != y_new)
    ax.set(title=f"{name}\n{error[name]:.1%} wrong", xlabel="x1", ylim=(-1, 1))
    ax.title.set_fontsize(9)
axes[0].set_ylabel("x2")

# %%
# Stopping: the deeper the tree, the smaller the error it was trained on, and no other.
depths = range(1, 13)
inside, outside = [], []
for depth in depths:
    tree = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y)
    inside.append(np.mean(tree.predict(X) != y))
    outside.append(np.mean(tree.predict(new) != y_new))
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
ax.plot(depths, inside, "o-", color="#1a7f37", label="training points")
ax.plot(depths, outside, "o-", color="#b3261e", label="new points")
ax.axhline(np.mean(np.minimum(p_new, 1 - p_new)), color="black", ls=":", label="best possible")
ax.set(title="Depth", xlabel="largest depth", ylabel="share wrong")
ax.legend(fontsize=8)

# %%
# A forest as p(y | x1, x2) of a network: x2 need not be known.
x1, x2, label = gg.real("x1"), gg.real("x2"), gg.Var("y", (0, 1))
net = gg.BayesianNetwork(
    cpds=[
        gg.LinearGaussian(x1, sd=0.5),
        gg.LinearGaussian(x2, sd=0.5),
        gg.conditionals.Predictor(label, (x1, x2), forest),
    ]
)
some = net.query("y", {"x1": 0.5}, random_state=0)
print(some)

# %%
# The numbers of the text
# -----------------------
# A leaf's probability is the share of its labels; a stump has depth one; pruning helps, and the forest varies less.
leaf = pruned.apply(X)
shares = np.array([y[leaf == number].mean() for number in leaf])
assert np.allclose(pruned.predict_proba(X)[:, 1], shares)
names = list(models)
assert error[names[1]] < error[names[0]] and error[names[2]] < error[names[0]]
assert inside[-1] < 0.02 < outside[-1] and min(outside) < outside[-1]
second = 0.5 * np.random.default_rng(3).normal(size=4000)
by_draws = forest.predict_proba(np.column_stack([np.full(4000, 0.5), second]))[:, 1].mean()
assert abs(some["y"].probabilities[1] - by_draws) < 0.03
