"""What a simulated machine is made of: file systems, users, processes, images, programs."""
