"""The site: `sphinx-build -W -b html docs docs/_build/html`, from the root of the repository."""

import os
import pathlib
import sys

_HERE = pathlib.Path(__file__).parent
_ROOT = _HERE.parent
sys.path[:0] = [str(_ROOT), str(_HERE / "extensions")]
# Pages with code run in processes of their own.
_PATH = os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])
os.environ |= {"FLJAX_ROOT": str(_ROOT), "PYTHONPATH": _PATH.rstrip(os.pathsep)}

import fljax

project, release = "fljax", fljax.__version__
copyright = "the authors of fljax"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "api_pages",
    "docstrings",
    "mathml",
    "notebook_pages",
]
exclude_patterns = ["_build", "extensions"]
default_role = "code"

html_theme = "sphinx_book_theme"
html_title = "fljax"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_copyright = html_show_sphinx = html_copy_source = False
html_theme_options = {
    "footer_content_items": [],
    "show_toc_level": 2,
    "use_download_button": False,
    "use_fullscreen_button": False,
}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 400
nb_merge_streams = True
nb_render_markdown_format = "myst"

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
maximum_signature_line_length = 80
napoleon_numpy_docstring = False
napoleon_attr_annotations = False
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_use_rtype = False
