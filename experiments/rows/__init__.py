"""Whole rows of a table from one message, and under secure aggregation."""
