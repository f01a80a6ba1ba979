"""`python -m experiments.lmra`."""

from experiments import launch

if __name__ == "__main__":
    launch.run("experiments.lmra.program")
