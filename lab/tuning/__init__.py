"""Trials on validation queries, and studies of RMSH and GLINT."""
