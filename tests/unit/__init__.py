"""One module of tests for each module of the product; no compiler, no network."""
