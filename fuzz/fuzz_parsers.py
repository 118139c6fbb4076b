"""Feed broken files to every parser: each must give a model or a `ParseError`, soon and in little memory.

    python fuzz/fuzz_parsers.py --format bif --seconds 600 --seed 0
    python fuzz/fuzz_parsers.py --seconds 60                          # every format, a minute each
    python fuzz/fuzz_parsers.py --format net --seconds 600 --atheris  # guided by coverage, where atheris is installed
    python fuzz/fuzz_parsers.py --replay fuzz/crashes/bif-3f2a….bin   # one saved input again, with its traceback

Inputs are sound documents after one to six accidents (`mutate.py`). Those that reach a new kind of error become
starting points themselves. What breaks the promise is saved in `fuzz/crashes/`; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import numpy as np  # noqa: E402

from fuzz.mutate import TOKENS, broken, documents, targets  # noqa: E402
from gramgraph.exceptions import GramGraphError, ParseError  # noqa: E402
from gramgraph.io.registry import FORMATS, inflate, load_format  # noqa: E402

CRASHES = ROOT / "fuzz" / "crashes"
CORPUS = ROOT / "fuzz" / "corpus"
POOL = 400  # inputs kept as starting points


class TooSlow(BaseException):
    """The alarm rang; no handler for `Exception` may swallow it."""


class Broken(Exception):
    """A promise other than "a model or a ParseError" was broken."""


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise `TooSlow` when the body computes for longer: the processor's time counts, as the machine may be busy."""

    def ring(*ignored: object) -> None:
        raise TooSlow(f"more than {seconds:g} s of the processor")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def limit_memory(gigabytes: float) -> None:
    """No more address space than this, for the whole process."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def reader(name: str) -> Callable[[bytes, bool], Any]:
    """A function of (bytes, normalize) that returns a model or raises."""
    if name == "gzip":
        return lambda data, normalize: inflate(data, source="<fuzz>")
    if name in FORMATS:
        module = load_format(name)
        return lambda data, normalize: module.loads(data, source="<fuzz>", normalize=normalize)
    from gramgraph.io import uai_results

    read = {"uai_evidence": uai_results.read_uai_evidence, "uai_result": uai_results.read_uai_result}[name]
    folder = tempfile.TemporaryDirectory(prefix="fuzz-")  # removed together with the function

    def from_file(data: bytes, normalize: bool) -> Any:
        path = Path(folder.name) / "input"
        path.write_bytes(data)
        return read(path)

    return from_file


def check(name: str, data: bytes, normalize: bool, read: Callable[[bytes, bool], Any]) -> str:
    """What came: "model", or the text of the `ParseError`. A model must also come back from its own file."""
    try:
        model = read(data, normalize)
    except ParseError as error:
        return str(error)
    if name in FORMATS and normalize and len(data) < 5000:
        round_trip(name, model)
    return "model"


def round_trip(name: str, model: Any) -> None:
    """Write the model, read it, write it again: the same bytes, or a refusal to write."""
    module = load_format(name)
    try:
        first = module.dumps(model)
    except GramGraphError:
        return  # a name or a number that the format cannot hold
    again = module.loads(first, source="<written>", normalize=True)
    if hasattr(model, "variables") and again.variables != model.variables:
        raise Broken(f"variables {model.variables} came back as {again.variables}")
    if name != "container" and module.dumps(again) != first:  # in a container, equal arrays may be one or two
        raise Broken("writing what was read back gives other bytes")


@dataclass
class Tally:
    """What happened to one format."""

    name: str
    inputs: int = 0
    models: int = 0
    kinds: set[str] = field(default_factory=set)
    crashes: dict[str, int] = field(default_factory=dict)
    slowest: float = 0.0
    seconds: float = 0.0

    def line(self) -> str:
        """The summary."""
        rate = self.inputs / max(self.seconds, 1e-9)
        return (
            f"{self.name}: {self.inputs} inputs in {self.seconds:.0f} s ({rate:.0f}/s), {self.models} models, "
            f"{self.inputs - self.models - sum(self.crashes.values())} parse errors of {len(self.kinds)} kinds, "
            f"slowest {self.slowest * 1e3:.0f} ms, {sum(self.crashes.values())} crashes of {len(self.crashes)} kinds"
        )


def kind_of(message: str) -> str:
    """A parse error without its place, its numbers and its quotations."""
    pieces = [re.sub(r"[^a-z ]+", "", piece).strip() for piece in re.split(r"['\"(:\d]", message.partition(" ")[2])]
    return next((piece[:30] for piece in pieces if len(piece) >= 8), "")


def place_of(error: BaseException) -> str:
    """Class of the error and the last line of ours that it came through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "gramgraph" in f.filename]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} at {where}"


def save(name: str, data: bytes, error: BaseException) -> Path:
    """Keep the input and its traceback."""
    CRASHES.mkdir(parents=True, exist_ok=True)
    path = CRASHES / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}.bin"
    path.write_bytes(data)
    path.with_suffix(".txt").write_text("".join(traceback.format_exception(error))[-4000:])
    return path


def run(
    name: str,
    *,
    seconds: float,
    seed: int,
    timeout: float = 5.0,
    limit: int | None = None,
    keep: bool = True,
    every: bool = False,
) -> Tally:
    """Break documents of one format for some seconds (or `limit` inputs); `every` saved kind, or the quick ones."""
    rng = random.Random(f"{name} {seed}")
    read = reader(name)
    sound = documents(name, every)
    pool = list(sound)
    tally = Tally(name)
    begin = time.monotonic()
    while (limit is None or tally.inputs < limit) and time.monotonic() - begin < seconds:
        start = rng.choice(sound if rng.random() < 0.6 else pool)
        data = broken(start, pool, TOKENS.get(name, ()), rng)
        normalize = rng.random() < 0.8
        started = time.perf_counter()
        tally.inputs += 1
        try:
            with alarm(timeout):
                outcome = check(name, data, normalize, read)
        except (Exception, TooSlow) as error:
            place = place_of(error)
            tally.crashes[place] = tally.crashes.get(place, 0) + 1
            if keep and tally.crashes[place] <= 3:
                print(f"  {name}: {place}: {str(error)[:100]!r}, saved {save(name, data, error)}", flush=True)
            continue
        finally:
            tally.slowest = max(tally.slowest, time.perf_counter() - started)
        if outcome == "model":
            tally.models += 1
        elif (kind := kind_of(outcome)) not in tally.kinds:
            tally.kinds.add(kind)
            if len(pool) < POOL:
                pool.append(data)
    tally.seconds = time.monotonic() - begin
    return tally


def run_atheris(name: str, *, seconds: float, seed: int, timeout: float, memory: float) -> int:
    """The same promise under libFuzzer, in a process of its own; its exit code."""
    corpus = CORPUS / name
    corpus.mkdir(parents=True, exist_ok=True)
    CRASHES.mkdir(parents=True, exist_ok=True)
    for i, data in enumerate(documents(name)):
        (corpus / f"seed-{i}").write_bytes(data)
    options = [f"-max_total_time={int(seconds)}", f"-timeout={int(timeout)}", f"-rss_limit_mb={int(memory * 1024)}"]
    options += [f"-seed={seed + 1}", "-max_len=20000", f"-artifact_prefix={CRASHES}/{name}-atheris-"]
    command = [sys.executable, __file__, "--format", name, "--child", *options, str(corpus)]
    return subprocess.run(command, check=False).returncode


def atheris_child(name: str, arguments: list[str]) -> None:
    """Runs inside the process that `run_atheris` starts; does not return."""
    import atheris

    for module in [found for found in sys.modules if found.startswith("gramgraph.io")]:
        del sys.modules[module]
    with atheris.instrument_imports(include=["gramgraph.io"]):
        from gramgraph.exceptions import ParseError as Refused
        from gramgraph.io import registry

        read = reader(name) if name not in FORMATS else registry.load_format(name).loads

    def one(data: bytes) -> None:
        try:
            read(data) if name in FORMATS else read(data, True)
        except Refused:
            return

    atheris.Setup([sys.argv[0], *arguments], one)
    atheris.Fuzz()


def replay(path: Path) -> int:
    """One saved input again."""
    name = path.name.split("-")[0]
    read = reader(name)
    for normalize in (True, False):
        print(f"normalize={normalize}: {check(name, path.read_bytes(), normalize, read)}")
    return 0


def main() -> int:
    """The command line."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--format", choices=targets(), action="append", help="may be repeated; default: all")
    options.add_argument("--seconds", type=float, default=60.0, help="for each format")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--timeout", type=float, default=5.0, help="seconds that one input may take")
    options.add_argument("--memory", type=float, default=4.0, help="gigabytes of address space")
    options.add_argument("--atheris", action="store_true", help="guided by coverage, if atheris is installed")
    options.add_argument("--replay", type=Path, metavar="FILE", help="a file of fuzz/crashes")
    options.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given, rest = options.parse_known_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if given.child:
        atheris_child(given.format[0], rest)
    if rest:
        options.error(f"unknown arguments: {' '.join(rest)}")
    if given.replay:
        return replay(given.replay)
    failed = False
    for name in given.format or targets():
        if given.atheris:
            code = run_atheris(name, seconds=given.seconds, seed=given.seed, timeout=given.timeout, memory=given.memory)
            print(f"{name}: atheris for {given.seconds:.0f} s, exit code {code}", flush=True)
            failed |= code != 0
            continue
        limit_memory(given.memory)
        tally = run(name, seconds=given.seconds, seed=given.seed, timeout=given.timeout, every=True)
        print(tally.line(), flush=True)
        failed |= bool(tally.crashes)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
