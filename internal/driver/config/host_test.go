package config

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/api"
)

// TestParseAdapter_Hosts: the command line names the host of an adapter's Ethernet function.
func TestParseAdapter_Hosts(t *testing.T) {
	const wire = "e=192.0.2.1,interface=eth0,"
	for text, want := range map[string]HostSide{
		"":                                       {},
		"host=tap:nic0":                          {Host: "tap:nic0"},
		"host=stream:/run/vm":                    {Host: "stream:/run/vm"},
		"host=datagram:/run/vm":                  {Host: "datagram:/run/vm", HostPeer: "/run/vm.peer"},
		"host=datagram:/run/vm,hostpeer=/run/vp": {Host: "datagram:/run/vm", HostPeer: "/run/vp"},
		"host=tap:nic0,wake=/bin/true":           {Host: "tap:nic0", Wake: []string{"/bin/true"}},
	} {
		if text == "" {
			text = "vlan=3"
		}
		if a, err := ParseAdapter(wire + text); err != nil || !cmp.Equal(a.HostSide, want) {
			t.Errorf("%s: %+v, %v", text, a.HostSide, err)
		}
	}
	for text, field := range map[string]string{
		"e=192.0.2.1,host=tap:nic0":                                        "adapters[0].host, host_peer, wake",
		"e=cable,host=tap:nic0":                                            "adapters[0].host, host_peer, wake",
		wire + "host=nic0":                                                 "adapters[0].host",
		wire + "host=tap:nic0,wake=true":                                   "adapters[0].wake",
		wire + "host=tap:nic0,wake=":                                       "adapters[0].wake",
		wire + "host=tap:":                                                 "adapters[0].host",
		wire + "host=tap:a-name-of-16-bytes":                               "adapters[0].host",
		wire + "host=tap:a/b":                                              "adapters[0].host",
		wire + "host=tap:eth0":                                             "adapters[0].host",
		wire + "host=stream:vm":                                            "adapters[0].host",
		wire + "host=datagram:":                                            "adapters[0].host",
		wire + "host=tap:nic0,hostpeer=/run/x":                             "adapters[0].host_peer",
		wire + "hostpeer=/run/x":                                           "adapters[0].host",
		wire + "host=datagram:/run/x,hostpeer=/run/x":                      "adapters[0].host_peer",
		wire + "host=datagram:/run/x,hostpeer=x":                           "adapters[0].host_peer",
		"e=192.0.2.1,interface=eth0,follow,host=tap:nic0":                  "adapters[0].follow_interface",
		"e=192.0.2.1,interface=eth0,host=tap:nic0,host=tap:nic1,hostpeer=": "--adapter option",
	} {
		_, err := ParseAdapter(text)
		var wrong *api.FieldError
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v, want %s refused", text, err, field)
		}
	}
}

// TestComplete_Hosts: nothing is the host of two adapters, or a host and a wire.
func TestComplete_Hosts(t *testing.T) {
	for _, texts := range [][]string{
		{"a=192.0.2.1,tap=tap0,host=tap:nic0", "b=192.0.2.2,tap=tap1,host=tap:nic0"},
		{"a=192.0.2.1,tap=tap0,host=tap:tap1", "b=192.0.2.2,tap=tap1"},
		{"a=192.0.2.1,tap=tap0,host=stream:/run/x", "b=192.0.2.2,datagram=/run/x"},
		{"a=192.0.2.1,datagram=/run/x,host=datagram:/run/x.peer"},
		{"a=192.0.2.1,tap=tap0,host=datagram:/run/x", "b=192.0.2.2,tap=tap1,host=datagram:/run/y,hostpeer=/run/x"},
	} {
		var c Config
		for _, s := range texts {
			a, err := ParseAdapter(s)
			if err != nil {
				t.Fatal(err)
			}
			c.Adapters = append(c.Adapters, a)
		}
		var wrong *api.FieldError
		if _, err := c.Complete(); !errors.As(err, &wrong) || wrong.Field != "adapters[0].host" && wrong.Field != "adapters[1].host" {
			t.Errorf("%q: %v, want a host refused", texts, err)
		}
	}
}
