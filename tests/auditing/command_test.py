"""`fljax-audit`, and `python -m fljax.audit`, which is no module to import."""

import importlib
import tomllib

import pytest


def test_the_command_module_cannot_take_the_functions_place():
    with pytest.raises(ImportError, match="is a function"):
        importlib.import_module("fljax.audit")


def test_the_console_script_leads_to_a_function():
    with open("pyproject.toml", "rb") as file:
        target = tomllib.load(file)["project"]["scripts"]["fljax-audit"]
    module, _, name = target.partition(":")
    assert callable(getattr(importlib.import_module(module), name))
