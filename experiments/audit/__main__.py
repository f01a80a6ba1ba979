"""`python -m experiments.audit`."""

from fljax.driver import launch

if __name__ == "__main__":
    launch.run("experiments.audit.program")
