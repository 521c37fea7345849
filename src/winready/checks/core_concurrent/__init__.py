"""Core.Concurrent: churn, and many pods behind one address."""
