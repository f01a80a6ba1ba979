"""`python -m experiments.theory`."""

from fljax.driver import launch

if __name__ == "__main__":
    launch.run("experiments.theory.program")
