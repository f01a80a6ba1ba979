"""`python -m experiments.aia`."""

from experiments import launch

if __name__ == "__main__":
    launch.run("experiments.aia.program")
