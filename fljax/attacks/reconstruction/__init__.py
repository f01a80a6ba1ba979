"""A client's own optimal model from its messages: least squares, and learned mappings."""
