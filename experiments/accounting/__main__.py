"""`python -m experiments.accounting`."""

from experiments import config
from experiments.accounting import program

if __name__ == "__main__":
    config.run(program)
