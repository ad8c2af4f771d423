// Package monitoring has a distribution's Prometheus read a running driver with traffic, with the rules and the queries of the dashboard
// in examples/monitoring. Its tests are skipped where there is no Prometheus.
package monitoring
