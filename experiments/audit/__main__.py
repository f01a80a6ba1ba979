"""`python -m experiments.audit`."""

from experiments import config
from experiments.audit import program

if __name__ == "__main__":
    config.run(program)
