"""`python -m experiments.audit`."""

from experiments import launch

if __name__ == "__main__":
    launch.run("experiments.audit.program")
