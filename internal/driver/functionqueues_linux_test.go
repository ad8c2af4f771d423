package driver

import (
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	machine "github.com/softvpi/softvpi/internal/os/processors"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestFunctions_Queues: the network interface of a virtual function has as many queues as it asks for, of which RSS grants one for each
// processor (IovQueuePairsRequested; WinOF-2 24.4, Configuring Virtual Machine Networking). A virtual port has several if VMMQ is on and
// *RssOnHostVPorts allows it (WinOF-2 24.4, Enabling/Disabling VMMQ), and with that key 0 one, where a virtual function has as before.
func TestFunctions_Queues(t *testing.T) {
	systemtest.Mark(t)
	if len(machine.List()) < 2 {
		t.Skip("one processor has one queue")
	}
	namespace.Own(t)
	d := start(t, hosting(t))
	defer stop(t, d)
	create(t, d, "a", "vf", "tap=vf0", "queues=2")
	if _, err := d.CreateVirtualSwitch(api.SwitchRequest{Name: "v", Adapter: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.AddSwitchAdapter(api.SwitchAdapterRequest{Switch: "v", Function: "port", Settings: []string{"tap=port0", "queues=2"}}); err != nil {
		t.Fatal(err)
	}
	check := func(when string, vf, port int) {
		t.Helper()
		for _, f := range d.Functions() {
			if want := map[string]int{"vf": vf, "port": port}[f.Name]; len(f.Rings) != want {
				t.Errorf("%s: %s has %d queues of %d requested, want %d", when, f.Name, len(f.Rings), f.QueuesRequested, want)
			}
		}
	}
	port := func(word string) {
		t.Helper()
		if err := d.SetSwitchAdapter(api.SwitchAdapterRequest{Switch: "v", Function: "port", Settings: []string{word}}); err != nil {
			t.Fatal(err)
		}
	}
	key := func(value string) {
		t.Helper()
		if _, err := d.Set("a", "*RssOnHostVPorts", &value); err != nil {
			t.Fatal(err)
		}
		if err := d.RestartAdapter("a"); err != nil {
			t.Fatal(err)
		}
	}
	check("at first", 2, 2)
	if err := d.SetFunction(api.FunctionRequest{Name: "vf", Settings: []string{"queues=1"}}); err != nil {
		t.Fatal(err)
	}
	check("with queues=1", 1, 2)
	if err := d.SetFunction(api.FunctionRequest{Name: "vf", Settings: []string{"queues=2"}}); err != nil {
		t.Fatal(err)
	}
	port("vmmq=off")
	check("without VMMQ", 2, 1)
	port("vmmq=on")
	check("with it again", 2, 2)
	key("0")
	check("with *RssOnHostVPorts 0", 2, 1)
	key("1")
	check("with it 1 again", 2, 2)
}
