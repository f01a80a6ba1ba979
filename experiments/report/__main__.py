"""`python -m experiments.report`."""

from fljax.driver import launch

if __name__ == "__main__":
    launch.run("experiments.report.program")
