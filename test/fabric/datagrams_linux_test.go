package fabric

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/live"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/service"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/umad/server"
	"github.com/softvpi/softvpi/wire/mad"
)

// datagrams is a fabric that programs reach through our libibumad.
type datagrams struct {
	*ground
	rack          *live.Rack
	path, library string
	running       *exec.Cmd // OpenSM
}

// newDatagrams runs the small fabric, without a subnet manager.
func newDatagrams(t *testing.T, programs ...string) *datagrams {
	t.Helper()
	systemtest.Programs(t, append(programs, "opensm", "osmtest")...)
	d := &datagrams{ground: &ground{t: t, dir: t.TempDir()}, library: library(t)}
	file, err := os.Open(netlist)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	top, err := topology.ReadNetlist(file)
	if err != nil {
		t.Fatal(err)
	}
	d.rack = live.New(fabric.New(top, rand.Uint64), live.Options{})
	short, err := os.MkdirTemp("", "fabric") // names of sockets have to be short
	if err != nil {
		t.Fatal(err)
	}
	d.path = filepath.Join(short, "s")
	s, err := server.Listen(d.path, d.rack)
	if err != nil {
		t.Fatal(err)
	}
	d.rack.Attend(s)
	t.Cleanup(func() {
		s.Close()
		d.rack.Close()
		os.RemoveAll(short)
	})
	return d
}

func (d *datagrams) at(node, name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = d.dir
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+d.library, "SOFTVPI_FABRIC="+d.path, "SOFTVPI_NODE="+node, "OSM_CACHE_DIR="+d.dir,
		"OSM_TMP_DIR="+d.dir)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// output returns what a program prints, which has to exit with 0.
func (d *datagrams) output(node, name string, args ...string) string {
	d.t.Helper()
	c := d.at(node, name, args...)
	timer := time.AfterFunc(2*await.Limit, func() {
		if c.Process != nil {
			_ = c.Process.Kill()
		}
	})
	defer timer.Stop()
	out, err := c.CombinedOutput()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(d.dir, name+".log"))
		d.t.Fatalf("%s %q: %v\n%s\n%s", name, args, err, out, log[max(0, len(log)-3000):])
	}
	return string(out)
}

// flow runs a flow of osmtest.
func (d *datagrams) flow(flow, inventory string, args ...string) {
	d.t.Helper()
	log := filepath.Join(d.dir, "osmtest.log")
	_ = os.Remove(log)
	out := d.output("hca2", "osmtest", append([]string{"-f", flow, "-i", filepath.Join(d.dir, inventory), "-l", log}, args...)...)
	if !strings.Contains(out, "\" PASS") {
		d.t.Errorf("osmtest -f %s: %s", flow, out)
	}
}

// routeless writes the inventory again, as another subnet manager has to match it, and returns its name: without the
// LocalPortNum of a PortInfo, which is the port that the request came in by (InfiniBand specification, 14.2.5.6). Of
// two parallel links each manager takes the one whose other end it hears of first. osmtest compares what is there.
func (d *datagrams) routeless(inventory string) string {
	d.t.Helper()
	b, err := os.ReadFile(filepath.Join(d.dir, inventory))
	if err != nil {
		d.t.Fatal(err)
	}
	before := bytes.Count(b, []byte("\n"))
	b = localPort.ReplaceAll(b, nil)
	if bytes.Count(b, []byte("\n")) == before {
		d.t.Fatalf("%s has no local_port_num", inventory)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "routeless."+inventory), b, 0o600); err != nil {
		d.t.Fatal(err)
	}
	return "routeless." + inventory
}

var localPort = regexp.MustCompile(`(?m)^local_port_num .*\n`)

// manage runs our subnet manager inside the fabric until the test ends.
func (d *datagrams) manage() {
	d.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	up := make(chan struct{}, 64)
	go func() {
		done <- d.rack.Manage(ctx, fabric.Place{Node: 0, Port: 1}, service.Config{Subnet: subnet.Config{HonorLIDs: true},
			Tell: func(e subnet.Event) error {
				if e.Kind == subnet.EventUp {
					select {
					case up <- struct{}{}:
					default:
					}
				}
				return nil
			}})
	}()
	d.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			d.t.Error(err)
		}
	})
	select {
	case <-up:
	case <-time.After(2 * await.Limit):
		d.t.Fatal("the subnet does not come up")
	}
}

// isManaged tells whether the capability mask of hca1 says that it runs a subnet manager.
func (d *datagrams) isManaged() (is bool) {
	d.rack.Do(func(_ clock.Time, f *fabric.Fabric) {
		is = f.PortInfo(fabric.Place{Node: 0, Port: 1}).CapabilityMask&mad.CapIsSM != 0
	})
	return is
}

// Debian's osmtest finds no fault with our subnet manager; and the inventory that it wrote of OpenSM on the same
// fabric holds for ours.
func TestOsmtestPasses(t *testing.T) {
	t.Parallel()
	d := newDatagrams(t)
	sm := d.at("hca1", "opensm", "-f", filepath.Join(d.dir, "opensm.log"), "-d", "2")
	d.start(sm, "opensm.out")
	d.log("opensm.log", "SUBNET UP")
	if !d.isManaged() {
		t.Error("IsSM is not set where OpenSM is")
	}
	d.flow("c", "opensm.inventory")
	d.flow("v", "opensm.inventory")
	if err := sm.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.wait("OpenSM is gone, and IsSM with it", func() bool { return !d.isManaged() })

	d.manage()
	d.flow("v", d.routeless("opensm.inventory"))
	d.flow("c", "own.inventory")
	for _, f := range []string{"a", "q"} { // flow a consists of v and s
		d.flow(f, "own.inventory")
	}
	for _, size := range []string{"1", "2", "3", "4"} {
		d.flow("m", "own.inventory", "-M", size)
	}
	d.flow("f", "own.inventory", "-s", "4")
}

// Our osmtest finds no fault with either subnet manager and writes the same inventory as Debian's, byte for byte;
// each validates the other's.
func TestOwnOsmtest(t *testing.T) {
	t.Parallel()
	d := newDatagrams(t)
	own := func(flow, inventory string, args ...string) {
		t.Helper()
		log := filepath.Join(d.dir, "own.log")
		out, errs, status := d.own(nil, "hca2", "osmtest", append([]string{"-f", flow, "-i", filepath.Join(d.dir, inventory), "-l", log}, args...)...)
		if status != 0 || !strings.Contains(out, "\" PASS") {
			b, _ := os.ReadFile(log)
			t.Errorf("osmtest -f %s: status %d\n%s%s%s", flow, status, out, errs, b[max(0, len(b)-3000):])
		}
	}
	both := func(manager string) {
		t.Helper()
		own("c", manager+".own")
		d.flow("c", manager+".debian")
		a, err := os.ReadFile(filepath.Join(d.dir, manager+".own"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(d.dir, manager+".debian"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("the inventories with %s differ:\n%s\n%s", manager, a, b)
		}
		for _, f := range []string{"a", "m", "q", "e"} {
			own(f, manager+".debian")
		}
		for _, s := range []string{"1", "2", "3", "4"} {
			own("f", manager+".debian", "-s", s, "--count", "2000", "--window", "16")
		}
	}
	sm := d.at("hca1", "opensm", "-f", filepath.Join(d.dir, "opensm.log"), "-d", "2")
	d.start(sm, "opensm.out")
	d.log("opensm.log", "SUBNET UP")
	both("opensm")
	if err := sm.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.wait("OpenSM is gone, and IsSM with it", func() bool { return !d.isManaged() })
	d.manage()
	both("ours")
	d.flow("v", "ours.own")
	foreign := d.routeless("opensm.own")
	own("v", foreign)

	// Flow t needs somebody who disables a port and enables it again.
	ctx, stop := context.WithCancel(context.Background())
	pulling := make(chan struct{})
	go func() {
		defer close(pulling)
		for ctx.Err() == nil {
			for _, do := range []func(*fabric.Fabric, clock.Time){
				func(f *fabric.Fabric, now clock.Time) { f.Unlink(now, fabric.Place{Node: 2, Port: 1}) },
				func(f *fabric.Fabric, now clock.Time) { f.Relink(now, fabric.Place{Node: 2, Port: 1}) },
			} {
				d.rack.Do(func(now clock.Time, f *fabric.Fabric) { do(f, now) })
				time.Sleep(time.Second)
			}
		}
	}()
	own("t", foreign, "-w", "60")
	stop()
	<-pulling
}

// Programs of infiniband-diags with our library: their own node, the fabric, tables of several packets.
func TestDiagnosticsOfDebian(t *testing.T) {
	t.Parallel()
	d := newDatagrams(t, "saquery", "ibnetdiscover", "ibstat", "sminfo", "ibping", "perfquery")
	d.manage()
	for _, c := range []struct {
		node, command string
		want          []string
	}{
		{"hca4", "ibstat", []string{"CA 'softvpi0'", "Number of ports: 2", "Port 2:", "State: Active", "Rate: 40",
			"Node GUID: 0x0002c90300001006"}},
		{"sw1", "ibstat", []string{"Port 0:", "State: Active"}},
		{"hca2", "sminfo", []string{"sm guid 0x2c90300001001", "SMINFO_MASTER"}},
		{"hca2", "saquery NR", []string{"hca1 HCA-1", "hca4 HCA-1", "sw2 switch"}},
		{"hca2", "saquery PR", []string{"sgid", "dlid"}},
		{"hca2", "ibnetdiscover", []string{"\"sw2 switch\"", "4xQDR"}},
		{"hca2", "ibping -c 2 -t 30000 3", []string{"Pong from", "2 packets transmitted, 2 received"}},
		{"hca2", "perfquery -x 3 1", []string{"PortXmitData", "PortRcvPkts"}},
		{"hca3", "smpquery -D nodedesc 0,1", []string{"sw2 switch"}},
	} {
		f := strings.Fields(c.command)
		out := d.output(c.node, f[0], f[1:]...)
		for _, w := range c.want {
			if !strings.Contains(out, w) {
				t.Errorf("%s at %s does not say %q:\n%s", c.command, c.node, w, out)
			}
		}
	}
	// What no node has is answered, not left to a time-out.
	if _, err := exec.LookPath("ibccquery"); err == nil {
		out, err := d.at("hca2", "ibccquery", "-e", "CongestionInfo", "3").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "MAD completed with error status 0xc") {
			t.Errorf("ibccquery: %v, %s; want that the attribute is not supported", err, out)
		}
	}
	// One program serves, another one asks it.
	d.start(d.at("hca3", "ibsysstat", "-S"), "ibsysstat.out")
	d.wait("ibsysstat answers", func() bool {
		out, err := d.at("hca2", "ibsysstat", "-G", "0x2c90300001005").CombinedOutput()
		return err == nil && strings.Contains(string(out), "sysstat ping succeeded")
	})
}
