package mlx5cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/driver/dump/resource"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// TestResourceDump: a queue pair that a program uses is dumped by its number, with its completion queues at depth 1 and their event
// queue at depth 2; the folder has the segments, and the same as text.
func TestResourceDump(t *testing.T) {
	g := start(t)
	if why := g.driver.NoAttach(); why != "" {
		t.Skip(why)
	}
	g.connect()
	number := uint32(g.blocks("-NdStat -Name Left")[0].Values["QPN"].(float64))
	line := fmt.Sprintf("-Dbg -ResourceDump -Name Left -Dump -Segment 0x1000 -Index1 %d -NumOfObj1 1", number)
	for depth, want := range []string{"0x1000", "0x1000 0x1200", "0x1000 0x1200 0x1300"} {
		v := g.blocks(fmt.Sprintf("%s -Depth %d", line, depth))[0].Values
		file, err := os.ReadFile(fmt.Sprint(v["File[0]"]))
		if err != nil {
			t.Fatal(err)
		}
		parts, err := resource.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[uint16]bool{}
		for _, p := range parts {
			if resource.SegmentOf(p.Type) != nil {
				kinds[p.Type] = true
			}
			if p.Type == 0x1000 && p.Index1 != number {
				t.Errorf("queue pair 0x%x, want 0x%x", p.Index1, number)
			}
		}
		for s := range strings.FieldsSeq(want) {
			if len(kinds) != depth+1 || v[fmt.Sprintf("Segment %s (%s)", s, map[string]string{"0x1000": "FULL_QPC", "0x1200": "FULL_CQC",
				"0x1300": "FULL_EQC"}[s])] == nil {
				t.Errorf("depth %d: %v, want %s", depth, v, want)
			}
		}
		if text, err := os.ReadFile(fmt.Sprint(v["File[1]"])); err != nil || !strings.Contains(string(text), "\tstate: RTS\n") {
			t.Errorf("%v: the text has no state RTS:\n%s", err, text)
		}
	}
	if v := g.blocks("-Dbg -ResourceDump -Name Left -Dump -Segment 0x21 -NumOfObj1 0xffff")[0].Values; v["Segment 0x0021 (PRM_QUERY_MKEY)"] == nil {
		t.Errorf("no memory region in %v", v)
	}
	g.dumpsOfQueuePair(t, number)
}

// dumpsOfQueuePair: a dump-me-now has a queue pair if one is named, with or without a space, and no registers if none are wanted.
func (g *rig) dumpsOfQueuePair(t *testing.T, number uint32) {
	for line, want := range map[string]string{
		"":                                       "crspace_0.log",
		fmt.Sprintf(" -CoreDumpQP%d", number):    "crspace_0.log core_qp_0.bin core_qp_0.log",
		fmt.Sprintf(" -CoreDumpQP 0x%x", number): "crspace_0.log core_qp_0.bin core_qp_0.log",
		fmt.Sprintf(" -NoMstDump -coredumpqp%d", number): "core_qp_0.bin core_qp_0.log",
		" -NoMstDump": "",
	} {
		folder := fmt.Sprint(g.blocks("-Dmn -Name Left" + line)[0].Values["Folder"])
		var got []string
		for _, name := range []string{"crspace_0.log", "core_qp_0.bin", "core_qp_0.log"} {
			if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
				got = append(got, name)
			}
		}
		if _, err := os.Stat(filepath.Join(folder, "fwtrace_0.log")); err != nil || strings.Join(got, " ") != want {
			t.Errorf("-Dmn%s: %v, %v, want %s", line, got, err, want)
		}
	}
	if status, _, errs := g.call("-Dmn -Name Left -CoreDumpQP 0xfffff1"); status != tool.Usage || !strings.Contains(errs, "-CoreDumpQP is 0xfffff1") {
		t.Errorf("a queue pair that does not exist: status %d, %s", status, errs)
	}
}

// TestResourceSegments: -Query lists the kinds of objects, and the menu segment is the same list in a file.
func TestResourceSegments(t *testing.T) {
	g := start(t)
	list := g.blocks("-Dbg -ResourceDump -Name Left -Query")
	file, err := os.ReadFile(fmt.Sprint(g.blocks("-Dbg -ResourceDump -Name Left -Dump -Segment 0xffff")[0].Values["File[0]"]))
	if err != nil {
		t.Fatal(err)
	}
	parts, err := resource.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	menu := parts[len(parts)-1].Menu
	if len(menu) != len(list) || len(menu) == 0 {
		t.Fatalf("%d kinds in the menu, %d in the list", len(menu), len(list))
	}
	for i, m := range menu {
		if list[i].Section != m.Name || list[i].Values["index1 ("+m.Index+")"] != "Mandatory" {
			t.Errorf("%+v, want %+v", list[i], m)
		}
	}
	if n := len(g.blocks("-Dbg -ResourceDump -Dump -Segment 0xffff")); n != 2 {
		t.Errorf("%d dumps without -Name, want one of each mlx5 adapter", n)
	}
}

// TestResourceRefusals: what cannot be dumped is refused with the option and what is allowed.
func TestResourceRefusals(t *testing.T) {
	g := start(t)
	for line, want := range map[string]string{
		"-Dump": "-Segment is missing", "-Query -Segment 1": "-Segment goes with -Dump", "-Query -Dump": "exclude each other",
		"-Dump -Segment 0x10000":                      "0xffff",
		"-Dump -Segment x":                            `-Segment is "x"; allowed: a number`,
		"-Dump -Segment 0x1001":                       "0x1000 (FULL_QPC)",
		"-Dump -Segment 0x1000":                       "-Index1 is missing; allowed: the QPN",
		"-Dump -Segment 0x1000 -Index1 -Depth 1":      "-Index1 needs an argument",
		"-Dump -Segment 0x1000 -Index1 1 -Index2 0":   "-Index2 is 0; allowed: none",
		"-Dump -Segment 0x1000 -Index1 0xfffff1":      "-Index1 is 0xfffff1",
		"-Dump -Segment 0x1000 -Index1 1 -Depth -1":   "-Depth needs an argument",
		"-Dump -Segment 0xffff -NumOfObj1 2":          "-NumOfObj1 is 2; allowed: none",
		"-Dump -Segment 0x1000 -Index1 1 -Segment 1":  "given twice",
		"-Dump -Segment 0x1000 -Index1 5000000000000": "0xffffffff",
	} {
		status, _, errs := g.call("-Dbg -ResourceDump -Name Left " + line)
		if status != tool.Usage || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d, %s; want %s", line, status, errs, want)
		}
	}
}
