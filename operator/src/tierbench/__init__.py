"""tierbench: on which class of node should a service run?"""
