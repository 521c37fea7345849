"""Proofs of the checks: who must notice each fault of the sandbox, and whether they do."""
