"""The showcase: what a trained method finds and how it lays items out, as small files that figures are drawn from."""
