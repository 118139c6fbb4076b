"""The declared lower bounds as pins, one a line: what `make test-lowest` installs. pyproject.toml is the only list."""

import re
import tomllib
from pathlib import Path

#: A name with its extras, and the version after >=.
BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*>=\s*([0-9][^,;\s]*)")


def pins(text: str) -> list[str]:
    """`name==version` of everything that the package and its tests need."""
    project = tomllib.loads(text)["project"]
    needs = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    found = [BOUND.match(need) for need in needs]
    if missing := [need for need, bound in zip(needs, found, strict=True) if bound is None]:
        raise SystemExit(f"no lower bound is declared: {', '.join(missing)}")
    return sorted({f"{bound[1]}=={bound[2]}" for bound in found if bound})


if __name__ == "__main__":
    print("\n".join(pins((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))))
