"""`python -m experiments.lmra`."""

from experiments import config
from experiments.lmra import program

if __name__ == "__main__":
    config.run(program)
