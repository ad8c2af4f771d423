package driver

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/driver/commandlog"
	"github.com/softvpi/softvpi/internal/driver/dump"
	"github.com/softvpi/softvpi/internal/healing"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// sets returns how many sets of files an event has, by the part of their names that names it.
func sets(t *testing.T, d *Driver, event string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(d.temp(), "SingleFunc_*_"+event+"_crspace_2.log"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// TestStateDumpsOfEvents: events cause a set of files unless the keys below Diag of the WinOF-2 driver forbid it, or ask for it in
// the case of a port's state; the tag is the table's, and an error's dump is told by an event (WinOF-2 1.21, 5.6, table 19).
func TestStateDumpsOfEvents(t *testing.T) {
	happens := map[string]func(*Driver){
		"c000_cmd-create-qp": func(d *Driver) {
			d.commandFailed(0, commandlog.Record{Command: "CREATE_QP", Failure: command.Internal})
		},
		"e000_eq-stuck-1":   func(d *Driver) { d.tellSensor(0, healing.Verdict{Sensor: healing.EventQueue, Part: 1}) },
		"t000_txcq-stuck-2": func(d *Driver) { d.tellSensor(0, healing.Verdict{Sensor: healing.SendHardware, Part: 2}) },
		"r000_rxcq-stuck-3": func(d *Driver) { d.tellSensor(0, healing.Verdict{Sensor: healing.ReceiveSoftware, Part: 3}) },
		"p*_eth-down-1":     func(d *Driver) { d.adapterChanged(notify.Change{Flags: notify.Down}) },
		"p*_eth-unknown-1": func(d *Driver) {
			d.adapterChanged(notify.Change{Flags: notify.Unknown})
		},
	}
	const all = "c000_cmd-create-qp e000_eq-stuck-1 t000_txcq-stuck-2 r000_rxcq-stuck-3"
	for name, c := range map[string]struct{ generation, key, value, want string }{
		"defaults":                 {"mlx5", "", "", all},
		"MstDumpMode=0":            {"mlx5", "MstDumpMode", "0", ""},
		"DisableDumpOnEqStuck":     {"mlx5", "DisableDumpOnEqStuck", "1", strings.Replace(all, "e000_eq-stuck-1", "", 1)},
		"DisableDumpOnTxCqStuck":   {"mlx5", "DisableDumpOnTxCqStuck", "1", strings.Replace(all, "t000_txcq-stuck-2", "", 1)},
		"DisableDumpOnRxCqStuck":   {"mlx5", "DisableDumpOnRxCqStuck", "1", strings.Replace(all, "r000_rxcq-stuck-3", "", 1)},
		"EnableDumpOnUnknownLink":  {"mlx5", "EnableDumpOnUnknownLink", "1", all + " p*_eth-unknown-1"},
		"EnableDumpOnPortDown":     {"mlx5", "EnableDumpOnPortDown", "1", all + " p*_eth-down-1"},
		"WinOF":                    {"mlx4", "", "", "p*_eth-down-1 p*_eth-unknown-1"},
		"WinOF, DumpModeFlags=0x8": {"mlx4", "DumpModeFlags", "0x8", "p*_eth-down-1"},
		"WinOF, DumpModeFlags=0xc": {"mlx4", "DumpModeFlags", "0xc", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := quiet(t)
			cfg.Adapters[0].Generation = c.generation
			d := start(t, cfg)
			if c.key != "" {
				set(t, d, "left", c.key, c.value)
				stop(t, d)
				d = start(t, cfg)
			}
			before := map[string]int{}
			for event, happen := range happens {
				before[event] = sets(t, d, event)
				happen(d)
			}
			stop(t, d) // which waits for dumps
			for event := range happens {
				want := 0
				if slices.Contains(strings.Fields(c.want), event) {
					want = 1
				}
				if got := sets(t, d, event) - before[event]; got != want {
					t.Errorf("%s: %d sets, want %d", event, got, want)
				}
			}
		})
	}
}

// TestDumpsAfterErrors: the dump of an error is told by an event, and what happens again at once causes none.
func TestDumpsAfterErrors(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	for range 5 {
		d.commandFailed(0, commandlog.Record{Command: "CREATE_CQ", Failure: command.Internal})
	}
	d.commandFailed(1, commandlog.Record{Command: "CREATE_CQ", Failure: command.Internal})
	await.Eventually(t, "a dump of each adapter is told", func() bool { return times(t, d, "DumpAfterError") == 2 })
	if got := sets(t, d, "c000_cmd-create-cq"); got != 2 {
		t.Errorf("%d sets, want one of each adapter", got)
	}
}

// TestTwentySets: 20 sets of six files are kept for a tag unless DumpEventsNum says otherwise; a further one takes the place of the
// oldest (WinOF-2 1.21, 5.6).
func TestTwentySets(t *testing.T) {
	t.Parallel()
	d := start(t, quiet(t))
	defer stop(t, d)
	const kept, more = 20, 3
	var last []string
	for i := range kept + more {
		out, err := d.Dump("left", api.DumpRequest{Kind: api.StateDump})
		if err != nil || out.Number != i%kept || len(out.Files) != 6 {
			t.Fatalf("dump %d: %+v, %v", i, out, err)
		}
		old := time.Now().Add(time.Duration(i-100) * time.Minute) // the files of a set have one time, and sets different ones
		for _, f := range out.Files {
			if err := os.Chtimes(f, old, old); err != nil {
				t.Fatal(err)
			}
		}
		last = out.Files
	}
	if n := sets(t, d, "o*_oid"); n != kept {
		t.Errorf("%d sets, want %d", n, kept)
	}
	if all, _ := filepath.Glob(filepath.Join(d.temp(), "SingleFunc_*_o*.log")); len(all) != 6*kept {
		t.Errorf("%d files, want %d", len(all), 6*kept)
	}
	for _, f := range last {
		if _, err := os.Stat(f); err != nil {
			t.Error("a file of the last set: ", err)
		}
	}
}

// TestIncidentOfSelfHealing: a dump that self-healing asks for has SH and the reason in its name, which is NA without one, and an
// event tells of it, or that it failed (WinOF 5.50, 4.7.2 and 4.7.5).
func TestIncidentOfSelfHealing(t *testing.T) {
	t.Parallel()
	cfg := quiet(t)
	cfg.Adapters[1].Generation = "mlx4"
	d := start(t, cfg)
	defer stop(t, d)
	for i, want := range []string{"DumpAfterError", "DumpMeNow"} {
		for reason, part := range map[string]string{"": "-GENERAL-SH-NA--", "0x08": "-GENERAL-SH-0x08--"} {
			out, err := d.incident(uint32(i), dump.SelfHealing, reason, incidentParts{})
			if err != nil || !strings.Contains(filepath.Base(out.Directory), part) || len(out.Files) < 5 {
				t.Errorf("%+v, %v; want a folder with %s", out, err, part)
			}
		}
		if n := times(t, d, want); n != 2 {
			t.Errorf("%d events %s, want 2", n, want)
		}
	}
	set(t, d, "right", "DumpMeNowTotalCount", "0")
	restart(t, d, "right")
	if _, err := d.incident(1, dump.SelfHealing, "", incidentParts{}); err == nil || errors.Unwrap(err) == nil || times(t, d, "DumpMeNowFailed") != 1 {
		t.Errorf("no dumps are kept: %v, want an error and DumpMeNowFailed", err)
	}
}

// TestDumpModeFlagsOfIPoIB: a WinOF port of InfiniBand follows the key of its own driver (WinOF 5.50, 6.9).
func TestDumpModeFlagsOfIPoIB(t *testing.T) {
	cfg := twoCables(t)
	cfg.SkipSelfCheck = true
	cfg.Adapters[0].Generation = "mlx4"
	d := start(t, cfg)
	defer stop(t, d)
	await.Eventually(t, "a set of the port that came up", func() bool { return sets(t, d, "p*_ib-up-1") > 0 })
	set(t, d, "left", "DumpModeFlags", "0x10")
	restart(t, d, "left")
	d.host.Settle()
	before := sets(t, d, "p*_ib-up-1")
	restart(t, d, "left")
	d.host.Settle()
	if n := sets(t, d, "p*_ib-up-1"); n != before {
		t.Errorf("%d sets of a port that is not to cause one, want the %d before", n, before)
	}
}
