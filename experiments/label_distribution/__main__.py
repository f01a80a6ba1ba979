"""`python -m experiments.label_distribution`."""

from experiments import config
from experiments.label_distribution import program

if __name__ == "__main__":
    config.run(program)
