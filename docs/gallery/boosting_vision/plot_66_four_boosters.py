r"""
Four boosters on one set of data, with wrong labels
===================================================

Triebel, Machine learning for computer vision, section 5: the exponential loss of AdaBoost weighs misclassified
examples very high; LogitBoost minimizes the log loss by weighted least squares (its :math:`z` needs :math:`t \in \{0,
1\}`, the decision the sign), GentleBoost takes gentler steps, gradient boosting works for any loss.

We see errors and log losses on new points, round by round, without and with 15 % of the training labels turned over:
AdaBoost and GentleBoost, which both go down the exponential loss, suffer more than LogitBoost. (The text says that
GentleBoost tends to be the best; on these data it is not.)
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rng = np.random.default_rng(0)
X, new = rng.normal(size=(600, 8)), rng.normal(size=(2000, 8))
y, y_new = ((x[:, :4] ** 2).sum(axis=1) > 3.36 for x in (X, new))
turned = np.where(rng.uniform(size=600) < 0.15, ~y, y)
boosters = {
    "AdaBoost": gg.AdaBoostClassifier(80),
    "LogitBoost": gg.LogitBoostClassifier(80),
    "GentleBoost": gg.GentleBoostClassifier(80),
    "gradient boosting": gg.GradientBoostingClassifier(80, max_depth=1, learning_rate=0.3),
}

# %%
# Both sets of labels.
figure, axes = plt.subplots(2, 2, figsize=(7, 5.4), layout="constrained", sharex=True)
last = {}
for column, labels, title in zip(axes.T, (y, turned), ("labels as they are", "15 % turned over"), strict=True):
    for name, booster in boosters.items():
        booster.fit(X, labels)
        p = np.clip(np.array([q[:, 1] for q in booster.staged_predict_proba(new)]), 1e-12, 1 - 1e-12)
        error = np.mean((p > 0.5) != y_new, axis=1)
        loss = -np.mean(np.where(y_new, np.log(p), np.log(1 - p)), axis=1)
        last[name, title] = error[-1], loss[-1]
        column[0].plot(error, label=name)
        column[1].plot(loss, label=name)
    column[0].set(title=title, ylim=(0, 0.5))
    column[1].set(xlabel="round", ylim=(0, 1.2))
axes[0, 0].set_ylabel("error on new points")
axes[1, 0].set_ylabel("log loss on new points")
axes[0, 1].legend(fontsize=8)

# %%
# The last round.
for (name, title), (error, loss) in last.items():
    print(f"{title:20s} {name:18s} error {error:.3f}   log loss {loss:.3f}")

# %%
# The numbers of the text
# -----------------------
# One round of LogitBoost by hand (π = ½, z = ±2, v = ¼): the stump is a weighted least-squares fit; then the claims
# about noise.
one = gg.LogitBoostClassifier(1).fit(X, y)
z = np.where(y, 2.0, -2.0)
side = one.decision_function(X) > one.decision_function(X).mean()
assert np.allclose(one.decision_function(X), np.where(side, z[side].mean(), z[~side].mean()), atol=1e-9)
gentle = gg.GentleBoostClassifier(1).fit(X, y)
s = np.where(y, 1.0, -1.0)
half = gentle.decision_function(X) > gentle.decision_function(X).mean()
assert np.allclose(gentle.decision_function(X), np.where(half, s[half].mean(), s[~half].mean()), atol=1e-9)
assert all(error < 0.2 for error, _ in last.values())
noisy = {name: loss for (name, title), (_, loss) in last.items() if title != "labels as they are"}
assert noisy["LogitBoost"] < min(noisy["AdaBoost"], noisy["GentleBoost"])
