// Package grafana reads the dashboard of examples/monitoring by the schema of Grafana, as its publisher's library for dashboards
// (grafana-foundation-sdk) has it. It is a module of its own, so that nothing else depends on that library.
package grafana
