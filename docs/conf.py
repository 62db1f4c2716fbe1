"""The site, built by `make docs` into site/; it opens from disk and fetches nothing."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

project = "rowsep"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "website.extension"]
exclude_patterns = ["generated"]

html_theme = "furo"
html_title = "rowsep"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_math_renderer = "mathml"

myst_enable_extensions = ["attrs_block", "dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autoclass_content = "both"
autodoc_default_options = {"members": True}
python_maximum_signature_line_length = 80
napoleon_numpy_docstring = False
napoleon_use_rtype = False
add_module_names = False
