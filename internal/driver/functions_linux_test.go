package driver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/wire/eth"
)

// hosting returns a driver's configuration with two adapters at a switch.
func hosting(t testing.TB) config.Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "vf") // short, for the paths of sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg := config.Config{Socket: filepath.Join(dir, "s"), State: filepath.Join(dir, "state"), SkipSelfCheck: true}
	for i, name := range []string{"a", "b"} {
		cfg.Adapters = append(cfg.Adapters, config.Adapter{Name: name, Link: config.LinkSwitch,
			Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), Wire: config.Wire{Switch: "s", Prefix: 24}})
	}
	return cfg
}

// tenanted starts such a driver.
func tenanted(t testing.TB) *Driver {
	t.Helper()
	d, err := Start(context.Background(), hosting(t), Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// mlxconfigured sets parameters of mlxconfig of an adapter, and restarts it.
func mlxconfigured(t testing.TB, d *Driver, adapter int, set map[string]uint64) {
	t.Helper()
	values := map[string]*uint64{}
	for name, n := range set {
		values[name] = &n
	}
	st := d.Status()
	if err := NewAdmin(d.cfg.Socket).Configure(t.Context(), &st.Adapters[adapter], values); err != nil {
		t.Fatal(err)
	}
	if err := d.RestartAdapter(st.Adapters[adapter].Name); err != nil {
		t.Fatal(err)
	}
}

// TestFunctions_ByKeys: SRIOV_EN and NUM_OF_VFS give an adapter its virtual functions at its restart, no more than *NumVFs allows, and
// take them away; those that were created by command stay; the status says what is granted, and why not more.
func TestFunctions_ByKeys(t *testing.T) {
	d := tenanted(t)
	if s := d.Status().Adapters[0].SRIOV; s == nil || s.Support != "Unknown" || !strings.Contains(s.Cause, "SRIOV_EN is 0") {
		t.Errorf("before: %+v", s)
	}
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: "mine"}); err != nil {
		t.Fatal(err)
	}
	names := func() (list []string) {
		for _, f := range d.Functions() {
			if !f.Up || f.Adapter != "a" {
				t.Errorf("%+v", f)
			}
			list = append(list, f.Name)
		}
		return list
	}
	mlxconfigured(t, d, 0, map[string]uint64{"SRIOV_EN": 1, "NUM_OF_VFS": 3})
	if got := fmt.Sprint(names()); got != "[mine a-vf0 a-vf1 a-vf2]" {
		t.Errorf("with three: %s", got)
	}
	if s := d.Status().Adapters[0].SRIOV; s.Support != "Supported" || s.Granted != 3 {
		t.Errorf("with three: %+v", s)
	}
	set := func(key, value string) {
		t.Helper()
		if _, err := d.Set("a", key, &value); err != nil {
			t.Fatal(err)
		}
	}
	set("*NumVFs", "1")
	if err := d.RestartAdapter("a"); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(names()); got != "[mine a-vf0]" {
		t.Errorf("with *NumVFs 1: %s", got)
	}
	set("*SRIOV", "0")
	if err := d.RestartAdapter("a"); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(names()); got != "[mine]" {
		t.Errorf("without *SRIOV: %s", got)
	}
	if err := d.SetAdapter(api.AdapterRequest{Adapter: "a", Enable: false}); err != nil {
		t.Fatal(err)
	}
	if f := d.Functions(); len(f) != 1 || f[0].Up {
		t.Errorf("with the adapter disabled: %+v", f)
	}
	_, err := client.Dial(t.Context(), paths.Function(d.cfg.Socket, "mine"), client.Options{})
	if !errors.Is(err, &command.Error{Code: command.Removed}) {
		t.Errorf("attaching while the adapter is disabled: %v", err)
	}
}

// TestFunctions_Shares: WinOF's keys divide the virtual functions of a device between its ports, as they are when a port starts.
func TestFunctions_Shares(t *testing.T) {
	t.Parallel()
	cfg := hosting(t)
	for i := range cfg.Adapters {
		cfg.Adapters[i].Generation, cfg.Adapters[i].Device = "mlx4", "card"
	}
	d := start(t, cfg)
	defer stop(t, d)
	mlxconfigured(t, d, 0, map[string]uint64{"SRIOV_EN": 1, "NUM_OF_VFS": 8})
	if err := d.RestartAdapter("b"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key, value string
		want       [2]uint32
	}{
		{"MaxVFPort1", "6", [2]uint32{2, 5}}, // 6 and 16 of 22, of 8
		{"MaxVFPort2", "2", [2]uint32{6, 2}},
		{"SriovPortMode", "1", [2]uint32{0, 8}},
		{"PermitSriov", "0", [2]uint32{0, 0}},
	} {
		if _, err := d.Set("a", c.key, &c.value); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			if err := d.RestartAdapter(name); err != nil {
				t.Fatal(err)
			}
		}
		for i, a := range d.Status().Adapters {
			if a.SRIOV.Granted != c.want[i] || len(a.Functions) != int(c.want[i]) {
				t.Errorf("%s=%s: %s has %d functions of %d granted, want %d", c.key, c.value, a.Name, len(a.Functions), a.SRIOV.Granted, c.want[i])
			}
		}
	}
}

// TestFunctions_SwitchKeys: the keys of spoof protection and DHCP redirection act when the adapter restarts, and the status shows what
// they have made of the switch in its port.
func TestFunctions_SwitchKeys(t *testing.T) {
	d := tenanted(t)
	want := func(dhcp bool, types ...string) {
		t.Helper()
		if s := d.Status().Adapters[0].SRIOV; s.RedirectsDHCP != dhcp || fmt.Sprint(s.EtherTypes) != fmt.Sprint(types) {
			t.Errorf("the switch redirects DHCP: %v, and allows %v; want %v, %v", s.RedirectsDHCP, s.EtherTypes, dhcp, types)
		}
	}
	set := func(keys ...string) {
		t.Helper()
		for i := 0; i < len(keys); i += 2 {
			if _, err := d.Set("a", keys[i], &keys[i+1]); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.RestartAdapter("a"); err != nil {
			t.Fatal(err)
		}
	}
	want(false, "0x0800", "0x0806", "0x86dd")
	set("VFAllowedTxEtherType3", "0x8906", "VFAllowedTxEtherType7", "0", "RedirectVfDHCPToPF", "1")
	want(true, "0x8906", "0x0000", "0x8914")
	set("VFAllowedTxEtherType0", "0x0800", "VFAllowedTxEtherType1", "0x0801", "VFAllowedTxEtherType2", "0x0802", "VFAllowedTxEtherType3", "0x0803",
		"VFAllowedTxEtherType4", "0x0804", "VFAllowedTxEtherType5", "0x0805", "VFAllowedTxEtherType6", "0x0806", "VFAllowedTxEtherType7", "0x0807")
	want(true, "0x0800", "0x0801", "0x0802", "0x0803", "0x0804", "0x0805", "0x0806", "0x0807")
	set("VFAllowedTxEtherTypeListEnable", "0")
	want(true, "any but 0x8808")
}

// TestFunctions_Spoofed: the event log tells what spoof protection has dropped.
func TestFunctions_Spoofed(t *testing.T) {
	d := tenanted(t)
	d.tellSpoofed(device.Spoofed{Owner: 0, Function: "red", Number: 3, Report: eswitch.Report{Reason: eswitch.SourceMAC, Frames: 7,
		MAC: eth.MAC{2, 0, 0, 0, 0, 9}}})
	wantEvent(t, d, "VFSpoofed", "virtual function 3 (red) sent 7 frames with another's source address", "02:00:00:00:00:09")
	d.tellSpoofed(device.Spoofed{Owner: 0, Function: "red", Number: 3, Report: eswitch.Report{Reason: eswitch.EtherType, Frames: 2,
		Type: 0x88cc}})
	wantEvent(t, d, "VFSpoofed", "sent 2 frames of an EtherType", "0x88cc")
}

// TestFunctions_Refused: what is wrong in a request is named, with what is allowed, and nothing changes.
func TestFunctions_Refused(t *testing.T) {
	d := tenanted(t)
	create := func(name string, words ...string) error {
		_, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: name, Settings: words})
		return err
	}
	if err := create("good", "mac=02:00:00:00:00:09", "address=192.0.2.9/24", "vlan=7", "max=100", "min=10"); err != nil {
		t.Fatal(err)
	}
	for want, words := range map[string][]string{
		"mac is": {"mac=01:00:00:00:00:01"}, "address is": {"address=x"}, "vlan is": {"vlan=4095"}, "link is": {"link=maybe"}, "max is": {"max=-1"},
		"min is \"1e9\"": {"min=1e9"}, "trust is": {"trust=yes"}, `setting is "spoof"`: {"spoof=off"}, "group is": {"group=no such group"},
		`setting is "speed"`: {"speed=1"}, `setting is "vlan"`: {"vlan"}, "each name once": {"vlan=1", "vlan=2"}, "min is 10": {"max=1", "min=10"},
		"vlans is \"0\"": {"vlans=0"}, "vlans is 5": {"vlan=3", "vlans=5"},
		"mac is taken": {"mac=02:00:00:00:00:09", "vlan=7"}, "address is taken": {"address=192.0.2.9/24"},
	} {
		if err := create("bad", words...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", words, err, want)
		}
	}
	for _, name := range []string{"", "a/b", "..", "x y", "good", strings.Repeat("n", 32), "-x"} {
		if err := create(name); err == nil || !strings.Contains(err.Error(), "name is") {
			t.Errorf("the name %q: %v", name, err)
		}
	}
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "c", Name: "x"}); err == nil || !strings.Contains(err.Error(), "adapter is") {
		t.Errorf("an adapter that there is not: %v", err)
	}
	for _, err := range []error{d.RemoveFunction("none"), d.SetFunction(api.FunctionRequest{Name: "none", Settings: []string{"vlan=1"}})} {
		if err == nil || !strings.Contains(err.Error(), `allowed: "good"`) {
			t.Errorf("a function that there is not: %v", err)
		}
	}
	if err := d.SetFunction(api.FunctionRequest{Name: "good", Settings: []string{"max=5", "vlan=x"}}); err == nil {
		t.Error("half a change is made")
	}
	if f := d.Functions(); len(f) != 1 || f[0].Max != 100 || f[0].VLAN != 7 {
		t.Errorf("%+v", f)
	}
}

// TestFunctions_Tenant: whoever attaches by a function's socket sees that alone. The driver's management, other functions and the
// adapters are refused, whatever is sent; group and mode of the socket say who may come.
func TestFunctions_Tenant(t *testing.T) {
	d := tenanted(t)
	for _, q := range []api.FunctionRequest{{Adapter: "a", Name: "t1", Settings: []string{"group=" + fmt.Sprint(os.Getgid())}},
		{Adapter: "a", Name: "t2"}} {
		if _, err := d.CreateFunction(q); err != nil {
			t.Fatal(err)
		}
	}
	path := paths.Function(d.cfg.Socket, "t1")
	for name, mode := range map[string]os.FileMode{"t1": 0o660, "t2": 0o600} {
		if s, err := os.Stat(paths.Function(d.cfg.Socket, name)); err != nil || s.Mode().Perm() != mode {
			t.Errorf("the socket of %s: %v, %v; want mode %o", name, s.Mode(), err, mode)
		}
	}
	c, err := client.Dial(t.Context(), path, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list, err := c.Adapters(t.Context())
	if err != nil || len(list) != 1 || list[0].Index != 0 || !strings.HasPrefix(string(list[0].Name[:]), "t1") {
		t.Fatalf("the tenant sees %d adapters, %v", len(list), err)
	}
	for i := uint32(1); i < 8; i++ {
		_, err := c.AllocPD(t.Context(), i)
		_, gids := c.GIDs(t.Context(), i)
		_, count := c.Counters(t.Context(), i)
		_, id := c.CMCreate(t.Context(), command.CMCreate{Adapter: i, Space: command.TCP})
		for what, err := range map[string]error{"a domain": err, "GIDs": gids, "counters": count, "an id": id} {
			if !errors.Is(err, &command.Error{Code: command.NotFound}) {
				t.Errorf("%s of adapter %d: %v", what, i, err)
			}
		}
	}
	for _, ask := range []string{"GET /status HTTP/1.1\r\nHost: x\r\n\r\n", "PATCH /functions/t2 HTTP/1.1\r\n\r\n", strings.Repeat("\xff", 4096)} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		_, _ = conn.Write([]byte(ask))
		b := make([]byte, 4096)
		if n, err := conn.Read(b); err == nil && strings.Contains(string(b[:n]), "HTTP") {
			t.Errorf("%.20q is answered: %.40q", ask, b[:n])
		}
		conn.Close()
	}
	if _, err := net.Dial("unix", paths.Management(path)); err == nil {
		t.Error("there is a management socket beside that of a function")
	}
	if err := d.RemoveFunction("t1"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AllocPD(t.Context(), 0); !errors.Is(err, &command.Error{Code: command.Removed}) {
		t.Errorf("a domain of a function that is gone: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("its socket is still there")
	}
	// Another one in its place is not the tenant's.
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: "t3"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AllocPD(t.Context(), 0); !errors.Is(err, &command.Error{Code: command.Removed}) {
		t.Errorf("a domain of somebody else's function: %v", err)
	}
}

// TestFunctions_Most: a port has 127 virtual functions, and the next is refused; all go with one restart.
func TestFunctions_Most(t *testing.T) {
	d := tenanted(t)
	most := "127"
	if _, err := d.Set("a", "*NumVFs", &most); err != nil {
		t.Fatal(err)
	}
	mlxconfigured(t, d, 0, map[string]uint64{"SRIOV_EN": 1, "NUM_OF_VFS": 127})
	if n := len(d.Functions()); n != 127 {
		t.Fatalf("there are %d", n)
	}
	macs := map[string]bool{}
	for _, f := range d.Functions() {
		macs[f.MAC] = true
	}
	if len(macs) != 127 {
		t.Errorf("they have %d MACs", len(macs))
	}
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: "more"}); !errors.Is(err, api.ErrUnsupported) {
		t.Errorf("one more: %v", err)
	}
	mlxconfigured(t, d, 0, map[string]uint64{"SRIOV_EN": 0})
	if n := len(d.Functions()); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// BenchmarkFunctions: how long 127 virtual functions take, and what an idle one costs: bytes, and processor time of the process in a
// second, beside that with none.
func BenchmarkFunctions(b *testing.B) {
	d := tenanted(b)
	// What is in pools or has a finalizer takes more than one collection.
	heap := func() (least uint64) {
		var m runtime.MemStats
		for again := 0; again < 3; again++ {
			runtime.GC()
			runtime.ReadMemStats(&m)
			if n := m.HeapAlloc + m.StackInuse; least == 0 || n < least {
				least, again = n, -1
			}
		}
		return least
	}
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: "first"}); err != nil { // what there is once for all
		b.Fatal(err)
	}
	if err := d.RemoveFunction("first"); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		before := heap()
		b.ReportMetric(100*busy(b, 5*time.Second), "%cpu/none")
		began := time.Now()
		for i := range 127 {
			if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: fmt.Sprint("f", i)}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(time.Since(began).Seconds(), "s/127")
		b.ReportMetric(float64(heap()-before)/127, "B/function")
		time.Sleep(2 * time.Second) // until they have said who they are
		b.ReportMetric(100*busy(b, 5*time.Second), "%cpu/idle")
		for i := range 127 {
			if err := d.RemoveFunction(fmt.Sprint("f", i)); err != nil {
				b.Fatal(err)
			}
		}
	}
}
