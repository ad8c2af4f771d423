package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// counts are the totals and levels of one instance of each set, by "set.counter" with short names.
type counts map[string]uint64

// counts reads what the host's adapter counts, as metrics, which have short names.
func (h *linuxHost) counts(t *testing.T) counts {
	t.Helper()
	c := counts{}
	sample := regexp.MustCompile(`(?m)^softvpi_([a-z0-9_]+)\{adapter="port"(?:,(?:interface|port)="[^"]*")?\} (\S+)$`)
	for _, m := range sample.FindAllStringSubmatch(h.shell(t, "curl -sS --unix-socket "+filepath.Join(h.dir, "d.sock.admin")+" http://driver/metrics"), -1) {
		v, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatalf("%q: %v", m[0], err)
		}
		c[strings.TrimSuffix(m[1], "_total")] = uint64(v)
	}
	return c
}

// since returns how much has been counted since another reading.
func (c counts) since(before counts) counts {
	d := counts{}
	for name, v := range c {
		d[name] = v - before[name]
	}
	return d
}

// moved returns those that are not 0.
func (c counts) moved() counts {
	m := maps.Clone(c)
	maps.DeleteFunc(m, func(_ string, v uint64) bool { return v == 0 })
	return m
}

// nicStats are the kernel's counters of a host's interface.
type nicStats struct {
	RX, TX struct{ Bytes, Packets, Dropped uint64 }
}

// nic reads them.
func (h *linuxHost) nic(t *testing.T) nicStats {
	t.Helper()
	var list []struct {
		Stats64 nicStats `json:"stats64"`
	}
	out := h.shell(t, "ip -j -s link show nic")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	return list[0].Stats64
}

// TestEthernet_CountersAgree: after TCP, UDP and RDMA between two adapters with hosts, what one has sent is what the other has
// received, on the wire, at the host's interface by the kernel's own counters, and of RDMA; and the command line, the management
// interface and the page say the same.
func TestEthernet_CountersAgree(t *testing.T) {
	systemtest.Mark(t)
	h := linuxHosts(t, 1500)
	for _, x := range h {
		x.shell(t, "sysctl -q net.ipv6.conf.wire.disable_ipv6=1") // the system itself says nothing there
		x.up(t)
		x.address(t)
	}
	a, b := h[0], h[1]
	a.shell(t, "ping -c 1 "+b.ip)
	b.shell(t, "ping -6 -c 1 "+a.ip6)
	for name, large := range map[string]string{"large sends": "1", "no large sends": "0"} {
		t.Run(name, func(t *testing.T) {
			for _, x := range h {
				for _, key := range []string{"*LsoV2IPv4", "*LsoV2IPv6"} {
					if status, out, errs := x.run(t, "reg", "add", key, "--adapter", "port", "/d", large, "/f"); status != 0 {
						t.Fatal(out, errs)
					}
				}
			}
			var before [2]counts
			var nics [2]nicStats
			for i, x := range h {
				before[i], nics[i] = x.counts(t), x.nic(t)
			}
			b.begin(t, "iperf3", "-s", "-1", "-p", "5302")
			b.shell(t, "ss -ltn | grep :5302")
			a.shell(t, "iperf3 -c "+b.ip+" -p 5302 -n 3M")
			b.begin(t, "iperf3", "-s", "-1", "-p", "5303")
			b.shell(t, "ss -ltn | grep :5303")
			a.shell(t, "iperf3 -6 -u -c "+b.ip6+" -p 5303 -b 20M -l 1000 -n 500K")
			server := b.spawn(t, "nd_write_bw", "-S", b.ip, "-p", "6833")
			server.until(t, "serving")
			if status, out, errs := a.run(t, "nd_write_bw", "-C", b.ip, "-L", a.ip, "-p", "6833", "-s", "65536", "-n", "50"); status != 0 {
				t.Fatal(out, errs)
			}
			server.wait(t)

			problem := ""
			if !await.Until(func() bool { // what is on its way arrives
				var d [2]counts
				var n [2]nicStats
				for i, x := range h {
					n[i] = x.nic(t)
					d[i] = x.counts(t).since(before[i])
				}
				problem = agree(d[0], d[1]) + agree(d[1], d[0])
				for i := range h {
					problem += kernel(d[i], nics[i], n[i]) + parts(d[i], large == "0")
				}
				return problem == ""
			}) {
				t.Errorf("the counters do not agree:%s", problem)
				for i, x := range h {
					t.Logf("%s: %v\nbefore %+v, now %+v", x.ip, x.counts(t).since(before[i]).moved(), nics[i], x.nic(t))
				}
			}
			d := a.counts(t).since(before[0])
			if d["adapter_traffic_sent_bytes"] < 1<<20+50*65536 || d["rdma_activity_outbound_bytes"] < 50*65536 ||
				d["network_interface_sent_bytes"] < 1<<20 || (d["ethernet_sent_large_frames"] > 0) != (large == "1") {
				t.Errorf("sent: %d bytes, of RDMA %d, of the host %d; %d large", d["adapter_traffic_sent_bytes"],
					d["rdma_activity_outbound_bytes"], d["network_interface_sent_bytes"], d["ethernet_sent_large_frames"])
			}
		})
	}
	shownAlike(t, a)
}

// What hosts say for themselves (ARP, neighbour discovery): most frames while a test runs, between those while one counter is read
// after the other, and their length at most.
const most, between, length = 16, 3, 200

// agree compares what one adapter has sent with what the other has received. That of the system at the wire's ends is received, too:
// some short frames. What a host sends to groups that the other has not joined
// is not for that.
func agree(from, to counts) (problem string) {
	others := to["ethernet_dropped_address_frames"] + between
	for _, c := range []struct {
		sent, received string
		less, more     uint64
	}{
		{"adapter_traffic_sent_packets", "adapter_traffic_received_packets", between, most},
		{"adapter_traffic_sent_bytes", "adapter_traffic_received_bytes", between * length, most * length},
		{"port_traffic_sent_bytes", "port_traffic_received_bytes", between * length, most * length},
		{"rdma_activity_outbound_frames", "rdma_activity_inbound_frames", 0, 0},
		{"rdma_activity_outbound_bytes", "rdma_activity_inbound_bytes", 0, 0},
		{"network_interface_sent_packets", "network_interface_received_packets", others, most},
		{"network_interface_sent_bytes", "network_interface_received_bytes", others * length, most * length},
		{"network_interface_sent_unicast_packets", "network_interface_received_unicast_packets", between, most},
	} {
		if n, m := from[c.sent], to[c.received]; n == 0 || m+c.less < n || m > n+c.more {
			problem += fmt.Sprintf("\n%s is %d, and %s of the other %d", c.sent, n, c.received, m)
		}
	}
	return problem
}

// kernel compares an Ethernet function's counters with those of the kernel for the host's interface, whose short frames the
// function fills up.
func kernel(d counts, before, now nicStats) (problem string) {
	for _, c := range []struct {
		name             string
		want, less, more uint64
	}{
		{"network_interface_sent_packets", now.TX.Packets - before.TX.Packets, between, between},
		{"network_interface_sent_bytes", now.TX.Bytes - before.TX.Bytes, between * length,
			18*(now.TX.Packets-before.TX.Packets) + between*length},
		{"network_interface_received_discarded_packets", now.RX.Dropped - before.RX.Dropped, between, between},
	} {
		if d[c.name]+c.less < c.want || d[c.name] > c.want+c.more {
			problem += fmt.Sprintf("\n%s is %d, and at the host's interface %d", c.name, d[c.name], c.want)
		}
	}
	return problem
}

// parts compares what a port carries with what its functions do: frame by frame if there are no large ones.
func parts(d counts, frames bool) (problem string) {
	for _, c := range [][3]string{
		{"adapter_traffic_sent_packets", "network_interface_sent_packets", "rdma_activity_outbound_frames"},
		{"adapter_traffic_sent_bytes", "network_interface_sent_bytes", "rdma_activity_outbound_bytes"},
		{"adapter_traffic_received_packets", "network_interface_received_packets", "rdma_activity_inbound_frames"},
		{"adapter_traffic_received_bytes", "network_interface_received_bytes", "rdma_activity_inbound_bytes"},
	} {
		sum := d[c[1]] + d[c[2]]
		others := uint64(most) // of the link: it asks for neighbours
		if strings.Contains(c[0], "bytes") {
			others = most * length
		}
		if strings.Contains(c[1], "received") {
			others += length * d["ethernet_dropped_address_frames"]
		}
		if frames && d[c[0]] > sum+others || d[c[0]] < sum {
			problem += fmt.Sprintf("\n%s is %d, and %s with %s %d", c[0], d[c[0]], c[1], c[2], sum)
		}
	}
	if d["adapter_traffic_packets"] != d["adapter_traffic_sent_packets"]+d["adapter_traffic_received_packets"] {
		problem += "\nthe packets of Adapter Traffic are not their sum"
	}
	return problem
}

// shownAlike looks at the same numbers of an adapter that is quiet in the tools, the management interface and the page; its state
// and speed while the wire is up, down, and up again.
func shownAlike(t *testing.T, h *linuxHost) {
	t.Helper()
	number := func(set, counter string) uint64 {
		t.Helper()
		status, out, errs := h.run(t, "counters", "get", "-json", `\`+set+`(port)\`+counter)
		var got struct {
			Readings []struct {
				Value *uint64 `json:"value"`
			} `json:"readings"`
		}
		if err := json.Unmarshal([]byte(out), &got); status != 0 || err != nil || len(got.Readings) != 1 || got.Readings[0].Value == nil {
			t.Fatalf("%d, %v: %s%s", status, err, out, errs)
		}
		return *got.Readings[0].Value
	}
	differs := ""
	if !await.Until(func() bool {
		c, s := h.counts(t), h.status(t).Adapters[0]
		page := h.page(t)
		differs = fmt.Sprintf("%v\n%+v\n%v\n%s", c, s.Link, s.Ethernet.Counters, page)
		announced := s.Link.SentPackets - c["adapter_traffic_sent_packets"] // by the link, before the adapter has started
		return announced <= most && s.Link.ReceivedBytes == c["adapter_traffic_received_bytes"] &&
			s.Ethernet.Counters["sent_packets"] == c["network_interface_sent_packets"] &&
			number("Network Interface", "Packets Sent") == c["network_interface_sent_packets"] &&
			number("Mellanox WinOF-2 Port Traffic", "Bytes Sent") == c["port_traffic_sent_bytes"] &&
			strings.Contains(page, "Frames sent: "+thousands(c["network_interface_sent_packets"])+" frames, "+
				thousands(c["network_interface_sent_bytes"])+" bytes")
	}) {
		t.Error(differs)
	}
	downs := h.counts(t)["adapter_diagnostics_link_downs"]
	for _, c := range []struct {
		set, rate, state, speed, port, page string
		bandwidth                           uint64
	}{
		{"up", "10", "PORT_ACTIVE (4)", "10.00 Gbps", "Up", "Link speed: 10 Gbit/s", 10e9},
		{"down", "0", "PORT_DOWN (1)", "0.00 Gbps", "Down", "Link speed: 0 Gbit/s", 0},
		{"up", "10", "PORT_ACTIVE (4)", "10.00 Gbps", "Up", "Link speed: 10 Gbit/s", 10e9},
	} {
		h.shell(t, "ip link set wire "+c.set)
		missing := ""
		if !await.Until(func() bool {
			missing = ""
			want := func(where, text, what string) {
				if !strings.Contains(text, what) {
					missing += "\n" + where + " does not show " + what + ":\n" + text
				}
			}
			said := func(args ...string) string {
				_, out, errs := h.run(t, args...)
				return out + errs
			}
			want("vstat", said("vstat"), "port_state="+c.state)
			want("vstat", said("vstat"), " rate="+c.rate+" Gbps")
			want("ibstat", said("ibstat"), "Rate: "+c.rate+"\n")
			want("MlxStat", said("MlxStat"), "Rate:              "+c.rate+" Gbps")
			want("mlx5cmd -Stat", said("mlx5cmd", "-Stat"), "port_state: "+c.state)
			want("mlx5cmd -Stat", said("mlx5cmd", "-Stat"), "link_speed: "+c.speed)
			want("mlxtool", said("mlxtool", "show", "ports", "--json"), `"state": "`+c.port+`"`)
			want("the page", h.page(t), c.page)
			want("the page", h.page(t), "State: "+strings.ToLower(c.port))
			if n := h.counts(t)["network_interface_bandwidth_bytes"]; n != c.bandwidth/8 {
				missing += fmt.Sprintf("\nCurrent Bandwidth is %d bytes/s", n)
			}
			return missing == ""
		}) {
			t.Errorf("with the wire %s:%s", c.set, missing)
		}
	}
	if n := h.counts(t)["adapter_diagnostics_link_downs"]; n != downs+1 {
		t.Errorf("%d times down, want %d", n, downs+1)
	}
}

// page returns the Information page of the host's adapter as text.
func (h *linuxHost) page(t *testing.T) string {
	t.Helper()
	jar := filepath.Join(h.dir, "cookies")
	link, err := api.NewClient(filepath.Join(h.dir, "d.sock")).Link(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(link.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(jar); err != nil {
		h.shell(t, "curl -sSk -o /dev/null -c "+jar+" '"+link.URL+"'")
	}
	return h.shell(t, "curl -sSk -b "+jar+" "+at.Scheme+"://"+at.Host+"/web/adapters/port/information.txt")
}

// thousands writes a number as the pages do.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}
