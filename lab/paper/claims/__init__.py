"""The paper's claims against the results, by subject."""
