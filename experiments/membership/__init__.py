"""Membership inference against federated training, by observer and defense."""
