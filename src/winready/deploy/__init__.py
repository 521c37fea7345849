"""winready in the cluster itself: the objects of a Job or CronJob, and what a run tells the cluster about itself."""
