"""Local model reconstruction (Xu & Neglia, 2021)."""
