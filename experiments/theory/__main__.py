"""`python -m experiments.theory`."""

from experiments import launch

if __name__ == "__main__":
    launch.run("experiments.theory.program")
