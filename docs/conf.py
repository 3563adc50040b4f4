"""Settings of the documentation site; `make docs` builds it from a copy of docs/ and notebooks/."""

import base64
import importlib.metadata
import json
import re
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

project = "StructRank"
author = "The StructRank developers"
copyright = author
version = release = importlib.metadata.version("structrank")

root_doc = "docs/index"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
]
exclude_patterns = ["README.md", "notebooks/README.md", "docs/templates"]
templates_path = [str(Path(__file__).parent / "templates")]  # autosummary would look in the folder of the sources

nb_execution_mode = "off"  # the notebooks are stored with their results
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["mystnb.unknown_mime_type"]

autosummary_generate = True
default_role = "py:obj"  # `name` in a docstring is a link where it names something public
autodoc_typehints = "none"  # numpydoc shows the types of parameters
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

intersphinx_mapping = {}  # the site is built without the network

html_theme = "pydata_sphinx_theme"
html_title = "StructRank"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
toc_object_entries_show_parents = "hide"
html_extra_path = ["start"]  # index.html at the top leads to docs/index.html
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "docs/index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}
_PAGES_WITHOUT_SECTIONS = ["docs/index", "docs/install", "docs/tutorial", "docs/faq", "docs/reproduction"]
_PAGES_WITHOUT_SECTIONS += ["CONTRIBUTING", "CODE_OF_CONDUCT", "CHANGELOG"]
html_sidebars = {page: [] for page in _PAGES_WITHOUT_SECTIONS}


def setup(app):
    """Write formulas as MathML, which browsers show without a script from the network; add the gallery of notebooks."""
    app.connect("source-read", _add_gallery)
    app.connect("doctree-read", _unlink_measures)
    app.add_html_math_renderer("mathml", inline_renderers=(_visit_math, None), block_renderers=(_visit_math_block, None))


def _visit_math(writer, node):
    writer.body.append(_mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _visit_math_block(writer, node):
    writer.body.append(f'<div class="formula">{_mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def _mathml(formula, as_block):
    formula = re.sub(r"\\([dt]?frac)(\d)(\d)", r"\\\1{\2}{\3}", formula)  # docutils reads \frac12 as the number 12
    return tex2mathml(re.sub(r"\\[bB]ig(?![a-zA-Z])", "", formula), as_block=as_block)  # MathML stretches parentheses itself


def _add_gallery(app, docname, source):
    """Add a card for each notebook to the page docs/notebooks: the words of notebooks/README.md and its first figure."""
    if docname != "docs/notebooks":
        return
    folder = Path(app.srcdir) / "notebooks"
    cards = ["::::{grid} 1 2 2 3", ":gutter: 3", ":class-container: gallery", ""]
    for title, name, text in re.findall(r"^- \[\d+ (.+?)\]\((.+?)\.ipynb\): (.+)$", (folder / "README.md").read_text(), re.M):
        cards += [f":::{{grid-item-card}} {title}", f":link: ../notebooks/{name}", ":link-type: doc"]
        if figure := _first_figure(folder / f"{name}.ipynb"):
            image, alt = figure
            (folder / f"{name}.png").write_bytes(image)
            cards += [f":img-bottom: ../notebooks/{name}.png", f":img-alt: {alt}"]
        cards += ["", text[0].upper() + text[1:], ":::"]
    source[0] += "\n".join(["", *cards, "::::", ""])


def _first_figure(path):
    """Return the first figure of a notebook and its description, or None."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", {}):
                return base64.b64decode(output["data"]["image/png"]), cell["metadata"]["mystnb"]["image"]["alt"]
    return None


def _unlink_measures(app, doctree):
    """Turn the names of measures back into text: docutils takes ndcg@10 for an address of electronic mail."""
    for link in list(doctree.findall(nodes.reference)):
        if re.fullmatch(r"mailto:\w+@\d+", link.get("refuri", "")):
            link.replace_self(link.children)
