"""How the site is built: `make docs`. Pages that are made (reference, figures, systems) come from `docs/sitetools`."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT), str(ROOT / "src")]
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # two workers, one thread each
    os.environ.setdefault(name, "1")
os.environ["MPLBACKEND"] = "Agg"
if (ROOT.parent / "shared" / "data").is_dir():  # images and tables that some pages show where they are found
    os.environ.setdefault("GRAMGRAPH_DATA", str(ROOT.parent / "shared" / "data"))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))

import gramgraph  # noqa: E402

project = "gramgraph"
author = "gramgraph developers"
copyright = "gramgraph developers"
version = release = gramgraph.__version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sitetools.sphinx_parts",  # mathematics as MathML, docstrings as text, the pages that are made
]
templates_path: list[str] = []
exclude_patterns = ["_build", "measured/**", "sitetools", "gallery/**", "**/GALLERY_HEADER.rst", "README.md"]
suppress_warnings = ["config.cache"]  # gallery's order is a function, which no cache can hold
nitpicky = False

# Docstrings are plain text with `code`; signatures stand as they are written.
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 100
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
toc_object_entries = False

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = "gramgraph"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"start": [], "changes": [], "systems": []}  # pages that stand alone
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "show_toc_level": 2,
    "collapse_navigation": True,
    "navigation_with_keys": False,
}
html_context = {"default_mode": "auto"}

GROUPS = (
    "probability",
    "graphs",
    "learning",
    "regression",
    "sequences",
    "kernel_networks",
    "boosting_vision",
    "beyond",
)


def group_order(folder: str) -> int:
    """Place of a group of the gallery on its page."""
    name = Path(folder).name
    return GROUPS.index(name) if name in GROUPS else len(GROUPS)


sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["auto_gallery"],
    "filename_pattern": r"/plot_",
    "subsection_order": group_order,
    "within_subsection_order": "FileNameSortKey",
    "parallel": int(os.environ.get("DOCS_WORKERS", "2")),
    "image_scrapers": ("sitetools.figures.scraper", "sitetools.gallery_pages.network_link"),
    "capture_repr": ("_repr_html_",),
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 20,
    "nested_sections": False,
    "matplotlib_animations": False,
    "write_computation_times": False,
    "reference_url": {"gramgraph": None},
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
