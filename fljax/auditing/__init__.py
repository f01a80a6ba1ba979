"""An audit of somebody's own federated training, from a transcript of any framework."""
