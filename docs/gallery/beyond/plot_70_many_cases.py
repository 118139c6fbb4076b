"""
Very many cases: Parquet in, posteriors out, on a Dask cluster
==============================================================

The texts ask one question at a time. In practice there is a file of cases, each with its own observations and gaps,
and one posterior is wanted for every row. A network is compiled once; a block of rows is one pass through compiled
code.

We see three ways that share one call: a frame in memory, a Parquet file answered block by block (memory stays that of
a few blocks, and an interrupted call goes on where it was), and partitions of a Dask frame on a cluster. The page uses
20,000 rows; set ``GRAMGRAPH_CASES=1000000`` for a million: time grows in proportion to the rows and falls with the
workers, as partitions do not depend on each other.
"""

import os
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

n_cases = int(os.environ.get("GRAMGRAPH_CASES", "20000"))
net = gg.datasets.asia()
folder = Path(tempfile.mkdtemp())

# %%
# A file of cases: symptoms and habits, a third of the cells unknown, and an id that has to come back.
rng = np.random.default_rng(0)
cases = net.sample(n_cases, random_state=0)[["asia", "smoke", "xray", "dysp"]].astype(object)
cases = cases.mask(rng.uniform(size=cases.shape) < 1 / 3, None)
cases.insert(0, "id", np.arange(n_cases))
cases.to_parquet(folder / "cases.parquet", row_group_size=5000)

# %%
# In memory.
start = time.perf_counter()
whole = net.query("lung", cases, keep="id")["lung"].prob("yes")
seconds = {"one frame": time.perf_counter() - start}

# %%
# From file to file: nothing but a few blocks is ever held. The shell does the same: ``gramgraph query net.bif --cases
# cases.parquet --out posteriors.parquet --keep id``.
start = time.perf_counter()
written = net.query("lung", folder / "cases.parquet", keep="id", out=folder / "posteriors.parquet")
seconds["a file"] = time.perf_counter() - start
print(f"{written.rows:,} cases, columns {', '.join(written.columns)}")
pieces = written.to_frame()

# %%
# On a cluster: the model is sent once, and every partition is answered where it lies. ``Client()`` starts workers on
# this machine; ``Client("tcp://…")`` finds yours. Without Dask this step is left out.
try:
    import dask.dataframe as dd
    from distributed import Client
except ImportError:
    print("Dask is not installed: pip install 'gramgraph[scale]'")
    spread = pieces
else:
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
        frame = dd.read_parquet(folder / "cases.parquet", split_row_groups=True)
        start = time.perf_counter()
        spread = net.query("lung", frame, keep="id", out=folder / "spread.parquet", client=client).to_frame()
        seconds["a cluster"] = time.perf_counter() - start

# %%
# What came out, and how long it took (the first way also paid for compiling).
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
left.hist(whole, bins=40, color="#1f4e9c")
left.set(title=f"{n_cases:,} posteriors", xlabel="p(lung cancer | case)", ylabel="cases", yscale="log")
right.barh(list(seconds), list(seconds.values()), color="#1f4e9c")
right.set(title="Time", xlabel="seconds")

# %%
# Numbers that hold
# -----------------
# All ways agree, row for row, and single cases are what a single question answers.
for table in (pieces, spread):
    assert table["id"].tolist() == cases["id"].tolist()
    assert np.allclose(table["lung=yes"], whole, atol=1e-12)
for i in (0, 7, 4321 % n_cases):
    known = {name: value for name, value in cases.iloc[i].drop("id").items() if value is not None}
    assert abs(net.query("lung", known)["lung"].prob("yes") - whole[i]) < 1e-12
