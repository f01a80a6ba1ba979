"""Attacks. None of them is ever given the truth.

What every attack gets is `adversary.AdversaryView`, what it gives back one of
`estimates`; `needs` says where it does not apply, and `registry` has them by name.
`each_client` makes an attack on all clients of one on a single client, which is what
the modules of the rooms beside the registered ones are about:

* `attribute`: a column of the rows, from any model or from the messages; active servers.
* `trajectory`: the same, by simulating the client.
* `reconstruction`: a client's optimal model.
* `inversion`: a client's images, or other inputs, by descent.
* `rows`: a client's rows, whole and proven.
* `membership`: whether a row was among them.
* `label_distribution`: what its rows are labelled.
"""
