"""Methods that are kept for comparison with those of the product, in the same registry."""
