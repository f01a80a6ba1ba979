"""`python -m experiments.membership`."""

from fljax.driver import launch

if __name__ == "__main__":
    launch.run("experiments.membership.program")
