"""`tests/` mirrors `src/`: every folder is named after a package, but for those that look at the whole."""

from __future__ import annotations

from pathlib import Path

import gramgraph

SOURCE = Path(gramgraph.__file__).parent
TESTS = Path(__file__).parents[1]
#: laws, agreement and reference hold engines and models against each other; surface and docs hold what users see.
WHOLE = {"agreement", "docs", "laws", "reference", "surface"}


def test_every_folder_of_tests_names_a_package() -> None:
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    packages = {f for f in folders if (SOURCE / f / "__init__.py").exists()}
    strange = {str(f) for f in folders - packages if f.parts[0] not in WHOLE}
    assert not strange, f"no such packages: {strange}"


def test_every_package_has_tests() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    elsewhere = {"_numerics", "cli", "datasets", "testing"}  # _numerics through its callers, the others in surface
    assert packages - elsewhere <= {path.name for path in TESTS.iterdir()}
