"""Random networks with awkward names, and damaged copies of a file's bytes."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import numpy as np
from hypothesis import strategies as st

from gramgraph.conditionals import Table
from gramgraph.models import BayesianNetwork
from gramgraph.variables import discrete

ODD = ["0.1", "-3", "<5", "Asy/Patch", "a//b", "a/*b", 'say "hi"', "a b", "x,y", "(u)", "{v}", "[1]", "|", "\\", ""]

names = st.one_of(st.sampled_from(ODD), st.text(max_size=6), st.from_regex(r"[A-Za-z_][\w.-]{0,5}", fullmatch=True))


@st.composite
def networks(draw: st.DrawFn) -> BayesianNetwork:
    """Up to five variables of one to four states with rows that sum to one, in any order of the file."""
    labels = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    variables = [discrete(n, draw(st.lists(names, min_size=1, max_size=4, unique=True))) for n in labels]
    order = draw(st.permutations(range(len(variables))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    conditionals: list[Table | None] = [None] * len(variables)
    for place, i in enumerate(order):
        chosen = draw(st.lists(st.sampled_from(order[:place]), max_size=3, unique=True)) if place else []
        parents = tuple(variables[j] for j in chosen)
        rows = rng.dirichlet(np.full(variables[i].size, 0.4), size=[p.size for p in parents])
        conditionals[i] = Table(variables[i], parents, rows).normalized()
    return BayesianNetwork.from_parts(variables, conditionals, name=draw(names))


HOSTILE = [b"1" * 30, b"1e999", b"-1", b"nan", b"inf", b"0", b"1_0", b"1e-320", b"9" * 5000, b"\x00", b"\xff\xfe"]
HOSTILE += [b"{", b"}", b"(", b")", b'"', b"\\", b"/*", b"//", b";", b",", b"|", b"#", b'"\\"']
HOSTILE += [b"[", b"]", b"null", b"[[[[", b"{}"]
_TOKEN = re.compile(rb'\s+|[^\s{}()\[\]|,;":]+|.', re.DOTALL)


def damaged(seeds: list[bytes], *, count: int, seed: int) -> Iterator[bytes]:
    """Copies with some bytes changed, or tokens replaced, inserted, dropped, swapped or repeated, or cut off."""
    rng = random.Random(seed)
    for _ in range(count):
        data = rng.choice(seeds)
        if rng.random() < 0.3:
            raw = bytearray(data)
            for _ in range(rng.randint(1, 6)):
                raw[rng.randrange(len(raw))] = rng.randrange(256)
            yield bytes(raw)
            continue
        tokens = _TOKEN.findall(data)
        for _ in range(rng.randint(1, 4)):
            i, j = sorted(rng.choices(range(len(tokens)), k=2)) if tokens else (0, 0)
            what = rng.randrange(6)
            if what == 0:
                tokens[i : i + 1] = [rng.choice(HOSTILE)]
            elif what == 1:
                tokens.insert(i, rng.choice(HOSTILE))
            elif what == 2:
                del tokens[i : i + rng.randint(1, 5)]
            elif what == 3 and tokens:
                tokens[i], tokens[j] = tokens[j], tokens[i]
            elif what == 4:
                tokens[i:i] = tokens[i:j][:100]
            elif rng.random() < 0.3:
                del tokens[i:]
        yield b"".join(tokens)
