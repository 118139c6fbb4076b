"""Ask random models random questions, and compare every answer with the truth.

    python -m fuzz.models --seed 0 --seconds 600                      # every kind in turn
    python -m fuzz.models --kinds tables,extreme --worlds 500         # so many worlds of each kind, whatever the time
    python -m fuzz.models --kinds tables --replay 0:123               # one world again, with the traceback
    python -m fuzz.models --kinds tables --replay 0:123:7             # only its question number 7, on a fresh world

World number n of a kind is drawn from the seed [seed, n] alone, so a fault is the same at every run, in every order.
The exit code is 1 when a fault was found. Kinds are listed in `trials.py`.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import numpy as np  # noqa: E402

from fuzz.fuzz_parsers import TooSlow, alarm, place_of  # noqa: E402
from fuzz.trials import KINDS, Trial, Wrong, load_kind  # noqa: E402

__all__ = ["Fault", "Tally", "run", "run_world"]

#: Seconds of the processor that one world may take, compilation included.
TIMEOUT = 300.0
#: Faults of one place that are shown in full.
SHOWN = 2


@dataclass(frozen=True)
class Fault:
    """A question that was not answered rightly, and how to see it again."""

    kind: str
    seed: int
    number: int
    trial: int
    what: str
    about: str
    error: BaseException

    @property
    def place(self) -> str:
        """What kind of fault it is: the error, where it was raised, and what was asked."""
        if isinstance(self.error, Wrong):
            return f"{self.kind}: wrong: {str(self.error).partition(':')[0]}"
        return f"{self.kind}: {place_of(self.error)}"

    def __str__(self) -> str:
        alone = f"python -m fuzz.models --kinds {self.kind} --replay {self.seed}:{self.number}"
        lines = [f"FAULT in {self.kind}: {self.what:.400}", f"  {type(self.error).__name__}: {str(self.error)[:600]}"]
        lines += [f"  {line:.240}" for line in self.about.splitlines()]
        return "\n".join([*lines, f"  again: {alone}   (this question alone: {self.seed}:{self.number}:{self.trial})"])


@dataclass
class Tally:
    """What happened to one kind."""

    kind: str
    worlds: int = 0
    questions: int = 0
    seconds: float = 0.0
    faults: list[Fault] = field(default_factory=list)

    def line(self) -> str:
        """The summary."""
        rate = 60.0 * self.worlds / max(self.seconds, 1e-9)
        places = len({fault.place for fault in self.faults})
        wrong = f"{len(self.faults)} faults of {places} kinds" if self.faults else "no fault"
        return (
            f"{self.kind}: {self.worlds:,} models, {self.questions:,} questions in {self.seconds:.0f} s "
            f"({rate:,.0f} models a minute), {wrong}"
        )


@contextmanager
def _strict() -> Iterator[None]:
    """NumPy's warnings are faults; the library's own are its right."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        yield


def run_world(
    kind: str, seed: int, number: int, *, only: int | None = None, timeout: float = TIMEOUT
) -> tuple[int, list[Fault]]:
    """(questions asked, faults) of world `number`; with `only`, of its trial of that number alone."""
    asked, faults = 0, []
    at, trial = -1, Trial("drawing the world", lambda: None)

    def fault(error: BaseException) -> Fault:
        try:
            about = trial.about()
        except Exception as broken:
            about = f"(the model cannot be shown: {broken!r})"
        return Fault(kind, seed, number, at, trial.what, about, error)

    try:
        with alarm(timeout):
            for at, trial in enumerate(load_kind(kind)(np.random.default_rng([seed, number]))):
                if only is not None and at != only:
                    continue
                asked += trial.counts
                try:
                    trial.check()
                except Exception as error:
                    faults.append(fault(error))
    except (Exception, TooSlow) as error:
        faults.append(fault(error))
    return asked, faults


def run(
    kinds: Sequence[str], *, seed: int, seconds: float | None = None, worlds: int | None = None, show: bool = True
) -> list[Tally]:
    """Worlds 0, 1, 2, … of every kind until the time is over or each kind had `worlds` of them.

    The kind that has had the least time is next, so that slow kinds do not starve quick ones.
    """
    tallies = [Tally(kind) for kind in kinds]
    begin = time.monotonic()
    with _strict():
        while open_ones := [tally for tally in tallies if worlds is None or tally.worlds < worlds]:
            if seconds is not None and time.monotonic() - begin >= seconds:
                break
            tally = min(open_ones, key=lambda tally: tally.seconds)
            started = time.monotonic()
            asked, faults = run_world(tally.kind, seed, tally.worlds)
            tally.seconds += time.monotonic() - started
            tally.worlds += 1
            tally.questions += asked
            for fault in faults:
                tally.faults.append(fault)
                if show and sum(other.place == fault.place for other in tally.faults) <= SHOWN:
                    print(fault, flush=True)
            if show and sys.stderr.isatty():
                print(f"\r{_progress(tallies)}\x1b[K", end="", file=sys.stderr, flush=True)
    if show and sys.stderr.isatty():
        print(file=sys.stderr)
    return tallies


def _progress(tallies: Sequence[Tally]) -> str:
    faults = sum(len(tally.faults) for tally in tallies)
    return ", ".join(f"{tally.kind} {tally.worlds}" for tally in tallies) + f"; {faults} faults"


def replay(kind: str, place: str) -> int:
    """One world (SEED:NUMBER) or one question of it (SEED:NUMBER:TRIAL) again, with tracebacks."""
    seed, number, *trial = (int(part) for part in place.split(":"))
    with _strict():
        asked, faults = run_world(kind, seed, number, only=trial[0] if trial else None)
    for fault in faults:
        print(fault)
        print("".join(traceback.format_exception(fault.error)))
    print(f"{kind} {place}: {asked} questions, {len(faults)} faults")
    return 1 if faults else 0


def main() -> int:
    """The command line."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--seconds", type=float, help="for all kinds together (default 60, without --worlds)")
    options.add_argument("--worlds", type=int, help="models of each kind, at most")
    options.add_argument("--kinds", default=",".join(KINDS), help=f"default: {','.join(KINDS)}")
    options.add_argument("--replay", metavar="SEED:NUMBER[:TRIAL]", help="with --kinds: one world again")
    given = options.parse_args()
    kinds = given.kinds.split(",")
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        options.error(f"unknown kind {unknown[0]!r}; kinds: {', '.join(KINDS)}")
    if given.replay:
        return max(replay(kind, given.replay) for kind in kinds)
    seconds = 60.0 if given.seconds is None and given.worlds is None else given.seconds
    tallies = run(kinds, seed=given.seed, seconds=seconds, worlds=given.worlds)
    for tally in tallies:
        print(tally.line())
    models, asked = sum(t.worlds for t in tallies), sum(t.questions for t in tallies)
    faults = sum(len(t.faults) for t in tallies)
    print(f"seed {given.seed}: {models:,} models, {asked:,} questions, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
