"""Defenses of others as they are shipped, attacked as one's own training would be.

Data flow one way: `rows` -> `training`, with a defense of `catalogue`, through a
`fljax.transcript.Recorder` -> `auditing` (`fljax.audit`) -> a row for each defense.
What each package ships is called in a module of its own, which alone imports it.
"""
