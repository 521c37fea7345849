"""The simulated network: who can reach whom, under which name, after how long, and what both ends see of it."""
