"""`python -m experiments.label_distribution`."""

from fljax.driver import launch

if __name__ == "__main__":
    launch.run("experiments.label_distribution.program")
