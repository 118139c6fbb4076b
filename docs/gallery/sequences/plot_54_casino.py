"""
The dishonest casino
====================

Triebel, Machine learning for computer vision, section 5 (Hidden Markov models): a fair die is at times swapped for a
loaded one, and only the rolls are seen. The three operations on the sixty rolls of the text: their likelihood (filter
and smoother), the most probable sequence of dice (Viterbi), and learning the numbers (Baum and Welch), which needs
several starts.

We see where the loaded die was in use, as far as it can be told, and how restarts end in different places. (The text
shows the model in a figure; we take the usual numbers: the fair die is kept with 0.95, the loaded one, half of whose
rolls are sixes, with 0.9.)
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rolls = np.array([int(face) for face in "664153216162115234653214356634261655234232315142464156663246"])
casino = gg.CategoricalHMM.from_parameters(
    [0.5, 0.5], [[0.95, 0.05], [0.10, 0.90]], [[1 / 6] * 6, [0.1] * 5 + [0.5]], symbols=range(1, 7)
)

# %%
# Filter (what is known after each roll), smoother (what is known after all), and the most probable path, which never
# leaves the fair die here: a few sixes in a row do not pay for two changes.
now, later = casino.filter_proba(rolls)[:, 1], casino.predict_proba(rolls)[:, 1]
log_p, path = casino.decode(rolls)
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
step = np.arange(1, 61)
ax.plot(step, now, ":", color="#57606a", label="filter")
ax.plot(step, later, color="#1f4e9c", label="smoother")
ax.step(step, path, where="mid", color="#b3261e", lw=1, label="most probable path")
ax.plot(step[rolls == 6], np.full((rolls == 6).sum(), -0.06), "k|", label="a six")
ax.set(title="Sixty rolls", xlabel="roll", ylabel="p(loaded)", ylim=(-0.12, 1.15))
ax.legend(fontsize=8, loc="upper center", ncols=4, bbox_to_anchor=(0.5, -0.2))

# %%
# Learning from these sixty rolls alone, with three dice allowed: six starts, each with a likelihood that never falls,
# and not all with the same end. All ends are more probable than the usual numbers: sixty rolls are few.
runs = [gg.CategoricalHMM(3, symbols=range(1, 7), max_iter=300, tol=1e-5, random_state=s).fit(rolls) for s in range(6)]
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for s, run in enumerate(runs):
    ax.plot(run.history_, lw=1, label=f"start {s}")
ax.axhline(casino.score(rolls), color="black", ls=":", label="usual numbers")
ax.set(title="Baum–Welch from six starts", xlabel="step", ylabel="log p(rolls)", ylim=(-110, None), xlim=(0, 120))
ax.legend(fontsize=8, loc="lower right", ncols=2)

# %%
# From 3,000 rolls the numbers come back.
many, dice = casino.sample(3000, random_state=1)
best = gg.CategoricalHMM(2, symbols=range(1, 7), n_init=2, max_iter=60, tol=1e-2, random_state=0).fit(many)
loaded = int(np.argmax(best.emissionprob_[:, 5]))
six, stay = best.emissionprob_[loaded, 5], best.transmat_[loaded, loaded]
print(f"learned p(six | loaded) = {six:.2f}, p(stay loaded) = {stay:.2f}")

# %%
# The numbers of the text
# -----------------------
# The recursions agree with the unrolled network of 120 variables; starts end in different places.
net = gg.datasets.casino(60)
seen = {f"roll{i + 1}": str(face) for i, face in enumerate(rolls)}
assert abs(casino.score(rolls) - net.log_evidence(seen)) < 1e-9
assert abs(later[29] - net.query("die30", seen)["die30"].prob("loaded")) < 1e-9
assert not path.any() and abs(log_p - net.map_query(seen).log_prob) < 1e-9
assert (
    abs(now[29] - gg.datasets.casino(30).query("die30", dict(list(seen.items())[:30]))["die30"].prob("loaded")) < 1e-9
)
assert all(np.all(np.diff(run.history_) > -1e-6) for run in runs)
ends = [run.score(rolls) for run in runs]
assert min(ends) > casino.score(rolls) and max(ends) - min(ends) > 0.5
assert best.score(many) > casino.score(many) and abs(best.emissionprob_[loaded, 5] - 0.5) < 0.1
assert np.mean(casino.predict(many) == dice) > 0.75
