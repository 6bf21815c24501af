"""The Helm chart: what it refuses, what it renders, how releases live side by side."""
