"""How the files of this folder were made, with version 0.1.0: `python tests/io/files_0_1_0/make.py FOLDER`.

One small file of every kind that 0.1.0 could save, and `answers.json` with a few answers of each model. The files are
not made anew: they stand for what users of 0.1.0 have on their disks.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gramgraph as gg
from fuzz.saved import EXAMPLES, example, probe


def main(folder: Path) -> None:
    """Write every example as 0.1.0 wrote it: `gg.write` to JSON, `save` to an archive where there is one."""
    answers = {}
    for name in EXAMPLES:
        model = example(name)
        if hasattr(model, "save"):
            model.save(folder / f"{name}.npz")
        if name != "linear_chain_crf":
            gg.write(model, folder / f"{name}.json")
        answers[name] = probe(model)
    for suffix in ("bif", "xmlbif", "uai", "net", "xdsl"):
        gg.write(example("bayesian_network"), folder / f"bayesian_network.{suffix}")
    gg.write(example("markov_network"), folder / "markov_network.fg")
    frame = gg.datasets.asia().sample(200, random_state=0)
    gg.learn_structure(frame, method="hill_climb", checkpoint=folder / "search.checkpoint")
    gg.learn.bootstrap_edges(frame, 4, random_state=0, checkpoint=folder / "bootstrap.checkpoint")
    (folder / "answers.json").write_text(json.dumps(answers, indent=0) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
