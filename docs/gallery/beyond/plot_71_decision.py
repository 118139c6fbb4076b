"""
A decision, and what it is worth to know more first
===================================================

The texts stop at probabilities; a decision needs one more table, what each outcome is worth. The best act has the
largest expected utility; an observation is worth how much the expected utility rises when one acts after it instead
of before, and never less than nothing.

We see the oil wildcatter's question: drill or not, with or without a seismic test first. The network answers the
probabilities, a few lines the rest. The picture shows from which price on the test does not pay, and how that depends
on the prior.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg


def field(oil):
    test = [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.4, 0.5]]
    return gg.BayesianNetwork("oil{dry|wet|soaking} -> test{none|open|closed}", cpds={"oil": oil, "test": test})


well = field([0.5, 0.3, 0.2])
worth = {"drill": np.array([-70.0, 50.0, 200.0]), "leave": np.zeros(3)}  # thousands

# %%
# Without the test: expected utility of both acts.


def best(net, evidence=None):
    p = net.query("oil", evidence)["oil"].probabilities
    expected = {act: float(p @ u) for act, u in worth.items()}
    act = max(expected, key=expected.get)
    return act, expected[act]


act, before = best(well)
print(f"without a test: {act}, worth {before:.1f}")

# %%
# With the test: the best act for each result, weighed by how probable the result is.
results = well.query("test")["test"].to_dict()
policy = {result: best(well, {"test": result}) for result in results}
after = sum(p * policy[result][1] for result, p in results.items())
perfect = float(well.query("oil")["oil"].probabilities @ np.maximum(worth["drill"], 0))
for result, (act, value) in policy.items():
    print(f"test {result:7s} (p = {results[result]:.2f}): {act}, worth {value:.1f}")
print(f"the test is worth {after - before:.1f}, perfect knowledge {perfect - before:.1f}")

# %%
# The worth of the test for other priors: most where the decision is doubtful, nothing where it is clear.
dry = np.linspace(0.02, 0.98, 97)
value, knowing = [], []
for p in dry:
    other = field([p, 0.6 * (1 - p), 0.4 * (1 - p)])
    now = best(other)[1]
    value.append(sum(q * best(other, {"test": r})[1] for r, q in other.query("test")["test"].to_dict().items()) - now)
    knowing.append(float(other.query("oil")["oil"].probabilities @ np.maximum(worth["drill"], 0)) - now)
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.plot(dry, knowing, color="#57606a", label="perfect knowledge")
ax.plot(dry, value, color="#1f4e9c", label="the test")
ax.axhline(10, color="#b3261e", ls=":", label="price of the test")
ax.set(title="What knowing is worth", xlabel="prior probability of a dry well", ylabel="thousands")
ax.legend(fontsize=8)

# %%
# Numbers that hold
# -----------------
# The known solution of this classic: 20 without the test, 32.5 with it, of which a price of 10 leaves 22.5. Knowledge
# is never worth less than nothing, and a test never more than the truth.
assert abs(before - 20) < 1e-9
assert abs(after - 32.5) < 1e-9 and abs(perfect - 55) < 1e-9
joint = well.query(("oil", "test"))[("oil", "test")].probabilities
by_hand = sum(max(float(joint[:, j] @ worth["drill"]), 0.0) for j in range(3))
assert abs(after - by_hand) < 1e-9
assert min(value) > -1e-9 and all(a <= b + 1e-9 for a, b in zip(value, knowing, strict=True))
