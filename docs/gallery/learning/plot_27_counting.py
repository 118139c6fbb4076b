"""
Counting, and Dirichlet priors
==============================

With complete data the log likelihood of a network falls into one term per table, and maximum likelihood is counting:
Zhu, *Graphical models and kernel methods* ("Parameter estimation"). With few rows counts are treacherous: what was
not seen gets probability zero. A Dirichlet prior adds pseudo-counts (OuYang, *Probabilistic machine learning*,
section 1.2).

We see how far the tables are from the truth against the number of rows, with several priors.
"""

# %%
# Counting: each row of a table is a share of the rows of the frame.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

truth = gg.datasets.sprinkler()
frame = truth.sample(100, random_state=0)
counted = gg.BayesianNetwork(truth.edges).fit(frame)
print(frame.groupby(["cloudy"], observed=True)["rain"].value_counts())
print(counted.cpt["rain"])

# %%
# Few rows: the table of the wet grass has eight cells, and twenty rows leave some of them empty. Maximum likelihood
# says never; a prior says rarely. The whole posterior is there as well, with intervals.
few = truth.sample(20, random_state=6)
ml, bdeu = counted.fit(few), counted.fit(few, prior="bdeu")
print("maximum likelihood", ml.cpt["wet"], sep="\n")
print("BDeu prior of 10 rows", bdeu.cpt["wet"], sep="\n")
posterior = counted.fit_posterior(few)
mean, low, high = posterior.query("wet", {"rain": "yes"}, draws=400, random_state=0)["wet"].prob("yes")
print(f"p(wet | rain) = {mean:.2f}, 90 % between {low:.2f} and {high:.2f}")

# %%
# Distance from the truth, KL(truth ‖ learned), against the number of rows. Without a prior it is infinite as soon as
# something possible was never seen, which maximum likelihood pays for here in every size; with a prior of a few rows
# the distance falls with 1/n, and a prior of 100 rows has to be outvoted first.
sizes = [10, 20, 50, 100, 200, 500, 1000, 2000]
rng = np.random.default_rng(0)
samples = {n: [truth.sample(n, random_state=int(rng.integers(1 << 30))) for _ in range(8)] for n in sizes}
priors = {"maximum likelihood": None, "BDeu, 1 row": 1.0, "BDeu, 10 rows": 10.0, "BDeu, 100 rows": 100.0}
fig, ax = plt.subplots(layout="constrained")
curves = {}
for label, rows in priors.items():
    options = {} if rows is None else {"prior": "bdeu", "equivalent_sample_size": rows}
    means = []
    for n in sizes:
        fitted = [counted.fit(sample, **options) for sample in samples[n]]
        means.append(np.mean([gg.analysis.kl_divergence(truth, net) for net in fitted]))
    curves[label] = np.array(means)
    if np.isfinite(means).all():
        ax.loglog(sizes, means, "o-", label=label)
    else:
        print(f"{label}: infinite in {np.isinf(means).sum()} of {len(sizes)} sizes")
ax.set(xlabel="rows", ylabel="KL(truth ‖ learned), mean of 8", title="The prior matters while data are few")
ax.legend(loc="best")

# %%
# The numbers of the text
# -----------------------
# argmax Σ log p is counting; the posterior mean is (counts + α) / (total + Σα).
rain = frame[frame["cloudy"] == "yes"]["rain"]
assert abs(counted.cpt["rain"][{"cloudy": "yes"}][1] - (rain == "yes").mean()) < 1e-12
rain = few[few["cloudy"] == "yes"]["rain"]
expected = ((rain == "yes").sum() + 2.5) / (len(rain) + 5)  # 10 rows over 4 cells
assert abs(bdeu.cpt["rain"][{"cloudy": "yes"}][1] - expected) < 1e-12
scores = [net.log_likelihood(frame).sum() for net in (counted, truth, bdeu)]
assert scores[0] == max(scores)  # no other tables of this graph are more likely
assert np.isinf(curves["maximum likelihood"][0]) and np.isfinite(curves["BDeu, 1 row"]).all()
assert curves["BDeu, 100 rows"][-1] > curves["BDeu, 1 row"][-1]
