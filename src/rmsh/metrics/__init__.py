"""Metrics: scores of codes that do not depend on the order of ties, with bounds and chance levels.

A measure is a pure function of joint histograms: ``histogram.py`` counts them, ``ranking.py`` measures them, and
``evaluate.py`` does both in one pass.
"""
