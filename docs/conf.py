"""Sphinx: MyST pages, furo, the command line's reference generated."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from safe_uninstall import __version__

project = "safe-uninstall"
author = "the safe-uninstall authors"
release = version = __version__
extensions = ["myst_parser", "click_reference"]
myst_enable_extensions = ["deflist", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "reference/_generated"]
html_theme = "furo"
html_title = f"safe-uninstall {version}"
