"""The standard as data: categories, requirements, rules."""
