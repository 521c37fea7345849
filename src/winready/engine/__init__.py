"""Plan, execute, journal, verdict: yields typed events, prints nothing."""
