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
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
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


def kept_lines(text: str, names: set[str]) -> int:
    """Lines of code of the definitions with these names; with them the rest of a module that is mostly made of them."""
    lines, found = code_lines(text), definitions(text)
    kept = sum(len(lines.intersection(at)) for name, at in found.items() if name in names)
    inside = sum(len(lines.intersection(at)) for at in found.values())
    return kept + (len(lines) - inside if 2 * kept >= inside else 0)


def modules(root: str, commit: str | None) -> Iterator[tuple[str, str]]:
    """(path below root, text) of the Python files of the working tree or of a commit."""
    if commit is None:
        for path in sorted(Path(root).rglob("*.py")):
            yield path.relative_to(root).as_posix(), path.read_text()
        return
    names = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", commit, root], capture_output=True, text=True, check=True
    )
    for name in names.stdout.split():
        if name.endswith(".py"):
            shown = subprocess.run(["git", "show", f"{commit}:{name}"], capture_output=True, text=True, check=True)
            yield PurePosixPath(name).relative_to(root).as_posix(), shown.stdout


def main() -> None:
    """Print the count of every package, and the sum."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("root", nargs="?", default="src/gramgraph", help="folder to count")
    parser.add_argument("--at", metavar="COMMIT", help="count a commit instead of the working tree")
    parser.add_argument(
        "--since", metavar="COMMIT", help="count definitions only whose name stood anywhere in a commit"
    )
    options = parser.parse_args()
    names = options.since and {name for _, text in modules(options.root, options.since) for name in definitions(text)}
    found: Counter[str] = Counter()
    for name, text in modules(options.root, options.at):
        number = len(code_lines(text)) if names is None else kept_lines(text, names)
        found[name.partition("/")[0] if "/" in name else "."] += number
    for package, number in sorted(found.items()):
        print(f"{package:<16}{number:>8,}")
    print(f"{'all':<16}{found.total():>8,}")


if __name__ == "__main__":
    main()
