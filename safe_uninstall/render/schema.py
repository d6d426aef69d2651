"""The JSON Schema of the documents, which ships with the package."""

from importlib.resources import files


def schema_text() -> str:
    """Return the schema (draft 2020-12) as text."""
    return files("safe_uninstall.render").joinpath("schema.json").read_text(encoding="utf-8").rstrip("\n")
