"""Pure: from a snapshot and a request to a plan."""
