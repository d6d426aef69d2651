"""Small wheels of the package index, each a case that was seen in the field."""
