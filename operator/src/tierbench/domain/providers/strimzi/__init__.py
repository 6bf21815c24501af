"""Strimzi, which is asked for a Kafka."""
