package ps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// play runs a script on a driver, and returns what it prints and says.
func play(t *testing.T, socket string, o Options, stdin string) (out, said string, err error) {
	t.Helper()
	var b, e bytes.Buffer
	o.Driver = api.NewClient(socket)
	if o.Tool == nil {
		o.Tool = func(string) tool.Main { return nil }
	}
	err = Run(t.Context(), tool.Env{Name: "softvpi ps", Stdin: strings.NewReader(stdin), Stdout: &b, Stderr: &e}, o)
	return b.String(), e.String(), err
}

// TestRun: where scripts come from, what they may run, and how they end.
func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.ps1")
	if err := os.WriteFile(file, []byte("'from a file'"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, err := play(t, "none", Options{File: file}, ""); out != "from a file\n" || err != nil {
		t.Errorf("a file: %q %v", out, err)
	}
	if out, _, err := play(t, "none", Options{File: "-"}, "'from stdin'"); out != "from stdin\n" || err != nil {
		t.Errorf("standard input: %q %v", out, err)
	}
	if err := os.WriteFile(file, []byte("\xff\xfe'\x00\xe9\x00'\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, err := play(t, "none", Options{File: file}, ""); out != "é\n" || err != nil {
		t.Errorf("UTF-16: %q %v", out, err)
	}
	var usage *tool.UsageError
	if _, _, err := play(t, "none", Options{File: "-"}, "'\xff'"); !errors.As(err, &usage) || !strings.Contains(err.Error(), "neither UTF-8 nor UTF-16") {
		t.Errorf("no text: %v", err)
	}
	if _, _, err := play(t, "none", Options{Command: "if ("}, ""); !errors.As(err, &usage) || !strings.Contains(err.Error(), "-c: line 1, column 5") {
		t.Errorf("no script: %v", err)
	}
	if _, _, err := play(t, "none", Options{File: filepath.Join(t.TempDir(), "none")}, ""); !errors.As(err, &usage) {
		t.Errorf("no file: %v", err)
	}
	if _, said, err := play(t, "none", Options{Command: "Get-NetAdapter"}, ""); !errors.Is(err, ErrFailed) || !strings.Contains(said, "no driver is running") {
		t.Errorf("no driver: %q %v", said, err)
	}
	args := Options{Command: "param([int]$n) $n + 1", Args: []string{"-n", "4"}}
	if out, _, err := play(t, "none", args, ""); out != "5\n" || err != nil {
		t.Errorf("arguments: %q %v", out, err)
	}
	args.Args = []string{"-n", "x"}
	if _, _, err := play(t, "none", args, ""); !errors.As(err, &usage) || !strings.Contains(err.Error(), `-c: parameter -n is "x"; allowed: [int]`) {
		t.Errorf("wrong arguments: %v", err)
	}
	tools := func(name string) tool.Main {
		if name != "mlxtool" {
			return nil
		}
		return func(_ context.Context, env tool.Env) int {
			fmt.Fprintf(env.Stdout, "%s %q\n", env.Name, env.Args)
			return len(env.Args)
		}
	}
	out, said, err := play(t, "none", Options{Tool: tools, Command: `C:\bin\mlxtool.exe; mlxtool show "a b"; $LASTEXITCODE; notepad.exe`}, "")
	if out != "mlxtool []\nmlxtool [\"show\" \"a b\"]\n2\n" || !errors.Is(err, ErrFailed) ||
		strings.Contains(said, "exit status") || !strings.Contains(said, `no command or tool "notepad.exe"`) {
		t.Errorf("tools: %q %q %v", out, said, err)
	}
}

// TestDriver: the lossless set-up acts on a real driver, -Confirm is answered on the standard input, and -WhatIf changes nothing.
func TestDriver(t *testing.T) {
	systemtest.Mark(t)
	dir, err := os.MkdirTemp("", "vpi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, r := filepath.Join(dir, "l"), filepath.Join(dir, "r")
	cfg := driverbed.Config(t, config.Adapter{Name: "port1", Link: config.LinkDatagram, Wire: config.Wire{Datagram: l, Peer: r}},
		config.Adapter{Name: "port2", Link: config.LinkDatagram, Wire: config.Wire{Datagram: r, Peer: l}})
	driverbed.Start(t, cfg)
	run := func(script, stdin string, o Options) (string, string) {
		t.Helper()
		o.Command = script
		out, said, err := play(t, cfg.Socket, o, stdin)
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, said)
		}
		return out, said
	}
	own := func() string {
		t.Helper()
		st, err := api.NewClient(cfg.Socket).Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, a := range st.Adapters {
			q := a.QoS
			all = append(all, fmt.Sprintf("willing=%v pfc=%s prio-tc=%s tc-bw=%s policies=%d", q.Own.Willing, q.Own.PFC, q.Own.PrioTC, q.Own.TCBandwidth,
				len(q.Policies)))
		}
		if all[0] != all[1] {
			t.Errorf("the adapters differ: %q", all)
		}
		return all[0]
	}
	const untouched = "willing=true pfc=none prio-tc=none tc-bw=0:100 policies=0"
	if _, said := run(lossless, "", Options{WhatIf: true}); own() != untouched || !strings.Contains(said, "What if:") {
		t.Errorf("-WhatIf: %s\n%s", own(), said)
	}
	run(lossless, "", Options{})
	if got, want := own(), "willing=false pfc=3 prio-tc=3:1 tc-bw=0:50,1:50 policies=4"; got != want {
		t.Errorf("lossless: %s, want %s", got, want)
	}
	run("Remove-NetQosPolicy TCP -Confirm; Remove-NetQosPolicy UDP -Confirm", "n\ny\n", Options{})
	if out, _ := run("(Get-NetQosPolicy).Name -join ','", "", Options{}); out != "SMB,TCP,DEFAULT\n" && out != "TCP,SMB,DEFAULT\n" {
		t.Errorf("-Confirm: %s", out)
	}
	out, _ := run(`Get-NetQosTrafficClass "SMB class" | select Name, BandwidthPercentage`, "", Options{JSON: true})
	if out != "{\n  \"Name\": \"SMB class\",\n  \"BandwidthPercentage\": 50\n}\n" {
		t.Errorf("--json: %s", out)
	}
	run("Remove-NetQosTrafficClass; Remove-NetQosPolicy; Disable-NetQosFlowControl; Set-NetQosDcbxSetting -Willing 1", "", Options{})
	if own() != untouched {
		t.Errorf("taken back: %s", own())
	}
	run(`Disable-NetAdapter port2; Set-NetAdapterAdvancedProperty port1 -RegistryKeyword VlanID -RegistryValue 55`, "", Options{})
	if out, _ := run(`(Get-NetAdapter port2).Status; (Get-NetAdapterAdvancedProperty port1 -RegistryKeyword VlanID).RegistryValue`, "", Options{}); out != "Disabled\n55\n" {
		t.Errorf("adapters: %s", out)
	}
}

// lossless is the manuals' start-up script (WinOF-2 1.21, "Configuring Windows Host").
const lossless = `Remove-NetQosTrafficClass
Remove-NetQosPolicy -Confirm:$False
set-NetQosDcbxSetting -Willing 0
New-NetQosPolicy "SMB" -Policystore Activestore -NetDirectPortMatchCondition 445 -PriorityValue8021Action 3
New-NetQosPolicy "DEFAULT" -Policystore Activestore -Default -PriorityValue8021Action 3
New-NetQosPolicy "TCP" -Policystore Activestore -IPProtocolMatchCondition TCP -PriorityValue8021Action 1
New-NetQosPolicy "UDP" -Policystore Activestore -IPProtocolMatchCondition UDP -PriorityValue8021Action 1
Disable-NetQosFlowControl 0,1,2,4,5,6,7
Enable-NetAdapterQos -InterfaceAlias "port1"
Enable-NetAdapterQos -InterfaceAlias "port2"
Enable-NetQosFlowControl -Priority 3
New-NetQosTrafficClass -name "SMB class" -priority 3 -bandwidthPercentage 50 -Algorithm ETS
`

// printed returns the lines of a section of a manual as the table of package cmdlets has them.
func printed(t *testing.T, manual, section string) string {
	t.Helper()
	text, err := os.ReadFile("../../cmdlets/testdata/manuals.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for l := range strings.Lines(string(text)) {
		if f := strings.Split(l, "\t"); f[0] == manual && f[1] == section {
			b.WriteString(f[2] + "\n")
		}
	}
	if b.Len() == 0 {
		t.Fatalf("there is no section %q of %s", section, manual)
	}
	return b.String()
}

// TestPrinted: sections of the manuals as they are printed end in the state that their text says, on a real driver.
func TestPrinted(t *testing.T) {
	systemtest.Mark(t)
	for _, c := range []struct {
		manual, section, adapter, want string
		policies                       []string
	}{
		{"WinOF-2 Ethernet b", "Adding the Script to the Local Machine Startup Scripts", "port1",
			"willing=false pfc=3 prio-tc=3:1 tc-bw=0:50,1:50",
			[]string{"DEFAULT: default,priority=3", "SMB: netdirect=445,priority=3", "TCP: protocol=tcp,priority=1", "UDP: protocol=udp,priority=1"}},
		{"WinOF-2 1.21", "B.5.1 PFC Example", "Ethernet 4", "willing=false pfc=3 prio-tc=none tc-bw=0:100",
			[]string{"DEFAULT: default,priority=3", "SMB: netdirect=445,priority=3", "TCP: protocol=tcp,priority=1", "UDP: protocol=udp,priority=1"}},
		{"WinOF-2 Ethernet b", "Differentiated Services Code Point (DSCP)", "CX4_P1", "willing=true pfc=3,5 prio-tc=3:1,5:2 tc-bw=0:4,1:16,2:80",
			[]string{"DEFAULT: default,priority=0,dscp=8", "ND10000: netdirect=10000,priority=3",
				"TCP1: protocol=tcp,port=31000-31999,priority=0,dscp=16", "TCP2: protocol=tcp,port=21000-31999,priority=0,dscp=24",
				"TCP: protocol=tcp,priority=3,dscp=16", "UDP: protocol=udp,priority=3,dscp=32"}},
	} {
		t.Run(c.section, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "vpi")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			l, r := filepath.Join(dir, "l"), filepath.Join(dir, "r")
			adapters := []config.Adapter{{Name: c.adapter, Link: config.LinkDatagram, Wire: config.Wire{Datagram: l, Peer: r}}}
			if c.adapter == "port1" {
				adapters = append(adapters, config.Adapter{Name: "port2", Link: config.LinkDatagram, Wire: config.Wire{Datagram: r, Peer: l}})
			}
			cfg := driverbed.Config(t, adapters...)
			driverbed.Start(t, cfg)
			script := strings.ReplaceAll(printed(t, c.manual, c.section), "<interface name>", `"`+c.adapter+`"`)
			if _, said, err := play(t, cfg.Socket, Options{Command: script}, ""); err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			st, err := api.NewClient(cfg.Socket).Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range st.Adapters {
				q := a.QoS
				got := fmt.Sprintf("willing=%v pfc=%s prio-tc=%s tc-bw=%s", q.Own.Willing, q.Own.PFC, q.Own.PrioTC, q.Own.TCBandwidth)
				var have []string
				for _, p := range q.Policies {
					have = append(have, p.Name+": "+p.Policy)
				}
				slices.Sort(have)
				if got != c.want || !slices.Equal(have, c.policies) || q.Off != "" {
					t.Errorf("%s: %s, want %s\npolicies %q\nwant     %q", a.Name, got, c.want, have, c.policies)
				}
			}
		})
	}
}

// TestVirtualSwitch: the commands of Hyper-V create, change, list and remove real virtual functions of a real driver.
func TestVirtualSwitch(t *testing.T) {
	systemtest.Mark(t)
	cfg := driverbed.Config(t, config.Adapter{Name: "pf", Link: config.LinkSwitch, Wire: config.Wire{Switch: "wire", Prefix: 24}})
	driverbed.Start(t, cfg)
	client := api.NewClient(cfg.Socket)
	for _, c := range []struct{ script, want string }{
		{"New-VMSwitch s -NetAdapterName pf -EnableIov $true | Out-Null; Add-VMNetworkAdapter -VMName red -SwitchName s -StaticMacAddress 00155D720100", ""},
		{"Get-VMNetworkAdapter red | % { \"$($_.Name), $($_.MacAddress), $($_.Function), $($_.Status)\" }", "Network Adapter, 00155D720100, red, Ok\n"},
		{"Set-VMNetworkAdapter red -MaximumBandwidth 250MB; Set-VMNetworkAdapterVlan red -Access -VlanId 7", ""},
		{"(Get-VMSwitch s).Ports; (Get-VMNetworkAdapter red).VlanId", "2\n7\n"},
		{"Stop-VM red -Force -Passthru -WarningAction Ignore | % State; (Get-VMNetworkAdapter red).Status", "Off\nNotConnected\n"},
		{"Start-VM red; (Get-VM red).State; (Get-VMNetworkAdapter red).Status", "Running\nOk\n"},
	} {
		if out, said, err := play(t, cfg.Socket, Options{Command: c.script}, ""); err != nil || out != c.want {
			t.Fatalf("%s: %q, want %q: %s %v", c.script, out, c.want, said, err)
		}
	}
	list, err := client.Functions(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%d functions, %v", len(list), err)
	}
	if f := list[0]; f.MAC != "00:15:5d:72:01:00" || f.Max != 263 || f.VLAN != 7 || f.Adapter != "pf" {
		t.Errorf("the function is %+v", f)
	}
	if _, said, err := play(t, cfg.Socket, Options{Command: "Remove-VMSwitch s; Get-VMSwitch s"}, ""); !errors.Is(err, ErrFailed) || !strings.Contains(said, "no switch") {
		t.Errorf("the switch is still there: %s %v", said, err)
	}
	if list, err := client.Functions(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("left: %v %v", list, err)
	}
}
