"""
Two envelopes
=============

One envelope holds a red ball, worth money, and a black ball; the other holds two black balls. You pick an envelope at
random, draw a ball from it, and it is black. Zhu, *Graphical models and kernel methods*, opens with this question:
keep the envelope or take the other one?

We draw the model as a graph with one arrow, ask for p(envelope | black), and see for which beliefs before the draw
switching is right.
"""

# %%
# The envelope decides what balls are inside: one arrow, one table.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

net = gg.BayesianNetwork(
    "envelope{other|prize} -> ball{black|red}",
    cpds={"envelope": [1 / 2, 1 / 2], "ball": {"other": [1, 0], "prize": [1 / 2, 1 / 2]}},
)
net

# %%
# Bayes' rule runs the arrow backward. The evidence p(black) comes along with every answer.
answer = net.query("envelope", evidence={"ball": "black"})
print(answer)
net.plot(net.query(evidence={"ball": "black"}), evidence={"ball": "black"})

# %%
# Decision theory: switch if p(prize | black) < 1/2. How sure of your envelope would you have to be to keep it? The
# posterior is a function of the prior, and ``solve`` says where it reaches 1/2.
posterior = net.sensitivity_function("envelope", "prize", {"ball": "black"}, variable="envelope", value="prize")
indifferent = posterior.solve(1 / 2)
priors = np.linspace(0, 1, 201)
fig, ax = plt.subplots(layout="constrained")
ax.plot(priors, posterior(priors), color="#4c78a8", label="p(prize | black)")
ax.plot(priors, priors, color="#52606d", linestyle=":", label="no ball seen")
ax.axhline(1 / 2, color="#b03a2e", linewidth=1, label="indifferent")
ax.axvspan(0, indifferent, color="#4c78a8", alpha=0.08)
ax.text(0.05, 0.85, "switch", fontsize=12)
ax.text(0.72, 0.12, "keep", fontsize=12)
ax.set(
    xlabel="p(prize) before the draw", ylabel="belief after the draw", title="When to switch", xlim=(0, 1), ylim=(0, 1)
)
ax.legend(loc="upper left", bbox_to_anchor=(0.02, 0.78))

# %%
# The numbers of the text
# -----------------------
p = answer["envelope"].prob("prize")
assert abs(p - 1 / 3) < 1e-12  # switch
assert abs(np.exp(answer.log_evidence) - 3 / 4) < 1e-12  # p(black)
assert abs(indifferent - 2 / 3) < 1e-12
