"""`python -m experiments.report`."""

from experiments.report import program
from fljax.driver import launch

if __name__ == "__main__":
    launch.app_main(program.main)
