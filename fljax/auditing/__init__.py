"""An audit of somebody's own federated training, from a transcript of any framework.

`fljax.audit` is the function (`library`, `arguments`), `fljax-audit` and
`python -m fljax.audit` the command line (`program`, `command`, `settings`).

* what is read: `inputs`, `frames`, `table`, `recording`, `local_training`,
  `declaration`, `client_loss`, `values`, `derived`, `unmatched`;
* the model: `architecture`, `in_order`, `normalisation`, or one's own (`imported`);
* the wall: `rows` and `case` part what the adversary knows from the `truth`, if there is
  room (`padding`);
* attacks: `attacking`, and what they would cost (`effort`);
* scores: `population`, `measuring`, `scoring`, `nearness`, `unusual`, `lines`, `doubts`,
  `fits`, `learnt`, `slips`, `declared_noise`, `undeclared`, `pace`, `replay`, `ceilings`;
* what is left: `findings`, `at_risk`, `reporting`, `words`, `advice`, `cells`,
  `page`, `drawings`.
"""
