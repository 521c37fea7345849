"""The simulated network: addresses, service proxies, DNS, policies."""
