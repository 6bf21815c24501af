"""The objects of group tierbench.io: typed models, the one source of CRDs, reference documentation and chart schema."""
