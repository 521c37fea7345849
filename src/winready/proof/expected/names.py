"""Groups of requirements that one fault concerns."""

from __future__ import annotations

WINDOWS_CORE = "N1 N2 N3 N4 N5 N6 N7 N8 N9 N10 N11 N12 N13 S1 S2 S3 S4 S5 S6 H1 H2 C1 C2 C3"
WINDOWS_PODS = f"{WINDOWS_CORE} A1 A2 A3 A4 K1 K2 X1 X2 X3 X4 X5 P7 W3 W4"
"""Everything that is shown with ordinary Windows pods."""
WINDOWS = f"{WINDOWS_PODS} P1 P2 P3 P4 P5 P6 W1 W2"
"""Everything that is shown on Windows nodes."""
WINDOWS_BUT_C1 = " ".join(name for name in WINDOWS.split() if name != "C1")
