"""`python -m experiments.gradient_leakage`."""

from fljax.driver import launch

if __name__ == "__main__":
    launch.run("experiments.gradient_leakage.program")
