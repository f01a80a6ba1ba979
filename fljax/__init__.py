"""fljax: what does a client leak in federated learning, and which defense stops it?

Data flows one way: data -> partition -> schedule -> local update -> round ->
transcript -> attack -> metric -> report. Read `types`, `local`, `rounds`, `transcript`,
`attacks.attribute` in this order to know the library.
"""

__version__ = "0.1.0"
