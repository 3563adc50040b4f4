"""Settings of the documentation site; `make docs` builds it from a copy of docs/ and notebooks/."""

import importlib.metadata

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
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
]
exclude_patterns = ["README.md", "notebooks/README.md", "docs/templates"]
templates_path = ["templates"]

nb_execution_mode = "off"  # the notebooks are stored with their results
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["mystnb.unknown_mime_type"]

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc shows the types of parameters
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

intersphinx_mapping = {}  # the site is built without the network

html_theme = "pydata_sphinx_theme"
html_title = "StructRank"
html_static_path = []
html_extra_path = ["start"]  # index.html at the top leads to docs/index.html
html_show_sourcelink = False
html_theme_options = {"navbar_align": "left", "show_prev_next": True, "footer_start": ["copyright"], "footer_end": []}
html_sidebars = {"docs/index": []}
