// Package fabric runs a distribution's unmodified InfiniBand programs on the virtual fabric, and compares what they
// print with what they print on the real ibsim. What is not installed is skipped; test/diags/packages.sh installs it.
package fabric
