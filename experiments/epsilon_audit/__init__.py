"""Epsilon from both sides: what an adversary demonstrably has, under what is accounted."""
