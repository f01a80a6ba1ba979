"""Attribute inference against federated training (Diana et al., AAAI-25)."""
