"""Label-distribution inference (Rajani et al., 2023)."""
