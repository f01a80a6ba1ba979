"""Accuracy and cost of Fed-CDP (Wei et al., 2021)."""
