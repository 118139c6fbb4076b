"""
From a messy CSV to a decision
==============================

Texts begin with clean numbers; files do not: empty cells, numbers and labels side by side, an id, a date, a column
that says nothing. What a library does with them before it learns should be told, not guessed.

We see such a file (machines of a workshop, made here), what each column is taken for, a structure learned from it,
the gaps filled by the model, and the decision that was wanted: which machines to inspect today, when an inspection
costs 1 and a breakdown 12.
"""

import io

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gramgraph as gg

rng = np.random.default_rng(1)
n = 1500
age = rng.choice(["new", "used", "old"], p=[0.4, 0.4, 0.2], size=n)
load = rng.choice(["low", "high"], p=[0.6, 0.4], size=n)
heat = np.where(load == "high", 62, 50) + np.select([age == "old", age == "used"], [9, 4], 0) + 4 * rng.normal(size=n)
p_break = 1 / (1 + np.exp(-(heat - 72) / 4))
broke = np.where(rng.uniform(size=n) < p_break, "yes", "no")
frame = pd.DataFrame({"age": age, "load": load, "heat": heat.round(1)})
frame.insert(0, "id", [f"M{i:05d}" for i in range(n)])
frame.insert(1, "seen", pd.date_range("2025-03-01", periods=n, freq="h").astype(str))
frame["paint"], frame["broke"] = rng.choice(["red", "blue"], n), broke
for column, share in (("age", 0.1), ("load", 0.2), ("heat", 0.15)):
    frame.loc[rng.uniform(size=n) < share, column] = None
text = frame.to_csv(index=False)
print(text[:220])

# %%
# Read it, and ask what it will be taken for.
table = pd.read_csv(io.StringIO(text))
report = gg.describe(table)
print(report.to_string())

# %%
# Heat becomes three bands, as tables are to be learned; the id and the time are left out; rows with gaps are used by
# EM.
columns = table.drop(columns=["id", "seen"]).assign(
    heat=pd.cut(table["heat"], [0, 55, 65, 200], labels=["cool", "warm", "hot"]).astype(object)
)
columns = columns.where(columns.notna(), None)
complete = columns.dropna()
learned = gg.learn_structure(complete, score="bic", tiers=[["age", "load", "paint"], ["heat"], ["broke"]])
net = learned.fit(columns, prior="bdeu")
print(net.edges)
gg.plot.plot_network(net, net.query())

# %%
# Today's machines: gaps and all. Inspect where 12 · p(break) > 1.
today = columns.sample(200, random_state=0)
p = net.query("broke", today.drop(columns="broke"))["broke"].prob("yes")
inspect = p > 1 / 12
cost = {
    "inspect none": 12.0 * (today["broke"] == "yes").sum(),
    "inspect all": 200.0,
    "as the model says": inspect.sum() + 12.0 * ((today["broke"] == "yes").to_numpy() & ~inspect).sum(),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
left.hist(p, bins=30, color="#1f4e9c")
left.axvline(1 / 12, color="#b3261e", label="1/12")
left.set(title="200 machines", xlabel="p(break)", ylabel="machines")
left.legend(fontsize=8)
right.barh(list(cost), list(cost.values()), color="#1f4e9c")
right.set(title="What it costs", xlabel="cost")

# %%
# Numbers that hold
# -----------------
# Id and time are recognized, paint is found to say nothing, and the decision is cheaper than both simple ones.
taken = dict(zip(report["column"], report["taken as"], strict=True))
assert (
    taken["id"] == "identifier" and taken["seen"] == "date" and taken["heat"] == "real" and taken["paint"] == "category"
)
assert not any("paint" in edge for edge in net.edges) and ("heat", "broke") in net.edges
assert cost["as the model says"] < min(cost["inspect none"], cost["inspect all"])
