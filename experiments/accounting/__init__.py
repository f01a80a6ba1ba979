"""Epsilons of Fed-SDP and Fed-CDP, as printed and as they are (Wei et al., 2021)."""
