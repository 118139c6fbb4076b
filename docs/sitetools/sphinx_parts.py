"""What Sphinx lacks here: mathematics as MathML, docstrings read as plain text, pages that are made before a build."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

from sitetools import benchmark_pages, gallery_pages, reference, systems

HEADING = re.compile(r"^\s*(-{3,}|={3,})\s*$")
FIGURE = re.compile(r'<img\b(?![^>]*(?:_thumb|loading=))[^>]*\bsrc="[./]*_images/[^>]*>')
SECTION = re.compile(r"^(Parameters|Other Parameters|Attributes)$")
FIELD = re.compile(r"^([\w*][\w*, ]*) : (.*)$")


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    app.config.html_math_renderer = "mathml"
    app.connect("builder-inited", make_pages, priority=100)
    app.connect("builder-inited", around_gallery, priority=900)  # after sphinx-gallery, which stands at 500
    app.connect("autodoc-process-docstring", plain_docstring, priority=100)  # before numpydoc, which stands at 500
    app.connect("html-page-context", figures_in_full_size)
    app.connect("build-finished", copy_networks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def make_pages(app: Sphinx) -> None:
    """Reference, systems, benchmarks and what stands outside of docs/, as pages."""
    folder = Path(app.srcdir)
    reference.write(folder / "reference")
    systems.write(folder / "systems.md")
    benchmark_pages.write(folder / "measured.md")


def around_gallery(app: Sphinx) -> None:
    """What is made from the gallery's own pages and pictures."""
    gallery_pages.write(Path(app.srcdir) / "auto_gallery")


def copy_networks(app: Sphinx, error: Exception | None) -> None:
    """Pages of the explorer stand beside those of Sphinx."""
    if error is None:
        gallery_pages.copy_networks(Path(app.srcdir), Path(app.outdir))


def figures_in_full_size(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Figures keep their size, so that their texts can be read; where a window is narrower, it is they that scroll."""
    if body := context.get("body"):
        context["body"] = FIGURE.sub(r'<span class="full-size" tabindex="0">\g<0></span>', body)


# ------------------------------------------------------------------------------------------------ mathematics


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _display(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f"<div class='math'>{tex2mathml(node.astext(), as_block=True)}</div>")
    raise nodes.SkipNode


# ------------------------------------------------------------------------------------------------- docstrings


def plain_docstring(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are text: only `code`, examples (>>>), sections and lists mean something."""
    lines[:] = plain_lines(described(lines))


def described(lines: list[str]) -> list[str]:
    """Fields of parameters with their text below the name: `n : how many` would be read as a name with a type."""
    out: list[str] = []
    inside = False
    for at, line in enumerate(lines):
        heading = at + 1 < len(lines) and HEADING.match(lines[at + 1])
        inside = bool(SECTION.match(line)) if heading else inside
        field = FIELD.match(line) if inside else None
        if field is None:
            out.append(line)
            continue
        more = re.match(r"(\s+)([*-] )?\S", lines[at + 1]) if at + 1 < len(lines) else None  # a text that goes on
        out += [field[1], f"{more[1] if more else '    '}{field[2]}"]
        out += [""] if more and more[2] else []  # before a list
    return out


def plain_lines(lines: list[str]) -> list[str]:
    """Lines of a docstring as reStructuredText; code between backquotes may run over the end of a line."""
    out: list[str] = []
    text: list[str] = []

    def flush() -> None:
        if text:
            out.extend(_plain_paragraph(text))
            text.clear()

    example = False
    for line in lines:
        if not line.strip():
            example = False
        elif line.lstrip().startswith(">>>"):
            example = True
        if not line.strip() or example or HEADING.match(line):
            flush()
            out.append(line)
        else:
            text.append(line)
    flush()
    return _blank_before_examples(out)


def _plain_paragraph(text: list[str]) -> list[str]:
    bullets = [re.match(r"^(\s*)([*-]) ", line) for line in text]
    bare = [line[m.end() :] if m else line for line, m in zip(text, bullets, strict=True)]
    made = reference.plain("\n".join(bare)).split("\n")
    return [f"{m[1]}{m[2]} {line}" if m else line for line, m in zip(made, bullets, strict=True)]


def _blank_before_examples(lines: list[str]) -> list[str]:
    out: list[str] = []
    for line in lines:
        if line.lstrip().startswith(">>>") and out and out[-1].strip() and not re.match(r"\s*(>>>|\.\.\.)", out[-1]):
            before = next((o for o in reversed(out) if not o.strip() or ">>>" in o), "")
            if ">>>" not in before:
                out.append("")
        out.append(line)
    return out
