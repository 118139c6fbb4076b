"""
How many people wear glasses?
=============================

The share π of people with glasses is unknown, so it is a random variable. Hennig, *Probabilistic inference and
learning* ("Inference over binoculars with the binomial distribution"), starts from a uniform prior, draws the
binomial distribution for N = 10 and f = 1/3, and finds that the posterior is a Beta distribution. The coefficient of
the binomial is (n + m)! / (n! m!); the text has it upside down, which cancels in the posterior.

We see the belief about π narrow as people pass by, and what it predicts about the next ten.
"""

# %%
# The likelihood: how many of ten people wear glasses if a third of all do?
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

count = gg.distributions.Binomial(1 / 3, 10)
n = np.arange(11)
fig, ax = plt.subplots(layout="constrained")
ax.bar(n, count.density(n), color="#4c78a8")
ax.set(xlabel="people with glasses among 10", ylabel="probability", title="Binomial, N = 10, f = 1/3", xticks=n)

# %%
# People pass by, one after the other. ``stream`` gives the posterior after each of them: the uniform prior is Beta(1,
# 1), and every observation adds one to a or to b.
people = gg.distributions.Bernoulli(1 / 3).sample(100, random_state=4)
beliefs = [gg.BetaBernoulli(1, 1), *gg.BetaBernoulli(1, 1).stream([x] for x in people)]
shown = {f"after {k}": beliefs[k].posterior for k in (0, 1, 3, 10, 30, 100)}
fig, ax = plt.subplots(layout="constrained")
gg.plot.plot_densities(shown, span=(0.001, 0.999), ax=ax)
ax.axvline(1 / 3, color="#52606d", linestyle=":", label="truth")
ax.set(xlabel="share π of people with glasses", ylabel="density", title="The belief about π as data arrive")
ax.legend(loc="upper right")

# %%
# Predictions average over π. After ten people they are wider than a binomial with the best guess plugged in.
now = beliefs[10]
fig, ax = plt.subplots(layout="constrained")
ax.bar(n - 0.2, now.predictive_count(10).density(n), width=0.4, label="averaged over π (beta-binomial)")
ax.bar(n + 0.2, gg.distributions.Binomial(now.posterior.mean, 10).density(n), width=0.4, label="π = its mean")
ax.set(xlabel="people with glasses among the next 10", ylabel="probability", title=f"After 10 people: {now}", xticks=n)
ax.legend(loc="upper right")

# %%
# The numbers of the text
# -----------------------
# Posterior Beta(a + n, b + m), in one step or one by one; mean a/(a+b) and variance ab/((a+b)²(a+b+1)), as in OuYang,
# *Probabilistic machine learning* (1.1.7)–(1.1.8).
assert abs(count.density(3) - 120 * (1 / 3) ** 3 * (2 / 3) ** 7) < 1e-12
assert abs(count.mean - 10 / 3) < 1e-12 and abs(count.var - 20 / 9) < 1e-12
positive = int(people.sum())
last = beliefs[-1]
assert (last.a, last.b) == (1 + positive, 1 + 100 - positive)
a, b = last.a, last.b
assert abs(last.posterior.mean - a / (a + b)) < 1e-12
assert abs(last.posterior.var - a * b / ((a + b) ** 2 * (a + b + 1))) < 1e-12
