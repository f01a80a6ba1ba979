"""`python -m experiments.gradient_leakage`."""

from experiments import config
from experiments.gradient_leakage import program

if __name__ == "__main__":
    config.run(program)
