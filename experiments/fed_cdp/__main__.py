"""`python -m experiments.fed_cdp`."""

from experiments import config
from experiments.fed_cdp import program

if __name__ == "__main__":
    config.run(program)
