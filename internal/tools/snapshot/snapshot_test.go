package snapshot

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// hostile is a name that would run a script if the page did not escape it.
const hostile = `<script>alert("1")</script> & 'more'`

type rig struct {
	t   *testing.T
	cfg config.Config
	d   *driver.Driver
}

func start(t *testing.T) *rig {
	t.Helper()
	cfg := driverbed.Config(t, config.Adapter{Name: "left"}, config.Adapter{Name: "right", Generation: "mlx4"})
	return &rig{t, cfg, driverbed.Start(t, cfg)}
}

func (g *rig) call(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	args = append([]string{"-socket", g.cfg.Socket, "-state", g.cfg.State}, args...)
	status = Main(g.t.Context(), tool.Env{Name: "MLNX_System_Snapshot", Args: args, Stdout: &out, Stderr: &errs})
	return status, out.String(), errs.String()
}

func (g *rig) report() report {
	g.t.Helper()
	status, out, errs := g.call("--json")
	var r report
	if err := json.Unmarshal([]byte(out), &r); status != tool.Success || err != nil {
		g.t.Fatalf("the report: status %d, %s, %v", status, errs, err)
	}
	return r
}

// row returns the first row of a section whose first cell ends with name.
func (r *report) row(title, name string) []string {
	for _, s := range r.Sections {
		for _, row := range s.Rows {
			if s.Title == title && strings.HasSuffix(row[0], name) {
				return row
			}
		}
	}
	return nil
}

func (r *report) titles() (out []string) {
	for _, s := range r.Sections {
		out = append(out, s.Title)
	}
	return out
}

// The report shows everything of a running driver, and after the driver has stopped what is stored on disk.
func TestRunningAndStopped(t *testing.T) {
	g := start(t)
	client := api.NewClient(g.cfg.Socket)
	if _, err := client.Set(t.Context(), "left", "*JumboPacket", "9000"); err != nil {
		t.Fatal(err)
	}
	s, err := client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(16)
	if err := client.Configure(t.Context(), &s.Adapters[0], map[string]*uint64{"NUM_OF_VFS": &n}); err != nil {
		t.Fatal(err)
	}
	r := g.report()
	for _, want := range []string{
		"System", "Network interfaces", "Driver", "Adapter left", "Adapter right", "Registry of left", "Device configuration of left",
		"Registry of right", "Counters", "Queue pairs", "Programs", "Events",
	} {
		if !slices.Contains(r.titles(), want) {
			t.Errorf("no %q among %q", want, r.titles())
		}
	}
	if row := r.row("Adapter left", "Objects"); row == nil ||
		!regexp.MustCompile(`^ah: 0, cm: \d+, cq: \d+, .*, srq: 0$`).MatchString(row[1]) {
		t.Errorf("objects of left: %q", row)
	}
	if row := r.row("Registry of left", `\*JumboPacket`); row == nil || row[2] != "9000" || !strings.Contains(row[3], "1514") {
		t.Errorf("*JumboPacket of left: %q, want 9000 in the registry and 1514 in force", row)
	}
	if row := r.row("Device configuration of left", "NUM_OF_VFS"); row == nil || row[1] != "N/A" || row[2] != "16" {
		t.Errorf("NUM_OF_VFS of left: %q, want N/A and then 16", row)
	}
	if !r.Running || r.row("Driver", "Version")[1] != "9.9" || r.row("Counters", "") == nil || r.row("Events", "") == nil {
		t.Errorf("the version, counters or events of a running driver are missing: %+v", r)
	}
	if err := g.d.Close(); err != nil {
		t.Fatal(err)
	}
	r = g.report()
	if row := r.row("Registry of left", `\*JumboPacket`); r.Running || row == nil || row[1] != "-" || row[2] != "9000" {
		t.Errorf("*JumboPacket of left without a driver: %q, want nothing in force and 9000 in the registry", row)
	}
	if row := r.row("Device configuration of left", "NUM_OF_VFS"); row == nil || row[2] != "16" {
		t.Errorf("NUM_OF_VFS of left without a driver: %q, want 16", row)
	}
	if row := r.row("Events", ""); row == nil || row[4] != "DriverStopped" { // the newest first
		t.Errorf("the newest event: %q, want DriverStopped", row)
	}
	file := filepath.Join(t.TempDir(), "report.html")
	if status, out, errs := g.call("-o", file); status != tool.Success || !strings.Contains(out, "No driver is running") {
		t.Errorf("status %d, %s, %s; want a report and \"No driver is running\"", status, out, errs)
	}
	if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), "this is what is on disk") {
		t.Errorf("%v, or the page does not say that it shows what is on disk: %s", err, b)
	}
}

// The page has no script and refers to nothing outside itself; names that others gave appear as text.
func TestPage(t *testing.T) {
	g := start(t)
	r, err := registry.ParsePath(`HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318}\0000`)
	if err != nil {
		t.Fatal(err)
	}
	change := []registry.Change{{Kind: registry.SetValue, Key: r, Value: registry.String("DumpMeNowDirectory", hostile)}}
	if _, err := api.NewClient(g.cfg.Socket).ChangeRegistry(t.Context(), change, true); err != nil {
		t.Fatal(err)
	}
	status, out, errs := g.call("-o", "-")
	if status != tool.Success || errs != "" {
		t.Fatalf("the page: status %d, %s", status, errs)
	}
	for _, never := range []string{"<script", "<link", "<img", "<iframe", "http://", "https://", "url(", " src=", "onload", "@import"} {
		if strings.Contains(strings.ToLower(out), never) {
			t.Errorf("%q in the page", never)
		}
	}
	for _, m := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(out, -1) {
		if !strings.HasPrefix(m[1], "#") || strings.Count(out, `id="`+m[1][1:]+`"`) != 1 {
			t.Errorf("a link to %s, want one anchor of this page", m[1])
		}
	}
	var b bytes.Buffer
	page := report{Host: hostile, Sections: []section{{Title: hostile, Note: hostile, Fields: []string{hostile},
		Rows: [][]string{{hostile}}}}}
	if err := page.html(&b); err != nil || strings.Contains(b.String(), "<script") || !strings.Contains(b.String(), "&lt;script&gt;") {
		t.Errorf("%v, or a name is not escaped: %s", err, b.String())
	}
}

// A state directory that is missing or damaged is reported and left as it is.
func TestNothingOnDisk(t *testing.T) {
	dir := t.TempDir()
	g := &rig{t: t, cfg: config.Config{Socket: filepath.Join(dir, "s"), State: filepath.Join(dir, "state")}}
	r := g.report()
	if i := slices.Index(r.titles(), "Registry"); i < 0 || !strings.Contains(r.Sections[i].Note, "there is no registry") {
		t.Errorf("no note that there is no registry in %+v", r)
	}
	if _, err := os.Stat(g.cfg.State); err == nil {
		t.Error("the tool made the state directory")
	}
	if err := os.MkdirAll(g.cfg.State, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(g.cfg.State, registry.FileName)
	if err := os.WriteFile(file, []byte("no registry"), 0o600); err != nil {
		t.Fatal(err)
	}
	r = g.report()
	if i := slices.Index(r.titles(), "Registry"); i < 0 || !strings.Contains(r.Sections[i].Note, "is unreadable") {
		t.Errorf("no note that the registry is unreadable in %+v", r)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "no registry" {
		t.Errorf("the tool changed the registry: %v %q", err, b)
	}
}

func TestRefusals(t *testing.T) {
	g := start(t)
	for _, args := range [][]string{{"more"}, {"-o", ""}, {"-z"}} {
		if status, out, errs := g.call(args...); status != tool.Usage || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: status %d, %q, %q; want wrong usage and one line", args, status, out, errs)
		}
	}
	if status, _, errs := g.call("-o", filepath.Join(t.TempDir(), "none", "file.html")); status != tool.Failure || errs == "" {
		t.Errorf("a file in no directory: status %d, %s; want 1 and an error message", status, errs)
	}
}
