"""Pure functions from a spec to cases, and the parts of manifests that all kinds share."""
