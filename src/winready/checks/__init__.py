"""One small file per check, grouped by category, and the fixtures that checks share."""
