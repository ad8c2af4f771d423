package bench

// qos measures what quality of service costs writes between two drivers, by UDP sockets, where nothing is marked and one class sends:
// congestion control at both, with ECN in all packets, and two traffic classes with shares.
func (r *runner) qos() error {
	return r.inTurns(feature{part: "qos", name: "congestion control and shares on", least: 0.95, set: r.setQoS})
}

// setQoS configures the driver of a side.
func (r *runner) setQoS(p *path, x side, on bool) error {
	congestion, classes := "-Disable", []string{"prio-tc=default", "tc-bw=default"}
	if on {
		congestion, classes = "-Enable", []string{"prio-tc=3:1", "tc-bw=0:50,1:50"}
	}
	if err := r.configure(p, x, "mlx5cmd", "-QosConfig", "-Dcqcn", "-Name", pairAdapter, congestion); err != nil {
		return err
	}
	return r.configure(p, x, append([]string{"qos", "set", pairAdapter}, classes...)...)
}
