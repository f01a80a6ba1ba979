"""`python -m experiments.fed_cdp`."""

from fljax.driver import launch

if __name__ == "__main__":
    launch.run("experiments.fed_cdp.program")
