"""`python -m experiments.rows_of_sums`."""

from fljax.driver import launch

if __name__ == "__main__":
    launch.run("experiments.rows_of_sums.program")
