"""`python -m experiments.aia`."""

from fljax.driver import launch

if __name__ == "__main__":
    launch.run("experiments.aia.program")
