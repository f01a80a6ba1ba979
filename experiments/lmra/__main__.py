"""`python -m experiments.lmra`."""

from fljax.driver import launch

if __name__ == "__main__":
    launch.run("experiments.lmra.program")
