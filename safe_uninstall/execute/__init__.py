"""Changes an environment, as one transaction."""
