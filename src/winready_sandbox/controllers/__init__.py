"""Controllers of the embedded control plane: each works through lists, watches and writes, as an outsider would."""
