"""winready: is this Kubernetes cluster operationally ready for Windows workloads?"""

__version__ = "0.1.0"
