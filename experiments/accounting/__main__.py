"""`python -m experiments.accounting`."""

from fljax.driver import launch

if __name__ == "__main__":
    launch.run("experiments.accounting.program")
