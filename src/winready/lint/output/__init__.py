"""The forms in which a lint run is told: each module turns results into lines as they come."""
