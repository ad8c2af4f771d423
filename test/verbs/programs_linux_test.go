package verbs

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/firmware"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
)

func TestDevices(t *testing.T) {
	b := newBench(t)
	b.need("ibv_devices", "ibv_devinfo")
	out := b.run(nil, "ibv_devices")
	for _, name := range []string{"softvpi0", "softvpi1"} {
		if !regexp.MustCompile(`(?m)^ *` + name + `\s+[0-9a-f]{16}$`).MatchString(out) {
			t.Errorf("ibv_devices does not list %s:\n%s", name, out)
		}
	}
	out = b.run(nil, "ibv_devinfo", "-v", "-d", "softvpi1")
	for _, want := range []string{`hca_id:\s+softvpi1`, `state:\s+PORT_ACTIVE`, `link_layer:\s+Ethernet`, `max_qp:\s+[1-9]`,
		`GID\[ *0\]:\s+::ffff:` + regexp.QuoteMeta(b.addrs[1].String()) + `, RoCE v2`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("ibv_devinfo does not print %s:\n%s", want, out)
		}
	}
}

// TestDevices_Firmware: a program sees the version and the board of the image that its device runs, of one that is burned meanwhile not
// before the device is started again, and then also in the files of Linux.
func TestDevices_Firmware(t *testing.T) {
	needLibraries(t)
	cfg := driverbed.Config(t, config.Adapter{Name: "left"}, config.Adapter{Name: "right"})
	d := driverbed.Start(t, cfg)
	if d.NoAttach() != "" {
		t.Skip(d.NoAttach())
	}
	b := benchOf(t, cfg)
	b.need("ibv_devinfo")
	factory := firmware.Factory(catalogue.MLX5)
	shown := func(device, version, board string) {
		t.Helper()
		out := b.run(nil, "ibv_devinfo", "-d", device)
		for _, want := range []string{`fw_ver:\s+` + regexp.QuoteMeta(version) + `$`, `board_id:\s+` + board + `$`} {
			if !regexp.MustCompile("(?m)" + want).MatchString(out) {
				t.Errorf("ibv_devinfo does not print %s:\n%s", want, out)
			}
		}
		dir := "/sys/class/infiniband/" + device + "/"
		if out := b.run(nil, "cat", dir+"fw_ver", dir+"board_id"); out != version+"\n"+board+"\n" {
			t.Errorf("the files of %s have %q, want %s and %s", device, out, version, board)
		}
	}
	shown("softvpi0", factory.Version.String(), factory.PSID)
	other := factory
	other.Version, other.PSID = firmware.Version{Minor: 9, Sub: 7}, "ACME_7"
	c := api.NewClient(cfg.Socket)
	s, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Burn(t.Context(), &s.Adapters[0], &other); err != nil {
		t.Fatal(err)
	}
	shown("softvpi0", factory.Version.String(), factory.PSID)
	if err := d.RestartAdapter("left"); err != nil {
		t.Fatal(err)
	}
	shown("softvpi0", "0.9.0007", "ACME_7")
	shown("softvpi1", factory.Version.String(), factory.PSID)
}

// TestDevices_Speed: a port has the speed of its link for programs, and in the files of Linux, while somebody is at the other end of
// its wire, and none while nobody is.
func TestDevices_Speed(t *testing.T) {
	needLibraries(t)
	dir, err := os.MkdirTemp("", "vpi") // t.TempDir's names are too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	far := &net.UnixAddr{Name: filepath.Join(dir, "far"), Net: "unixgram"}
	cfg := driverbed.Config(t, config.Adapter{Name: "left", Link: config.LinkDatagram,
		Wire: config.Wire{Datagram: filepath.Join(dir, "near"), Peer: far.Name, Prefix: 24}}, config.Adapter{Name: "right"})
	cfg.Adapters[0].Speed = 25
	d := driverbed.Start(t, cfg)
	if d.NoAttach() != "" {
		t.Skip(d.NoAttach())
	}
	b := benchOf(t, cfg)
	look := func(rate, speed string) {
		t.Helper()
		if out := b.run(nil, "cat", "/sys/class/infiniband/softvpi0/ports/1/rate"); out != rate+"\n" {
			t.Errorf("the rate is %q, want %q", out, rate)
		}
		if _, err := exec.LookPath("ibv_devinfo"); err != nil {
			return
		}
		if out := b.run(nil, "ibv_devinfo", "-v", "-d", "softvpi0"); !regexp.MustCompile(`active_speed:.*` + speed).MatchString(out) {
			t.Errorf("ibv_devinfo does not print speed %s:\n%s", speed, out)
		}
	}
	look("0 Gb/sec (1X)", `\(0\)`)
	other, err := net.ListenUnixgram(far.Net, far)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	await.Eventually(t, "the port comes up", func() bool { return d.Status().Adapters[0].Up })
	look("25 Gb/sec (1X EDR)", `\(32\)`)
}

// The example programs of libibverbs check what they receive.
func TestPingPong(t *testing.T) { newBench(t).talkAll(t, pingPongs()) }

func pingPongs() (pairs []pair) {
	for _, kind := range []string{"rc", "uc", "ud", "srq"} {
		for _, events := range []string{"", " -e"} {
			command := fmt.Sprintf("ibv_%s_pingpong -g 0 -n 300 -c -p PORT%s", kind, events)
			pairs = append(pairs, pair{name: kind + events, server: command + " -d softvpi0", client: command + " -d softvpi1 127.0.0.1",
				says: `(?m)^300 iters in`, server2: `(?m)^300 iters in`})
		}
	}
	return append(pairs,
		pair{name: "XRC", server: "ibv_xsrq_pingpong -g 0 -n 100 -p PORT -d softvpi0",
			client: "ibv_xsrq_pingpong -g 0 -n 100 -p PORT -d softvpi1 127.0.0.1", says: "success"},
		pair{name: "XRC with events", server: "ibv_xsrq_pingpong -g 0 -n 100 -e -p PORT -d softvpi0",
			client: "ibv_xsrq_pingpong -g 0 -n 100 -e -p PORT -d softvpi1 127.0.0.1", says: "success"},
		pair{name: "one device", server: "ibv_rc_pingpong -g 0 -n 100 -c -p PORT -d softvpi0",
			client: "ibv_rc_pingpong -g 0 -n 100 -c -p PORT -d softvpi0 127.0.0.1", says: "100 iters"},
		pair{name: "messages of 1 MB", server: "ibv_rc_pingpong -g 0 -n 20 -c -s 1048576 -m 4096 -p PORT -d softvpi0",
			client: "ibv_rc_pingpong -g 0 -n 20 -c -s 1048576 -m 4096 -p PORT -d softvpi1 127.0.0.1", says: "20 iters"},
		pair{name: "time stamps", server: "ibv_rc_pingpong -g 0 -n 100 -t -p PORT -d softvpi0",
			client: "ibv_rc_pingpong -g 0 -n 100 -t -p PORT -d softvpi1 127.0.0.1", says: "100 iters"},
		pair{name: "memory on demand", server: "ibv_rc_pingpong -g 0 -n 100 -o -c -p PORT -d softvpi0",
			client: "ibv_rc_pingpong -g 0 -n 100 -o -c -p PORT -d softvpi1 127.0.0.1", says: "100 iters"},
		pair{name: "device memory", server: "ibv_rc_pingpong -g 0 -n 100 -j -p PORT -d softvpi0",
			client: "ibv_rc_pingpong -g 0 -n 100 -j -p PORT -d softvpi1 127.0.0.1", says: "100 iters"},
		pair{name: "address space of 64 MB", server: "prlimit --as=64000000 ibv_rc_pingpong -g 0 -n 100 -c -p PORT -d softvpi0",
			client: "prlimit --as=64000000 ibv_rc_pingpong -g 0 -n 100 -c -p PORT -d softvpi1 127.0.0.1", says: "100 iters"},
		pair{name: "new send", server: "ibv_rc_pingpong -g 0 -n 100 -c -N -p PORT -d softvpi0",
			client: "ibv_rc_pingpong -g 0 -n 100 -c -N -p PORT -d softvpi1 127.0.0.1", says: "100 iters"})
}

// The programs of librdmacm.
func TestConnectionManager(t *testing.T) { newBench(t).talkAll(t, managed()) }

func managed() []pair {
	return []pair{
		{name: "rping", server: "rping -s -a ADDR0 -p PORT -C 20 -V", client: "rping -c -a ADDR0 -p PORT -C 20 -V -v",
			says: `rdma-ping-19: `},
		{name: "ucmatose", server: "ucmatose -p PORT -C 10 -S 1000", client: "ucmatose -s ADDR0 -p PORT -C 10 -S 1000",
			says: "return status 0", server2: "return status 0"},
		{name: "udaddy", server: "udaddy -C 10 -S 1000", client: "udaddy -s ADDR0 -C 10 -S 1000", says: "return status 0",
			server2: "return status 0"},
		{name: "rstream", server: "rstream -p PORT -S 4096 -C 50 -T v", client: "rstream -s ADDR0 -p PORT -S 4096 -C 50 -T v",
			says: `(?m)^\w+ +4k +50 `},
		{name: "riostream", server: "riostream -p PORT -S 4096 -C 50 -T v", client: "riostream -s ADDR0 -p PORT -S 4096 -C 50 -T v",
			says: `(?m)^\w+ +4k +50 `},
		{name: "riostream there and back", server: "riostream -p PORT -S 64 -C 1 -I 300",
			client: "riostream -s ADDR0 -p PORT -S 64 -C 1 -I 300", says: `(?m)^\w+ +64 +1 +300 `},
		{name: "rping with its own queue pair", server: "rping -q -s -a ADDR0 -p PORT -C 5 -V",
			client: "rping -q -c -a ADDR0 -p PORT -C 5 -V -v", says: `rdma-ping-4: `},
		{name: "mckey", server: "stdbuf -oL mckey -m 239.1.2.3 -b ADDR0 -C 5", client: "mckey -s -m 239.1.2.3 -b ADDR1 -C 5",
			says: "return status 0", server2: "data transfers complete", ready: "joined dgid"},
		{name: "rdma_client", server: "rdma_server -p PORT", client: "rdma_client -s ADDR0 -p PORT", says: "rdma_client: end 0",
			server2: "rdma_server: end 0"},
		{name: "rdma_xclient", server: "rdma_xserver -p PORT", client: "rdma_xclient -s ADDR0 -p PORT", says: "rdma_xclient: end 0",
			server2: "rdma_xserver: end 0"},
		{name: "rdma_xclient of XRC", server: "rdma_xserver -c x -p PORT", client: "rdma_xclient -c x -s ADDR0 -p PORT",
			says: "rdma_xclient: end 0", server2: "rdma_xserver: end 0"},
		{name: "cmtime", server: "cmtime -b ADDR0 -p PORT", client: "cmtime -s ADDR0 -p PORT -c 20", says: `(?m)^destroy +: +[0-9.]+`,
			endless: true},
		{name: "udpong", server: "udpong -b ADDR0 -p PORT -S 1024 -C 50", client: "udpong -s ADDR0 -p PORT -S 1024 -C 50",
			says: `(?m)^\w+ +1k +50 `, endless: true},
	}
}

// All members of a multicast group receive what one of them sends.
func TestMulticast(t *testing.T) {
	b := newBench(t)
	b.need("mckey", "stdbuf")
	server := b.start(nil, b.expand("stdbuf -oL mckey -m 239.77.1.5 -b ADDR0 -C 10", "")...)
	waitFor(t, server, "joined dgid")
	client := b.start(nil, b.expand("mckey -m 239.77.1.5 -b ADDR1 -s -C 10", "")...)
	b.succeeded(client)
	b.succeeded(server)
	for _, p := range []*program{server, client} {
		if !strings.Contains(p.out.String(), "return status 0") {
			t.Errorf("%s says\n%s", strings.Join(p.args, " "), p.out.String())
		}
	}
}

// Programs that wait for asynchronous events see an adapter go away and come back.
func TestAsyncWatch(t *testing.T) {
	b := newBench(t)
	b.need("ibv_asyncwatch", "stdbuf")
	p := b.start(nil, "stdbuf", "-oL", "ibv_asyncwatch", "-d", "softvpi0")
	waitFor(t, p, "async event FD")
	admin := api.NewClient(b.socket)
	for _, step := range []struct {
		enabled bool
		says    string
	}{{false, "IBV_EVENT_DEVICE_FATAL"}, {true, "IBV_EVENT_PORT_ACTIVE"}} {
		if err := admin.SetAdapter(t.Context(), api.AdapterRequest{Adapter: "left", Enable: step.enabled}); err != nil {
			t.Fatal(err)
		}
		waitFor(t, p, step.says)
	}
}

// waitFor waits until a program has printed something.
func waitFor(t *testing.T, p *program, text string) {
	t.Helper()
	await.Until(func() bool { return strings.Contains(p.out.String(), text) || !p.running() })
	if !strings.Contains(p.out.String(), text) {
		t.Fatalf("%s does not say %q, but\n%s", strings.Join(p.args, " "), text, p.out.String())
	}
}
