"""The analysis held against the real dynamic loader and against real removals, in one large environment."""
