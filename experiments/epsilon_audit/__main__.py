"""`python -m experiments.epsilon_audit`."""

from fljax.driver import launch

if __name__ == "__main__":
    launch.run("experiments.epsilon_audit.program")
