"""Around the gallery: its pages by text, all of its figures on one sheet, and its small networks in the explorer."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path
from typing import Any

from sitetools.systems import LETTERS, gallery_scripts

__all__ = ["by_text", "copy_networks", "figure_sheet", "network_link", "write"]

TITLES = {
    "Zhu": "Graphical models and kernel methods",
    "Triebel": "Machine learning for computer vision",
    "Parikh": "Kernel graphical models",
    "Hennig": "Probabilistic inference and learning",
    "OuYang": "Probabilistic machine learning",
}
#: Variables of a network up to which its page of the gallery links to it in the explorer.
SMALL = 12


def _about(script: Path) -> str:
    return ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""


def _heading(title: str, mark: str) -> str:
    return f"{title}\n{mark * len(title)}\n\n"


def by_text() -> str:
    """The pages under the texts that they name; those that go beyond the texts at the end."""
    scripts = dict(sorted(gallery_scripts().items()))
    beyond = [script for script in scripts.values() if script.parent.name == "beyond"]
    told = {script: _about(script) for script in scripts.values() if script not in beyond}
    texts = {
        f"{name}, *{TITLES[name]}*": [script for script, about in told.items() if name in about]
        for name in LETTERS.values()
    }
    page = _heading("Gallery by text", "=")
    page += "The worked examples of each text; where several tell the same story they share a page. "
    page += "The :doc:`gallery <index>` has the same pages by topic.\n\n"
    for title, found in (texts | {"Beyond the texts": beyond}).items():
        page += _heading(title, "-") + "".join(f"* :doc:`{_place(script)}`\n" for script in found) + "\n"
    return page


def _place(script: Path) -> str:
    return f"/auto_gallery/{script.parent.name}/{script.stem}"


def figure_sheet(folder: Path) -> str:
    """Every figure of the gallery, small, as a link to its page; `folder` holds what sphinx-gallery has made."""
    page = _heading("All figures", "=") + "Every figure of the gallery; a click opens its page.\n\n"
    page += '.. raw:: html\n\n   <div class="figure-sheet">\n'
    for number, script in sorted(gallery_scripts().items()):
        title = re.sub(r"[`\"<>&]", "", _about(script).splitlines()[0])
        for image in sorted((folder / script.parent.name / "images").glob(f"sphx_glr_{script.stem}_[0-9]*.png")):
            page += f'   <a href="{script.parent.name}/{script.stem}.html" title="{number}. {title}">'
            page += f'<img loading="lazy" src="../_images/{image.name}" alt="{number}. {title}"></a>\n'
    return page + "   </div>\n"


def write(folder: Path) -> None:
    """Write both pages beside those of sphinx-gallery, if they changed."""
    for name, text in {"by_text.rst": by_text(), "all_figures.rst": figure_sheet(folder)}.items():
        file = folder / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


# ----------------------------------------------------------------------------------------- in the explorer


def network_link(block: Any, block_vars: Any, gallery_conf: Any, **kwargs: Any) -> str:
    """A link to a page of the explorer for a small network of tables that a script calls `net` (for sphinx-gallery)."""
    import gramgraph as gg

    net = block_vars["example_globals"].get("net")
    script = Path(block_vars["src_file"])
    if not isinstance(net, gg.BayesianNetwork) or block_vars.get("in_explorer"):
        return ""
    if not net.is_discrete or len(net.variables) > SMALL:
        return ""
    file = Path(gallery_conf["src_dir"]) / "auto_gallery" / "explorer" / f"{script.stem}.html"
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        net.explore(static=file)
    except gg.ModelError:  # a graph so far: its tables may follow
        return ""
    block_vars["in_explorer"] = True
    text = "Open this network in the explorer: click what you observe, and watch the beliefs"
    return f'\n\n.. raw:: html\n\n    <p class="in-explorer"><a href="../explorer/{file.name}">{text}</a></p>\n\n'


def copy_networks(source: Path, site: Path) -> None:
    """The explorer's pages, into the built site."""
    if (source / "auto_gallery" / "explorer").is_dir():
        shutil.copytree(source / "auto_gallery" / "explorer", site / "auto_gallery" / "explorer", dirs_exist_ok=True)
