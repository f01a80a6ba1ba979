"""`python -m experiments.choose_defense`."""

from fljax.driver import launch

if __name__ == "__main__":
    launch.run("experiments.choose_defense.program")
