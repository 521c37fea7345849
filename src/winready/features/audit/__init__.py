"""Which fields, gates and specs of a Kubernetes version are new, gone, or without a word about Windows in our data."""
