"""`python -m experiments.aia`."""

from experiments import config
from experiments.aia import program

if __name__ == "__main__":
    config.run(program)
