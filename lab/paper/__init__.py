"""The paper's tables, figures and claims, from the result files of a grid."""
