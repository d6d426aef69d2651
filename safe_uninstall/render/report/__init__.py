"""A plan or an audit as one self-contained HTML file."""

from safe_uninstall.render.report.page import render_report

__all__ = ["render_report"]
