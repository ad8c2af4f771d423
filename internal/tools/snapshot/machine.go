package snapshot

import (
	"net"
	"os"
	"runtime"
	"strings"
)

// machine reports about the machine and its network.
func (r *report) machine() {
	s := r.section("System", "Property", "Value")
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	r.Host = host
	s.add("Host name", host)
	s.add("Operating system", runtime.GOOS)
	s.add("Architecture", runtime.GOARCH)
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		s.add("Kernel", strings.TrimSpace(string(b)))
	}
	s.add("Processors", runtime.NumCPU())
	s.add("Built with", runtime.Version())
	n := r.section("Network interfaces", "Name", "State", "MTU", "Hardware address", "Addresses")
	list, err := net.Interfaces()
	if err != nil {
		n.Note = err.Error()
	}
	for _, i := range list {
		var all []string
		addrs, err := i.Addrs()
		for _, a := range addrs {
			all = append(all, a.String())
		}
		if err != nil {
			all = append(all, err.Error())
		}
		n.add(i.Name, i.Flags, i.MTU, i.HardwareAddr, strings.Join(all, ", "))
	}
}
