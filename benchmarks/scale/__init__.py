"""How much the operator carries, measured on a cluster most of whose nodes are simulated: `make scale`."""
