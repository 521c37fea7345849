"""Places for results: folders and object stores behind one small set of verbs."""
