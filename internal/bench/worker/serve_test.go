package worker

import (
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
)

// Services answer over TCP and rdmanet, on one connection and on several; what is not offered is refused by name.
func TestServices(t *testing.T) {
	addrs := testbed.Addrs()
	for name := range Services {
		for _, network := range []string{"tcp", "rdma"} {
			for _, connections := range []int{1, 3} {
				server, client := start(t), start(t)
				server.call("open", OpenArgs{Addr: addrs[0]}, nil)
				client.call("open", OpenArgs{Addr: addrs[1]}, nil)
				args := LoadArgs{Service: name, Network: network, Local: addrs[1], Connections: connections, Bytes: 100, Seconds: 0.05}
				server.call("serve", ServeArgs{Service: name, Network: network, Addr: addrs[0]}, &args.Remote)
				var x Loaded
				for ; x.Rate == 0 && args.Seconds < 10; args.Seconds *= 2 { // only calls that end in that time count
					client.call("load", args, &x)
				}
				if !(x.Rate > 0 && x.P50 > 0 && x.P99 >= x.P50 && x.Connect > 0) {
					t.Errorf("%s over %s, %d connections: %+v", name, network, connections, x)
				}
				client.calls.Encode(Call{"load", []byte(`{"Service":"carrots"}`)})
				var a Answer
				if err := client.out.Decode(&a); err != nil || !strings.Contains(a.Error, `"carrots"; allowed: echo, http`) {
					t.Errorf("%q, %v, want that carrots are not offered", a.Error, err)
				}
				addrs = testbed.Addrs()
			}
		}
	}
}
