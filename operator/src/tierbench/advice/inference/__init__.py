"""Which class is better, from few nodes: a hierarchical model on the log scale. Pure, and knows no results.

What is compared is a cost: a time, or one over a rate. It is the smaller the better, and always positive.
"""
