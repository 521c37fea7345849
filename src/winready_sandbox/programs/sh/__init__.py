"""The POSIX shell of busybox, on Linux and (busybox-w32) on Windows."""
