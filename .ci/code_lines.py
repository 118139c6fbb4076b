"""Count lines of code: without blank lines, comments and docstrings.

python .ci/code_lines.py                    # src of the working tree, by package
python .ci/code_lines.py --at v0.2.0        # of a commit, for comparison
python .ci/code_lines.py --since v0.1.0     # only what existed at a commit, wherever it stands now
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tarfile
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

_LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
#: Name of a definition, and how often each of its lines of code stands in it.
Part = tuple[str, Counter[str]]
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(text: str) -> set[int]:
    """Numbers of the lines of a module that hold code; a statement over three lines counts three."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            lines.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def definitions(text: str) -> dict[str, range]:
    """Functions and classes at the top of a module, with their lines."""
    kinds = (ast.ClassDef, ast.FunctionDef)
    return {n.name: range(n.lineno, n.end_lineno + 1) for n in ast.parse(text).body if isinstance(n, kinds)}


def matched(now: dict[str, list[Part]], before: list[Part]) -> Counter[str]:
    """Module → lines of its definitions that stood there before.

    Each earlier definition is found again at most once, under its name, where most of its lines are shared: a new
    function does not count as old because a function elsewhere had its name. One that got another name counts as new.
    """
    homes: dict[str, list[Counter[str]]] = {}
    for name, own in before:
        homes.setdefault(name, []).append(own)
    pairs = [
        ((old & own).total() / max(old.total(), own.total()), module, name, i, j)
        for module, parts in now.items()
        for j, (name, own) in enumerate(parts)
        if name
        for i, old in enumerate(homes.get(name, ()))
    ]
    found: Counter[str] = Counter()
    taken: set[tuple[str, int]] = set()
    for _, module, name, i, j in sorted(pairs, reverse=True):
        if not taken & {(name, i), (module, j)}:
            taken |= {(name, i), (module, j)}
            found[module] += now[module][j][1].total()
    return found


def bodies(text: str) -> list[Part]:
    """(name, its lines of code) of the definitions of a module; under no name, the rest of it."""
    lines, texts = code_lines(text), text.splitlines()
    found = [(name, lines.intersection(at)) for name, at in definitions(text).items()]
    found.append(("", lines.difference(*(own for _, own in found))))
    return [(name, Counter(texts[i - 1].strip() for i in own)) for name, own in found]


def since(texts: dict[str, str], earlier: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Module → lines of what stood in the `earlier` texts, and with what was added to modules made mostly of it.

    The rest of a module, such as its imports, belongs to what it is mostly made of.
    """
    now = {module: bodies(text) for module, text in texts.items()}
    kept = matched(now, [part for text in earlier for part in bodies(text)])
    out = {}
    for module, parts in now.items():
        rest = sum(own.total() for name, own in parts if not name)
        inside = sum(own.total() for name, own in parts if name)
        mostly = 2 * kept[module] >= inside
        out[module] = (kept[module] + rest, inside + rest) if mostly else (kept[module], kept[module])
    return out


def modules(root: str, commit: str | None) -> Iterator[tuple[str, str]]:
    """(path below root, text) of the Python files of the working tree or of a commit."""
    if commit is None:
        for path in sorted(Path(root).rglob("*.py")):
            yield path.relative_to(root).as_posix(), path.read_text()
        return
    packed = subprocess.run(["git", "archive", commit, root], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
        for member in files:
            if member.name.endswith(".py") and (held := files.extractfile(member)):
                yield PurePosixPath(member.name).relative_to(root).as_posix(), held.read().decode()


def main() -> None:
    """Print the count of every package, and the sum."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("root", nargs="?", default="src/gramgraph", help="folder to count")
    parser.add_argument("--at", metavar="COMMIT", help="count a commit instead of the working tree")
    parser.add_argument("--since", metavar="COMMIT", help="count only what stood in a commit, wherever it stands now")
    options = parser.parse_args()
    texts = dict(modules(options.root, options.at))
    found: dict[str, tuple[int, ...]] = {name: (len(code_lines(text)),) for name, text in texts.items()}
    if options.since:
        found = dict(since(texts, [text for _, text in modules(options.root, options.since)]))
        print(f"{'':<16}{'that':>8}{'with additions to its modules':>32}")
    packages: dict[str, list[tuple[int, ...]]] = {}
    for name, numbers in found.items():
        packages.setdefault(name.partition("/")[0] if "/" in name else ".", []).append(numbers)
    for package, rows in [*sorted(packages.items()), ("all", list(found.values()))]:
        sums = [sum(column) for column in zip(*rows, strict=True)]
        print(f"{package:<16}{sums[0]:>8,}" + "".join(f"{number:>32,}" for number in sums[1:]))


if __name__ == "__main__":
    main()
