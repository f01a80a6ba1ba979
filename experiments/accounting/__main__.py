"""`python -m experiments.accounting`."""

from experiments import launch

if __name__ == "__main__":
    launch.run("experiments.accounting.program")
