"""Which defense, and how strong: leakage, utility and epsilon over a grid, and a rule."""
