"""The bundle that a vendor hands in, and what anyone can check of it again."""
