package opensm

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// Options stand as getopt_long reads them.
func TestOptions(t *testing.T) {
	for _, line := range []string{
		"-g 0x2c90300001001 -p 5 -R updn,minhop -s 0 -n 64 -eo -f stdout -L 2 -P p.conf",
		"-g0x2c90300001001 -p5 -Rupdn,minhop -s0 -n64 -e -o -fstdout -L2 -Pp.conf",
		"--guid=2c90300001001 --priority 5 --routing_engine updn,minhop --sweep=0 --maxsmps 64 --erase_log_file --once --log_file stdout --log_limit=2 --Pconfig p.conf",
	} {
		o, err := parse(strings.Fields(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if o.guid != 0x2c90300001001 || o.cfg.Priority != 5 || strings.Join(o.cfg.Engines, " ") != "updn minhop" || o.cfg.Sweep != 0 || o.cfg.Window != 64 ||
			!o.erase || !o.once || o.logFile != "stdout" || o.logLimit != 2 || o.partitions != "p.conf" {
			t.Errorf("%s: %+v", line, o)
		}
	}
	o, err := parse([]string{"-vv", "-t", "50", "--retries", "0", "-Z", "in", "-d", "0", "-d3"})
	if err != nil || o.flags != 0x0f || o.cfg.Timeout != 50*time.Millisecond || o.cfg.Retries != -1 || o.cfg.Enforce != subnet.EnforceIn || !o.cfg.IgnoreOthers || !o.cfg.NoMulticast || o.cfg.Sweep != 10*time.Second {
		t.Errorf("%+v, %v", o, err)
	}
}

// Wrong usage has the status 2 and says what is allowed.
func TestRefusals(t *testing.T) {
	for line, want := range map[string]string{
		"--fast":          "unknown option --fast",
		"-j":              "unknown option -j",
		"here":            "unexpected argument \"here\"",
		"-g":              "option -g wants GUID",
		"-g xyz":          "hexadecimal",
		"-p 16":           "allowed: 0 to 15",
		"-l 8":            "allowed: 0 to 7",
		"-R best":         "allowed: minhop, updn, ftree",
		"-R no_fallback":  "no_fallback as the last",
		"-t 0":            "allowed: 1 to",
		"-d 9":            "allowed: 0 to 3",
		"-Z sideways":     "allowed: both, in, out, off",
		"--once=1":        "takes no argument",
		"-F /etc/x":       "option -F of OpenSM is not supported",
		"--perfmgr":       "option --perfmgr of OpenSM is not supported",
		"-P /nonexistent": "partition configuration (-P)",
		"-a /nonexistent": "root GUIDs (-a)",
	} {
		var errs bytes.Buffer
		status := Main(context.Background(), tool.Env{Name: "opensm", Args: strings.Fields(line), Stdout: &bytes.Buffer{}, Stderr: &errs})
		if status != tool.Usage || !strings.Contains(errs.String(), want) {
			t.Errorf("opensm %s: status %d, %s, want %q", line, status, errs.String(), want)
		}
	}
}

func TestHelpNamesEveryOption(t *testing.T) {
	var out bytes.Buffer
	if status := Main(context.Background(), tool.Env{Name: "opensm", Args: []string{"-h"}, Stdout: &out}); status != 0 {
		t.Errorf("status %d", status)
	}
	for _, x := range list {
		if x.long != "" && !strings.Contains(out.String(), "--"+x.long) {
			t.Errorf("--%s is not in the help", x.long)
		}
	}
}

// LIDs are kept in OpenSM's file.
func TestLIDFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "guid2lid")
	want := map[uint64]subnet.LIDRange{0x2c90300001001: {First: 1, Last: 1}, 5: {First: 8, Last: 15}}
	if err := saveLIDs(name, want); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(name)
	if text := "0x0000000000000005 0x0008 0x000f\n\n0x0002c90300001001 0x0001 0x0001\n\n"; string(b) != text {
		t.Errorf("%q, want %q", b, text)
	}
	got, err := loadLIDs(name)
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := loadLIDs(name + "none"); got != nil || err != nil {
		t.Errorf("no file: %v, %v", got, err)
	}
	for _, bad := range []string{"0x1", "0x1 0x0 0x1", "0x1 0x5 0x4", "0x1 0xc000 0xc000", "x 1 2"} {
		if _, err := readLIDs(strings.NewReader("\n" + bad)); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestLogBeginsAnewAtItsLimit(t *testing.T) {
	o := &options{logFile: filepath.Join(t.TempDir(), "log"), flags: 0xff, logLimit: 1}
	j, err := openJournal(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	j.now = func() time.Time { return time.Date(2020, 1, 2, 3, 4, 5, 6000, time.UTC) }
	j.write(logInfo, "first")
	b, _ := os.ReadFile(o.logFile)
	if want := fmt.Sprintf("Jan 02 03:04:05 000006 [%d] 0x02 -> first\n", os.Getpid()); string(b) != want {
		t.Errorf("%q, want %q", b, want)
	}
	for range 3000 {
		j.write(logInfo, strings.Repeat("x", 1000))
	}
	if i, _ := os.Stat(o.logFile); i.Size() > 1<<20+2000 {
		t.Errorf("the log has %d bytes", i.Size())
	}
}

// An ibsim that nobody here wrote takes part, where it is installed: the subnet comes up.
func TestRealIbsim(t *testing.T) {
	ibsim, err := exec.LookPath("ibsim")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("there is no ibsim")
	}
	dir := t.TempDir()
	name := fmt.Sprintf("softvpi-opensm-test-%d", os.Getpid())
	net := filepath.Join(dir, "net")
	text := "Ca\t1 \"h1\"\n[1]\t\"s1\"[1]\n\nCa\t1 \"h2\"\n[1]\t\"s1\"[2]\n\nSwitch\t8 \"s1\"\n[1]\t\"h1\"[1]\n[2]\t\"h2\"[1]\n"
	if err := os.WriteFile(net, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(ibsim, "-s", net)
	c.Dir = dir
	c.Env = append(os.Environ(), "IBSIM_SOCKNAME="+name)
	keys, err := c.StdinPipe() // at the end of its input it would spin
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait(); keys.Close() })
	for variable, value := range map[string]string{"IBSIM_SOCKNAME": name, "IBSIM_SERVER_NAME": "", "IBSIM_SERVER_PORT": "", "SIM_HOST": "h1", "OSM_CACHE_DIR": dir} {
		t.Setenv(variable, value)
	}
	var out, errs bytes.Buffer
	status := tool.Failure
	for range 100 {
		out.Reset()
		errs.Reset()
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		status = Main(ctx, tool.Env{Name: "opensm", Args: []string{"-o", "-f", filepath.Join(dir, "log")}, Stdout: &out, Stderr: &errs})
		cancel()
		if !strings.Contains(errs.String(), "refused") { // it is not there yet
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if status != tool.Success || !strings.Contains(out.String(), "SUBNET UP") {
		t.Fatalf("status %d: %s%s", status, out.String(), errs.String())
	}
	lids, err := loadLIDs(filepath.Join(dir, "guid2lid"))
	if err != nil || len(lids) != 3 {
		t.Errorf("the LIDs that were kept: %v, %v", lids, err)
	}
}
