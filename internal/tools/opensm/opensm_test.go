package opensm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// Options are read as getopt_long(3) reads them.
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
		if o.guid != 0x2c90300001001 || o.cfg.Priority != 5 || strings.Join(o.cfg.Engines, " ") != "updn minhop" || o.cfg.Sweep != 0 ||
			o.cfg.Window != 64 ||
			!o.erase || !o.once || o.logFile != "stdout" || o.logLimit != 2 || o.partitions != "p.conf" {
			t.Errorf("%s is read as %+v", line, o)
		}
	}
	if _, err := parse([]string{"-service", "-L", "128"}); err != nil { // WinOF 5.50, 4.2.4
		t.Error(err)
	}
	o, err := parse([]string{"-vv", "-t", "50", "--retries", "0", "-Z", "in", "-d", "0", "-d3"})
	if err != nil || o.flags != 0x0f || o.cfg.Timeout != 50*time.Millisecond || o.cfg.Retries != -1 || o.cfg.Enforce != subnet.EnforceIn ||
		!o.cfg.IgnoreOthers || !o.cfg.NoMulticast || o.cfg.Sweep != 10*time.Second {
		t.Errorf("the options are read as %+v, %v", o, err)
	}
}

// Wrong usage has status 2 and a message that says what is allowed.
func TestRefusals(t *testing.T) {
	for line, want := range map[string]string{
		"--fast":             "unknown option --fast",
		"-j":                 "unknown option -j",
		"here":               "unexpected argument \"here\"",
		"-g":                 "option -g needs GUID",
		"-g xyz":             "hexadecimal",
		"-p 16":              "allowed: 0 to 15",
		"-l 8":               "allowed: 0 to 7",
		"-R best":            "allowed: minhop, updn, ftree",
		"-R no_fallback":     "no_fallback as the last",
		"-t 0":               "allowed: 1 to",
		"-d 9":               "allowed: 0 to 3",
		"-Z sideways":        "allowed: both, in, out, off",
		"--once=1":           "takes no argument",
		"-F /etc/x":          "options file (-F)",
		"--perfmgr":          "option --perfmgr of OpenSM is not supported",
		"-P /nonexistent":    "partition configuration (-P)",
		"-Q -Y /nonexistent": "QoS policy (-Y)",
		"-a /nonexistent":    "root GUIDs (-a)",
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
		t.Errorf("help: status %d, want 0", status)
	}
	for _, x := range list {
		if x.long != "" && !strings.Contains(out.String(), "--"+x.long) {
			t.Errorf("--%s is not in the help", x.long)
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
		t.Errorf("the log begins with %q, want %q", b, want)
	}
	for range 3000 {
		j.write(logInfo, strings.Repeat("x", 1000))
	}
	if i, _ := os.Stat(o.logFile); i.Size() > 1<<20+2000 {
		t.Errorf("the log has %d bytes, want little more than its limit of 1 MB", i.Size())
	}
}

// An independent implementation of ibsim, where it is installed, serves the subnet manager: the subnet comes up.
func TestRealIbsim(t *testing.T) {
	systemtest.Mark(t)
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
	keys, err := c.StdinPipe() // ibsim would spin at the end of its input
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait(); keys.Close() })
	for variable, value := range map[string]string{"IBSIM_SOCKNAME": name, "IBSIM_SERVER_NAME": "", "IBSIM_SERVER_PORT": "",
		"SIM_HOST": "h1", "OSM_CACHE_DIR": dir} {
		t.Setenv(variable, value)
	}
	var out, errs bytes.Buffer
	status := tool.Failure
	await.Until(func() bool {
		out.Reset()
		errs.Reset()
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		status = Main(ctx, tool.Env{Name: "opensm", Args: []string{"-o", "-f", filepath.Join(dir, "log")}, Stdout: &out, Stderr: &errs})
		cancel()
		return !strings.Contains(errs.String(), "refused") // ibsim does not listen yet
	})
	if status != tool.Success || !strings.Contains(out.String(), "SUBNET UP") {
		t.Fatalf("status %d: %s%s", status, out.String(), errs.String())
	}
	lids, err := os.ReadFile(filepath.Join(dir, "guid2lid"))
	if err != nil || len(strings.Fields(string(lids))) != 9 {
		t.Errorf("the file of LIDs holds %q, %v; want 9 fields", lids, err)
	}
}

// -F reads what -c writes, with the same meaning. The command line overrides the file wherever -F stands in it.
func TestOptionsFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "opensm.conf")
	run := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		status := Main(context.Background(), tool.Env{Name: "opensm", Args: args, Stdout: &out, Stderr: &errs})
		return status, out.String() + errs.String()
	}
	if status, text := run("-c", name, "-p", "7", "-R", "ftree,minhop", "-s", "30", "-Z", "in", "-Q", "--log_prefix", "a b"); status != 0 {
		t.Fatalf("status %d: %s", status, text)
	}
	want, err := parse([]string{"-p", "7", "-R", "ftree,minhop", "-s", "30", "-Z", "in", "-Q", "--log_prefix", "a b"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := parse([]string{"-F", name})
	got.config = ""
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
	again := filepath.Join(dir, "again.conf")
	if status, text := run("--config="+name, "-c", again); status != 0 {
		t.Fatalf("status %d: %s", status, text)
	}
	a, _ := os.ReadFile(name)
	b, _ := os.ReadFile(again)
	if !bytes.Equal(a, b) || !bytes.Contains(a, []byte("\nsm_priority 7\n")) {
		t.Errorf("the file was written as\n%s\nand, read and written again, is\n%s", a, b)
	}
	o, err := parse([]string{"-p", "3", "-F", name})
	if err != nil || o.cfg.Priority != 3 || o.cfg.Enforce != subnet.EnforceIn {
		t.Errorf("the options are %+v, %v; want priority 3 from the command line and the rest from the file", o, err)
	}
}

// Lines of opensm.conf are read (opensm(8), "QOS CONFIGURATION" and others), and wrong ones are refused with their
// number and the reason.
func TestConfigurationLines(t *testing.T) {
	o := defaults()
	err := o.readConfig(strings.NewReader("# a comment\n\nguid 0x2c90300001001\nsweep_interval=5\n sweep_on_trap FALSE\nmax_op_vls 0x3\naccum_log_file FALSE\n" +
		"log_file (null)\nqos TRUE\nqos_max_vls 8\nqos_ca_max_vls 4\nqos_vlarb_low 0:1,1:2\nqos_swe_sl2vl 1,0,15,\nqos_rtr_high_limit 0\nm_key_lookup TRUE\ncc_cct (null)\n" +
		"cc_ca_cong_setting_ccti_timer 0 0\nvirt_enabled 1\nvirt_enable 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	q := o.qosOf()
	if o.guid != 0x2c90300001001 || o.cfg.Sweep != 5*time.Second || !o.cfg.IgnoreTraps || o.limits.MaxVLs != 3 || !o.erase ||
		o.logFile != "" || !o.qos || o.cfg.Virtual != subnet.VirtualEnable {
		t.Errorf("the options are %+v", o)
	}
	if q.CA.Max != 4 || q.Switch.Max != 8 || len(q.Router.Low) != 2 || q.Router.HighLimit != 0 || q.Switch.SLtoVL != [16]uint8{1, 0, 15} ||
		q.CA.SLtoVL[3] != 3 {
		t.Errorf("the QoS settings are %+v", q)
	}
	for line, want := range map[string]string{
		"fast TRUE":             "there is no such key",
		"perfmgr TRUE":          "not supported; allowed: FALSE",
		"lmc 8":                 "allowed: 0 to 7",
		"qos maybe":             "allowed: TRUE, FALSE",
		"guid x":                "64 bits",
		"routing_engine best":   "allowed: minhop",
		"part_enforce sideways": "allowed: both, in, out, off",
		"qos_vlarb_low 15:1":    "lanes 0 to 14",
		"qos_vlarb_low 1":       "lanes 0 to 14",
		"qos_sl2vl 16":          "up to 16 lanes",
		"qos_ca_high_limit 256": "allowed: -1 to 255",
		"log_flags 0x100":       "allowed: 0 to 0xff",
		"virt_enabled 3":        "allowed: 0 to 2",
	} {
		o := defaults()
		if err := o.readConfig(strings.NewReader("\n" + line)); err == nil || !strings.Contains(err.Error(), "line 2: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// A file that OpenSM has written can be read here, and OpenSM, where it is installed, reads one that was written
// here.
func TestConfigurationOfOpenSM(t *testing.T) {
	systemtest.Mark(t)
	program, err := exec.LookPath("opensm")
	if err != nil {
		t.Skip("opensm is not installed")
	}
	dir := t.TempDir()
	theirs, ours := filepath.Join(dir, "theirs"), filepath.Join(dir, "ours")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, program, "-c", theirs).CombinedOutput(); err != nil {
		t.Skipf("opensm -c: %v: %s", err, out)
	}
	o, err := parse([]string{"-F", theirs})
	if err != nil || o.cfg.Window != 4 || o.cfg.SMKey != 1 {
		t.Errorf("OpenSM's file is read as %+v, %v", o, err)
	}
	mine := defaults()
	mine.create, mine.cfg.Priority, mine.limits.HOQLife = ours, 9, 14
	if err := mine.createConfig(); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, program, "-F", ours, "-c", theirs).CombinedOutput()
	b, _ := os.ReadFile(theirs)
	if err != nil || !bytes.Contains(b, []byte("sm_priority 9\n")) || !bytes.Contains(b, []byte("head_of_queue_lifetime 0x0e\n")) ||
		bytes.Contains(out, []byte("nrecognized")) {
		t.Errorf("OpenSM does not take the values of our file: %v: %s\n%s", err, out, b)
	}
}

func FuzzReadConfig(f *testing.F) {
	f.Add("sm_priority 5\nqos_sl2vl 1,2,3\n")
	f.Fuzz(func(t *testing.T, text string) {
		o := defaults()
		if o.readConfig(strings.NewReader(text)) != nil {
			return
		}
		var b bytes.Buffer
		if err := o.writeConfig(&b); err != nil {
			t.Fatal(err)
		}
		again := defaults()
		if err := again.readConfig(bytes.NewReader(b.Bytes())); err != nil {
			t.Errorf("what was written is refused: %v:\n%s", err, b.String())
		}
	})
}
