"""What gradients leak, and which defense hides it (Wei et al., 2021)."""
