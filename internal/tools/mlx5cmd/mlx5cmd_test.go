package mlx5cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/rdmanet"
	"github.com/softvpi/softvpi/verbs"
)

// rig is a driver with three adapters: Left and last are mlx5, right is mlx4.
type rig struct {
	t      *testing.T
	cfg    config.Config
	driver *driver.Driver
}

func start(t *testing.T) *rig {
	t.Helper()
	cfg := driverbed.Config(t, config.Adapter{Name: "Left"}, config.Adapter{Name: "right", Generation: "mlx4"},
		config.Adapter{Name: "last", Impairment: "rate=10G"})
	return &rig{t, cfg, driverbed.Start(t, cfg)}
}

// call runs the tool with the words of a line and returns its exit status and its output.
func (g *rig) call(line string) (status int, stdout, stderr string) {
	args := append([]string{"--socket", g.cfg.Socket}, strings.Fields(line)...)
	var out, errs bytes.Buffer
	status = Main(g.t.Context(), tool.Env{Name: name, Args: args, Stdout: &out, Stderr: &errs})
	return status, out.String(), errs.String()
}

func (g *rig) ok(line string) string {
	g.t.Helper()
	status, out, errs := g.call(line)
	if status != tool.Success || errs != "" {
		g.t.Fatalf("%s: status %d: %s", line, status, errs)
	}
	return out
}

type jsonBlock struct {
	Adapter, Section, Status string
	Values                   map[string]any
}

func (g *rig) blocks(line string) []jsonBlock {
	g.t.Helper()
	var out []jsonBlock
	if err := json.Unmarshal([]byte(g.ok(line+" --json")), &out); err != nil {
		g.t.Fatal(err)
	}
	return out
}

// fields returns the names of a listing's sections and attributes in their order.
func fields(text string) (out []string) {
	for line := range strings.Lines(text) {
		if m := regexp.MustCompile(`^DCQCN (..) attributes for adapter "Left":$`).FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			out = append(out, m[1])
		} else if m := regexp.MustCompile(`^\t(\w+): \S+$`).FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			out = append(out, m[1])
		}
	}
	return out
}

// The attributes are those of the manual's sample, and its values are the defaults (WinOF-2 Ethernet b, RCM
// Configuration).
func TestCongestionControl(t *testing.T) {
	g := start(t)
	golden, err := os.ReadFile(filepath.Join("testdata", "dcqcn.fields"))
	if err != nil {
		t.Fatal(err)
	}
	text := g.ok("-Qosconfig -Dcqcn -Name left -Get")
	if d := cmp.Diff(strings.Fields(string(golden)), fields(text)); d != "" {
		t.Error("the attributes differ (-want +got):\n", d)
	}
	if strings.Contains(text, "stored only") || !strings.HasSuffix(text, done+"\n") {
		t.Error("want that the command is done:\n", text)
	}
	if g.ok("-QOSCONFIG -name Left -dcqcn -defaults") != text {
		t.Error("the first values are not the defaults")
	}
	g.ok("-QosConfig -Dcqcn -Name Left -Enable 3")
	g.ok("-Qosconfig -Dcqcn -Name Left -Set -DcqcnClampTgtRate 1 -dcqcncnpdscp 3 -DcqcnEnablePrio5 1")
	b := g.blocks("-Qosconfig -Dcqcn -Name Left -Get")
	for name, want := range map[string]float64{
		"DcqcnRPEnablePrio3": 1, "DcqcnRPEnablePrio5": 1, "DcqcnRPEnablePrio4": 0, "DcqcnClampTgtRate": 1, "DcqcnRpgByteReset": 400,
	} {
		if b[0].Values[name] != want || b[0].Section != "RP" || b[0].Status != "" {
			t.Errorf("%s is %v, want %v", name, b[0].Values[name], want)
		}
	}
	if np := b[1].Values; np["DcqcnNPEnablePrio3"] != 1.0 || np["DcqcnNPEnablePrio5"] != 1.0 || np["DcqcnCnpDscp"] != 3.0 {
		t.Errorf("NP attributes are %v, want priorities 3 and 5 enabled and the CNP's DSCP 3", np)
	}
	if s, err := api.NewClient(g.cfg.Socket).Settings(t.Context(), "last"); err != nil || len(s) == 0 {
		t.Error(err)
	} else if x := g.blocks("-Qosconfig -Dcqcn -Name last -Get")[0].Values["DcqcnRPEnablePrio3"]; x != 0.0 {
		t.Errorf("DcqcnRPEnablePrio3 of the other adapter is %v, want 0", x)
	}
	g.ok("-Qosconfig -Dcqcn -Name Left -Enable")
	if x := g.blocks("-Qosconfig -Dcqcn -Name Left -Get")[1].Values; x["DcqcnNPEnablePrio0"] != 1.0 || x["DcqcnNPEnablePrio7"] != 1.0 {
		t.Errorf("NP attributes are %v, want priorities 0 and 7 enabled", x)
	}
	g.ok("-Qosconfig -Dcqcn -Name Left -Disable 0")
	if x := g.blocks("-Qosconfig -Dcqcn -Name Left -Get")[0].Values; x["DcqcnRPEnablePrio0"] != 0.0 || x["DcqcnRPEnablePrio7"] != 1.0 {
		t.Errorf("RP attributes are %v, want priority 7 enabled and 0 not", x)
	}
	if g.ok("-Dcqcn -Name Left -Restore") != text {
		t.Error("after -Restore the values are not the defaults")
	}
}

// If one value is not allowed, none of the call is set. A rate above the line rate is taken as the line rate.
func TestCongestionLimits(t *testing.T) {
	g := start(t)
	status, _, errs := g.call("-QosConfig -Dcqcn -Name Left -Set -DcqcnClampTgtRate 1 -DcqcnCnpDscp 64")
	if status != tool.Usage || !strings.Contains(errs, "DcqcnCnpDscp is 64; allowed: 0 to 63") {
		t.Errorf("status %d, %s; want %d and what DcqcnCnpDscp allows", status, errs, tool.Usage)
	}
	if x := g.blocks("-Qosconfig -Dcqcn -Name Left -Get")[0].Values["DcqcnClampTgtRate"]; x != 0.0 {
		t.Errorf("DcqcnClampTgtRate is %v after the refusal, want 0", x)
	}
	if text := g.ok("-QosConfig -Dcqcn -Name last -Set -DcqcnRpgAiRate 20000"); !strings.Contains(text, "taken as that: 10000") {
		t.Error("want \"taken as that: 10000\":\n", text)
	}
	if x := g.blocks("-Qosconfig -Dcqcn -Name last -Get")[0].Values["DcqcnRpgAiRate"]; x != 10000.0 {
		t.Errorf("DcqcnRpgAiRate is %v, want the line rate, 10000", x)
	}
}

func TestUntaggedPriority(t *testing.T) {
	g := start(t)
	if text := g.ok("-Qosconfig -DefaultUntaggedPriority -Name Left -Set 3"); !strings.Contains(text, "\tDefaultUntaggedPriority: 3\n") ||
		strings.Contains(text, "stored only") {
		t.Error("want priority 3:\n", text)
	}
	if x := g.blocks("-QoSConfig -DefaultUntaggedPriority -Name Left -Get")[0].Values["DefaultUntaggedPriority"]; x != 3.0 {
		t.Error("DefaultUntaggedPriority is not 3 but ", x)
	}
}

func TestShowing(t *testing.T) {
	g := start(t)
	text := g.ok("-stat")
	for _, want := range []string{`Adapter "Left":`, `Adapter "last":`, "\tRoceMode: RoCE v2\n", "\tport_state: PORT_ACTIVE (4)\n",
		"\tlink_speed: 10.00 Gbps\n", "\tfw_ver: 1.0.1000\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "right") {
		t.Error("the mlx4 adapter is shown:\n", text)
	}
	if text := g.ok("-DriverVersion -Name LEFT"); !strings.Contains(text, ",SoftVPI,9.9") {
		t.Error("the driver's version 9.9 is missing in\n", text)
	}
	all, dynamic := g.ok("-RegKeys -Name Left"), g.ok("-RegKeys –DynamicKeys -Name Left") // the dash as the manual prints it
	if !strings.Contains(dynamic, "VfCpu") || !strings.Contains(all, "*JumboPacket") || strings.Contains(dynamic, "*JumboPacket") {
		t.Error("want dynamic keys alone:\n", dynamic)
	}
	if x := g.blocks("-RegKeys -Name Left")[0].Values["RoceMaxFrameSize"].(map[string]any); x["status"] != "built" {
		t.Errorf("RoceMaxFrameSize is %v, want the status built", x)
	}
	states := map[string]any{}
	for _, b := range g.blocks("-Features -Name Left") {
		states[b.Section] = b.Values["State"]
	}
	for _, s := range catalogue.KeysFor(catalogue.Target{Generation: catalogue.MLX5}) {
		want := "Enabled"
		if s.Group == monitoringGroup {
			want = "Disabled" // its key is 0 by default
		}
		if s.Status == catalogue.Built && states[string(s.Group)] != want {
			t.Errorf("%s is %v, want %s", s.Group, states[string(s.Group)], want)
		}
	}
	if text := g.ok("-LinkSpeed -Name last -Query"); !strings.Contains(text, "\tCurrent: 10.00 Gbps\n") {
		t.Error("the current speed of 10.00 Gbps is missing in\n", text)
	}
}

func TestDebugging(t *testing.T) {
	g := start(t)
	for _, c := range []string{"-Dmn -Name Left", "-Dbg -StateDump -Name Left"} {
		b := g.blocks(c)[0]
		for i := 0; b.Values[fmt.Sprintf("File[%d]", i)] != nil; i++ {
			if _, err := os.Stat(fmt.Sprint(b.Values[fmt.Sprintf("File[%d]", i)])); err != nil {
				t.Error("a file of the dump: ", err)
			}
		}
		if b.Values["File[0]"] == nil {
			t.Errorf("%s: no file in %v", c, b)
		}
	}
	if text := g.ok("-dbg -swreset -name Left"); !strings.Contains(text, done) {
		t.Error("-swreset is not done:\n", text)
	}
	if b := g.blocks("-Dbg -Resources -Name Left")[0].Values; b["QP max"] == nil || b["PKEY[0]"] != "ffff" {
		t.Errorf("resources are %v, want the limit of queue pairs and the P_Key ffff", b)
	}
	g.ok("-Dbg -CmdStats")
	if text := g.ok("-Dbg -OidStats -Name Left"); !strings.Contains(text, "POST /adapters/{name}/reset: 1, 0 failed") {
		t.Error("the reset is missing among the requests:\n", text)
	}
}

// A connection is listed at both of its ends. The sniffer captures its packets, and -Stop ends the sniffer.
func TestConnectionAndSniffer(t *testing.T) {
	g := start(t)
	if why := g.driver.NoAttach(); why != "" {
		t.Skip(why)
	}
	file := filepath.Join(t.TempDir(), "sniffed.pcapng")
	if status, _, errs := g.call("-Sniffer -Name Left -Stop"); status != tool.Failure || !strings.Contains(errs, "no sniffer is running") {
		t.Errorf("-Stop before -Start: status %d, %s; want %d and \"no sniffer runs\"", status, errs, tool.Failure)
	}
	if text := g.ok("-sniffer -name left -start -filename " + file); !strings.Contains(text, "\tFile: "+file+"\n") ||
		!strings.HasSuffix(text, done+"\n") {
		t.Error("want the sniffer's file, and that the command is done:\n", text)
	}
	if status, _, errs := g.call("-Sniffer -Name Left -Start -FileName x"); status != tool.Failure || !strings.Contains(errs, file) {
		t.Errorf("a second sniffer: status %d, %s; want %d and the file of the first", status, errs, tool.Failure)
	}
	g.connect()
	b := g.blocks("-NdStat")
	if len(b) != 2 || b[0].Adapter != "Left" || b[1].Adapter != "last" || b[0].Values["State"] != "RTS" ||
		b[0].Values["Remote Address"] != b[1].Values["Local Address"] {
		t.Errorf("connections %+v, want both ends in RTS", b)
	}
	if text := g.ok("-NdStat -Pid 1"); text != "0 connections\n" {
		t.Error("want no connections of process 1:\n", text)
	}
	if v := g.blocks("-Sniffer -Name Left -Status")[0].Values; v["state"] != "running" && v["State"] != "running" {
		t.Errorf("the status of the sniffer is %v", v)
	}
	values := g.blocks("-Sniffer -Name Left -Stop")[0].Values
	if n := packets(t, file); n == 0 || values["Packets"] != float64(n) || values["Missed"] != 0.0 {
		t.Errorf("the sniffer reports %v, want the %d packets in the file and none missed", values, n)
	}
	if text := g.ok("-Sniffer -Name Left -Status"); !strings.Contains(text, "\tState: stopped\n") {
		t.Error("the status of a sniffer that has ended:\n", text)
	}
	if status, _, _ := g.call("-Sniffer -Name Left -Stop"); status != tool.Failure {
		t.Errorf("-Stop of a sniffer that has ended: status %d, want %d", status, tool.Failure)
	}
}

// packets counts the packets of a capture, which must be complete: it ends with statistics.
func packets(t *testing.T, file string) (n int) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewNgReader(f, pcapgo.NgReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for ; err == nil; n++ {
		_, _, err = r.ReadPacketData()
	}
	if s, _ := r.Interface(0); !errors.Is(err, io.EOF) || s.Statistics.PacketsReceived != uint64(n-1) {
		t.Errorf("%v; statistics %+v, want EOF and %d packets received", err, s.Statistics, n-1)
	}
	return n - 1
}

// connect makes a connection from last to Left between two attached programs, and sends something through it.
func (g *rig) connect() {
	g.t.Helper()
	l, err := (&rdmanet.ListenConfig{Adapter: g.attached(0)}).Listen(g.t.Context(), netip.AddrPortFrom(g.cfg.Adapters[0].Address,
		7000).String())
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = l.Close() })
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := l.Accept()
		accepted <- c
	}()
	client, err := (&rdmanet.Dialer{Adapter: g.attached(2)}).Dial(g.t.Context(), l.Addr().String())
	if err != nil {
		g.t.Fatal(err)
	}
	server := <-accepted
	g.t.Cleanup(func() { _ = client.Close(); _ = server.Close() })
	if _, err := client.Write([]byte("data")); err != nil {
		g.t.Fatal(err)
	}
	if _, err := io.ReadFull(server, make([]byte, 4)); err != nil {
		g.t.Fatal(err)
	}
}

// attached returns the adapter of that index as a program attached to the driver sees it.
func (g *rig) attached(index int) *nd.Adapter {
	g.t.Helper()
	host, err := verbs.Attach(g.t.Context(), g.cfg.Socket)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = host.Close() })
	a, err := nd.NewProvider(host).OpenAdapterAt(g.cfg.Adapters[index].Address)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = a.Close() })
	return a
}

func TestHelp(t *testing.T) {
	g := start(t)
	for line, want := range map[string]string{
		"": "-QosConfig", "-hh": "-Temperature", "-h": "-Stat", "-QosConfig -hh": "-DefaultUntaggedPriority",
		"-qosconfig -dcqcn -h": "-Defaults",
		"-Temperature -hh":     "do not support it yet", "-Dbg -h": "-SwReset", "-Sniffer -hh": "-FileName",
		"-Dmn -Name Left -hh": "-Name <adapter>",
	} {
		if text := g.ok(line); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in:\n%s", line, want, text)
		}
	}
	for _, c := range catalogue.CommandsOf(name) {
		if text := g.ok(dashed(c.Name) + " -hh"); !strings.Contains(text, c.Summary) {
			t.Errorf("%s: %s", c.Name, text)
		}
		if leaf := len(children(&c)) == 0; leaf && (c.Status == catalogue.Built) != (works[c.Name] != nil) {
			t.Errorf("%s: works %v, but the catalogue has the status %d", c.Name, works[c.Name] != nil, c.Status)
		}
	}
}

func TestRefusals(t *testing.T) {
	g := start(t)
	for _, c := range []struct {
		line   string
		status int
		want   string
	}{
		{"-Temperature", tool.Unsupported, "not supported by this adapter"},
		{"-Trace", tool.Usage, "-Start"},
		{"-Trace -Start -Size many", tool.Usage, "a number of megabytes"},
		{"-Trace -Start -Size 9999", tool.Usage, "1 to 1024"},
		{"-Trace -Start -Level loud", tool.Usage, "verbose"},
		{"-Trace -Start -FileName x", tool.Usage, "-FileName goes with -Stop"},
		{"-dbg -ResourceDump -Dump -Segment 0x5000 -Index1 1 -NumOfObj1 32 -Index2 1 –Depth 1", tool.Unsupported, "virtual functions, and the adapter has none"},
		{"-Dbg -ResourceDump -Name right -Query", tool.Unsupported, "not supported by this adapter"},
		{"-Dbg -ResourceDump", tool.Usage, "one of -Query, -Dump is missing"},
		{"-LinkSpeed -Name Left -Set 10", tool.Unsupported, "not supported by this adapter"},
		{"-DriverVersion -Name Left -VF 1", tool.Unsupported, "not supported by this adapter"},
		{"-Stat -Name right", tool.Unsupported, "not supported by this adapter"},
		{"stat", tool.Usage, "dash"},
		{"-Nothing", tool.Usage, "-QosConfig"},
		{"-Name Left", tool.Usage, "-Name is not a command"},
		{"-Stat -Name middle", tool.Usage, `"Left"`},
		{"-Stat -Name", tool.Usage, "needs an argument"},
		{"-Stat -More", tool.Usage, "-More is not an option"},
		{"-Stat more", tool.Usage, `unexpected argument "more"`},
		{"-Stat -Name Left -name last", tool.Usage, "given twice"},
		{"-QosConfig", tool.Usage, "-Dcqcn | -DefaultUntaggedPriority"},
		{"-QosConfig -Name Left -Get", tool.Usage, "-Dcqcn"},
		{"-QosConfig -Dcqcn -Get", tool.Usage, "-Name is missing"},
		{"-QosConfig -Dcqcn -Name Left", tool.Usage, "is missing"},
		{"-QosConfig -Dcqcn -Name Left -Get -Defaults", tool.Usage, "exclude"},
		{"-QosConfig -Dcqcn -Name Left -Set", tool.Usage, "no parameter is given"},
		{"-QosConfig -Dcqcn -Name Left -Set -roce_mode 1", tool.Usage, "not a parameter of congestion control"},
		{"-QosConfig -Dcqcn -Name Left -Set -DcqcnCnpDscp", tool.Usage, "needs a value"},
		{"-QosConfig -Dcqcn -Name Left -Set -DcqcnCnpDscp 1 -DcqcnCnpDscp 2", tool.Usage, "twice"},
		{"-QosConfig -Dcqcn -Name Left -Enable 8", tool.Usage, "0 to 7"},
		{"-QosConfig -DefaultUntaggedPriority -Name Left -Set 8", tool.Usage, "0 to 7"},
		{"-QosConfig -DefaultUntaggedPriority -Name Left", tool.Usage, "is missing"},
		{"-QosConfig -SetupRoceQosConfig -Name Left", tool.Usage, "is missing"},
		{"-QosConfig -SetupRoceQosConfig -Name Left -Configure 4", tool.Usage, "2 (lossless fabric)"},
		{"-QosConfig -SetupRoceQosConfig -Name Left -Configure 2 -Query", tool.Usage, "exclude"},
		{"-QosConfig -SetupRoceQosConfig -Name Left -Configure 2", tool.Unsupported, "UDP sockets"},
		{"-Dcqcn -Name Left", tool.Usage, "-Restore"},
		{"-Dmn", tool.Usage, "-Name is missing"},
		{"-Sniffer -Name Left -Start", tool.Usage, "-FileName is missing"},
		{"-Sniffer -Name Left -Start -FileName /dev/null", tool.Usage, "file is"},
		{"-Sniffer -Name Left -Stop -FileName x", tool.Usage, "goes with -Start"},
		{"-Sniffer -Name Left -Stop -QP 5", tool.Usage, "-QP and -Comments go with -Start"},
		{"-Sniffer -Name Left -Start -FileName x -Comments", tool.Usage, "-Comments needs -QP"},
		{"-Sniffer -Name Left -Start -FileName x -QP 0", tool.Usage, "-QP is 0; allowed: 1 to 16777215"},
		{"-Sniffer -Name Left -Start -FileName x -QP y", tool.Usage, "a number from 0"},
		{"-Sniffer -Name Left -Start -FileName x -QP 5", tool.Usage, "qp is 5; allowed: that of a queue pair"},
		{"-NdStat -Pid x", tool.Usage, "-Pid"},
	} {
		status, out, errs := g.call(c.line)
		if status != c.status || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 || out != "" {
			t.Errorf("%s: status %d, %q %q, want %d and %q", c.line, status, out, errs, c.status, c.want)
		}
	}
}

// TestTrace: -Trace records from -Start until -Stop, which writes the file that is named, and the text beside it.
func TestTrace(t *testing.T) {
	g := start(t)
	file := filepath.Join(t.TempDir(), "mine.json")
	g.ok("-Trace -Start -Level warning -Components command=information,loop=off -Size 2")
	if text := g.ok("-Trace -Query"); !strings.Contains(text, "Level of loop") || !strings.Contains(text, "Mellanox-Trace") {
		t.Errorf("%s", text)
	}
	g.ok("-Trace -Stop -FileName " + file)
	for _, name := range []string{file, strings.TrimSuffix(file, "json") + "txt"} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
}
