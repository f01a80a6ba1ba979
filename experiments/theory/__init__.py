"""Theorem 1 of Diana et al. (AAAI-25): measured error against the bound's rate."""
