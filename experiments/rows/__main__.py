"""`python -m experiments.rows`."""

from fljax.driver import launch

if __name__ == "__main__":
    launch.run("experiments.rows.program")
