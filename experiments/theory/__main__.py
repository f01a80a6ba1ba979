"""`python -m experiments.theory`."""

from experiments import config
from experiments.theory import program

if __name__ == "__main__":
    config.run(program)
