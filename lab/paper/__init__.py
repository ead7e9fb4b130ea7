"""Reporting: what readers see of experiments, from their result files: a summary, tables, figures, a report."""
