"""Rows of clients behind sums of their updates: what secure aggregation leaves."""
