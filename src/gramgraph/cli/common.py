"""What the commands share: loading a model, reading evidence and sizes, writing results."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from gramgraph._replace import replacing
from gramgraph.evidence import Not, OneOf
from gramgraph.exceptions import GramGraphError, StateError, VariableError
from gramgraph.models import GraphicalModel

_SIZE = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([kmgtp]?)(i?)b?\s*", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


# ---------------------------------------------------------------------------------------------- options


def add_file(parser: argparse.ArgumentParser) -> None:
    """The model."""
    parser.add_argument("file", metavar="FILE", help="a model file, or dataset:NAME")
    parser.add_argument("--format", help="format of FILE where its suffix does not say it (bif, xmlbif, uai, …)")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Output for programs."""
    parser.add_argument("--json", action="store_true", help="write JSON")


def add_evidence(parser: argparse.ArgumentParser) -> None:
    """Observations."""
    parser.add_argument(
        "-e",
        "--evidence",
        action="append",
        default=[],
        metavar="VAR=STATE",
        help="an observation; VAR=A|B: one of these states; VAR!=STATE: not this one (may be repeated)",
    )
    parser.add_argument(
        "--virtual",
        action="append",
        default=[],
        metavar="VAR=STATE:W,…",
        help="likelihood weights of the states, such as HR=LOW:1,HIGH:3; states left out weigh 0 (may be repeated)",
    )


def add_targets(parser: argparse.ArgumentParser, *, joint: bool = False) -> None:
    """The options that name targets."""
    parser.add_argument(
        "-t", "--target", action="append", default=[], metavar="VAR", help="a variable to ask for (default: all)"
    )
    if joint:
        parser.add_argument(
            "--joint", action="append", default=[], metavar="A,B", help="variables whose joint table is wanted"
        )


# ---------------------------------------------------------------------------------------------- reading


def load(file: str, *, format: str | None = None, normalize: bool = True) -> Any:
    """The model in a file, or the dataset that `dataset:NAME` names."""
    import gramgraph as gg

    if not file.startswith("dataset:"):
        return gg.read(file, format=format, normalize=normalize)
    return gg.datasets.load(file.removeprefix("dataset:"))


def parse_evidence(model: GraphicalModel, words: Iterable[str]) -> dict[str, Any]:
    """`HR=HIGH`, `HR=LOW|NORMAL`, `HR!=LOW` as the evidence that `query` takes.

    Names and labels may themselves hold an equals sign: the split is where a variable's name ends.
    """
    evidence: dict[str, Any] = {}
    excluded: dict[str, list[str]] = {}
    for word in words:
        name, equal, text = _split(model, word)
        if equal:
            if name in evidence:
                raise StateError(f"{name} is observed twice: {evidence[name]!r} and {text!r}")
            if not model.var(name).is_discrete:
                evidence[name] = _numbers(name, text)
                continue
            labels = _labels(model, name, text)
            evidence[name] = labels[0] if len(labels) == 1 else OneOf(*labels)
        else:
            excluded.setdefault(name, []).extend(_labels(model, name, text))
    for name, labels in excluded.items():
        if name in evidence:
            raise StateError(f"{name} has both = and != observations; = alone says it")
        evidence[name] = Not(*labels)
    return evidence


def _split(model: GraphicalModel, word: str) -> tuple[str, bool, str]:
    """(variable, whether it is = and not !=, what follows); of several readings the one whose label exists."""
    readings = []
    at = -1
    while (at := word.find("=", at + 1)) >= 0:
        left, right = word[:at].strip(), word[at + 1 :].strip()
        if left in model:
            readings.append((left, True, right))
        elif left.endswith("!") and left[:-1].strip() in model:
            readings.append((left[:-1].strip(), False, right))
    if readings:
        sound = [r for r in readings if model.var(r[0]).is_discrete and r[2] in model.states(r[0])]
        return (sound or readings)[0]
    if "=" not in word:
        raise GramGraphError(f"{word!r} is not an observation: VARIABLE=STATE or VARIABLE!=STATE is expected")
    raise VariableError.unknown(word.split("=", 1)[0].rstrip("! "), model.variables)


def _numbers(name: str, text: str) -> float | list[float]:
    """What was observed of a real-valued variable: a number, or several parted by commas."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        raise StateError(f"{name} is real-valued: a number is expected, not {text!r}") from None
    return found[0] if len(found) == 1 else found


def _labels(model: GraphicalModel, name: str, text: str) -> list[str]:
    """A label of this variable, or several parted by |."""
    whole = text in model.states(name)
    return [_label(model, name, part.strip()) for part in ([text] if whole else text.split("|"))]


def _label(model: GraphicalModel, name: str, text: str) -> str:
    return model.states(name)[model.var(name).index(text)]


def parse_virtual(model: GraphicalModel, words: Iterable[str]) -> dict[str, dict[str, float]] | None:
    """`HR=LOW:1,HIGH:3` as likelihood weights; None when there are none."""
    out: dict[str, dict[str, float]] = {}
    for word in words:
        name, equal, text = _split(model, word)
        if not equal:
            raise GramGraphError(f"{word!r}: weights are written VARIABLE=STATE:WEIGHT,STATE:WEIGHT")
        weights = out.setdefault(name, {})
        for part in text.split(","):
            label, _, number = part.rpartition(":")
            weights[_label(model, name, label.strip())] = _weight(word, number)
    return out or None


def _weight(word: str, number: str) -> float:
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise GramGraphError(f"{word!r}: {number.strip()!r} is not a weight; a number ≥ 0 is expected after each colon")
    return value


def parse_targets(model: GraphicalModel, names: Sequence[str], joints: Sequence[str] = ()) -> list[Any] | None:
    """Names (also separated by commas) and joints as the targets that `query` takes; None for all."""
    targets: list[Any] = []
    for word in names:
        targets += [word] if word in model else [_name(model, part) for part in word.split(",")]
    targets += [tuple(_name(model, part) for part in word.split(",")) for word in joints]
    return targets or None


def _name(model: GraphicalModel, text: str) -> str:
    model.index(text.strip())
    return text.strip()


def parse_size(text: str) -> float:
    """Bytes from `2GB`, `500 MiB`, `1e9`.

    >>> parse_size("2GB"), parse_size("1KiB"), parse_size("1e9")
    (2000000000.0, 1024.0, 1000000000.0)
    """
    found = _SIZE.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write bytes or, for example, 500MB, 2GB, 4GiB")
    base = 1024 if found[3] else 1000
    return float(found[1]) * float(base ** _POWERS[found[2].lower()])


# ---------------------------------------------------------------------------------------------- writing


def print_json(value: Any) -> None:
    """JSON with one key per line; infinities and NaN, which JSON does not have, become null."""
    json.dump(_finite(value), sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return _finite(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextlib.contextmanager
def output(path: str | None) -> Iterator[IO[str]]:
    """Standard output, or a file (compressed for .gz) that appears only when it is complete."""
    if path is None:
        yield sys.stdout
        return
    with replacing(path) as raw, contextlib.ExitStack() as stack:
        packed: Any = stack.enter_context(gzip.open(raw, "wb")) if path.endswith(".gz") else raw
        stream = io.TextIOWrapper(packed, encoding="utf-8", newline="", write_through=True)
        yield stream
        stream.flush()
        stream.detach()  # closing it is up to those who opened what it writes to


def sampling_options(args: argparse.Namespace) -> dict[str, Any]:
    """Arguments of `query` for approximate engines, those that were given."""
    given = {"budget": args.budget, "error": args.error, "random_state": args.seed}
    return {name: value for name, value in given.items() if value is not None}
