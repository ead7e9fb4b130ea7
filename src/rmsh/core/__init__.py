"""Foundations that every other package uses: errors, types, configuration, files, locks and progress."""
