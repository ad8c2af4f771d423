package fabric

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/umad/socket"
)

// A driver that gives its own fabric a name serves it to Debian's programs through our libibumad. The programs see
// the switch, the driver's adapters (whose ports they share) and the driver's subnet manager, query that, and ping an
// adapter's node.
func TestDriversOwnFabric(t *testing.T) {
	d := newDatagrams(t, "ibnetdiscover", "ibstat", "sminfo", "smpquery", "saquery", "iblinkinfo", "ibping")
	short, err := os.MkdirTemp("", "vpi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	t.Setenv("XDG_RUNTIME_DIR", short)
	name := fmt.Sprintf("own-%x", rand.Uint32())
	running, err := driver.Start(context.Background(), config.Config{
		Socket: filepath.Join(short, "d.sock"), State: filepath.Join(short, "state"), Fabric: &config.Fabric{Name: name},
		Adapters: []config.Adapter{{Name: "ib0", Link: "cable"}, {Name: "ib1", Link: "cable"}},
	}, driver.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Close(); err != nil {
			t.Error(err)
		}
	})
	d.path = socket.Path(name) // the path that softvpi fabric env --name prints
	ports := running.Status().Adapters
	first, second := ports[0].InfiniBand, ports[1].InfiniBand
	for _, c := range []struct {
		node string
		args []string
		want string
	}{
		{"ib0", []string{"ibstat"}, fmt.Sprintf("Base lid: %d\n", first.LID)},
		{"ib1", []string{"ibstat"}, "State: Active"},
		{"ib1", []string{"ibnetdiscover"}, `"ib0"`},
		{"ib0", []string{"iblinkinfo"}, "25.78125 Gbps Active/  LinkUp"},
		{"ib0", []string{"sminfo"}, fmt.Sprintf("sm lid %d ", first.SMLID)},
		{"ib0", []string{"smpquery", "nodedesc", fmt.Sprint(second.LID)}, "ib1"},
		{"ib1", []string{"saquery", "NR", fmt.Sprint(first.LID)}, fmt.Sprintf("lid.....................%d", first.LID)},
		{"ib0", []string{"ibping", "-c", "3", "-t", "30000", fmt.Sprint(second.LID)}, "3 packets transmitted, 3 received, 0% packet loss"},
	} {
		if out := d.output(c.node, c.args[0], c.args[1:]...); !strings.Contains(strings.ReplaceAll(out, "0x", ""), c.want) &&
			!strings.Contains(out, c.want) {
			t.Errorf("%v at %s: no %q in\n%s", c.args, c.node, c.want, out)
		}
	}
}
