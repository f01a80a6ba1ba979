"""`python -m experiments.report`."""

from experiments.report import program
from fljax.driver import config

if __name__ == "__main__":
    config.app_main(program.main)
