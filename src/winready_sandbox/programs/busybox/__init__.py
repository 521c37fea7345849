"""busybox: many small tools in one program, on Linux and (busybox-w32) on Windows."""
