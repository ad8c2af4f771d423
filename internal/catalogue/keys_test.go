package catalogue

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
)

// everyAdapter returns one adapter of each kind: both generations, Ethernet and IPoIB, physical and virtual
// functions.
func everyAdapter() []Target {
	var a []Target
	for _, g := range []Generation{MLX5, MLX4} {
		for _, ipoib := range []bool{false, true} {
			for _, vf := range []bool{false, true} {
				a = append(a, Target{g, ipoib, vf})
			}
		}
	}
	return a
}

// A name or alias stands for one key of a place. The exception is an alias that is shared on purpose: no key has it
// as its name, and all keys that have it are in the same place.
func TestKeyNamesAreUnique(t *testing.T) {
	for _, at := range everyAdapter() {
		owner, alias := map[string]string{}, map[string]bool{}
		for _, k := range KeysFor(at) {
			id := strings.ToLower(k.Place(at.Generation, 0).String() + `\` + k.Name)
			if was := owner[id]; was != "" {
				t.Errorf("%v: %s is declared twice, as %s and %s", at, id, was, k.Name)
			}
			owner[id] = k.Name
		}
		for _, k := range KeysFor(at) {
			for _, n := range k.Aliases {
				id := strings.ToLower(k.Place(at.Generation, 0).String() + `\` + n)
				alias[id] = true
				if was := owner[id]; was != "" && was != k.Name {
					t.Errorf("%v: alias %s of %s is the name of %s", at, n, k.Name, was)
				}
			}
		}
	}
}

func TestKeysAreComplete(t *testing.T) {
	for _, k := range Keys() {
		name := fmt.Sprintf("%s (%d, %s, generations %d)", k.Name, k.Base, k.Path, k.Generations)
		check := func(ok bool, format string, args ...any) {
			t.Helper()
			if !ok {
				t.Errorf("%s: %s", name, fmt.Sprintf(format, args...))
			}
		}
		check(k.Name != "" && plain(k.Name) && !strings.ContainsAny(k.Name, `\ `), "bad name")
		check(k.Group != "", "no group")
		check(k.Generations&Both != 0 && k.Generations&^Both == 0, "generations %d", k.Generations)
		check(len(k.Description) >= 20 && len(k.Description) <= 330, "description of %d bytes", len(k.Description))
		check(strings.HasSuffix(k.Description, "."), "description does not end with a full stop")
		check(k.Chosen == "" || strings.HasSuffix(k.Chosen, "."), "Chosen does not end with a full stop")
		check(k.UI == (k.Title != ""), "UI is %v, title %q", k.UI, k.Title)
		check(!k.UI || k.Base == AdapterClass || k.Base == DeviceClass, "shown by the device manager, and no adapter's")
		check(k.Type != NumericString || k.Numeric(), "not numeric")
		check(k.Min <= k.Max, "limits %d to %d", k.Min, k.Max)
		check(len(k.Choices) == 0 || k.Min == 0 && k.Max == 0, "choices and limits")
		check(k.Numeric() || len(k.Choices) == 0 && k.Step == 0 && k.BitsSet == 0 && !k.PowerOf2, "numeric rules")
		check(k.BitsSet >= 0 && k.BitsSet <= bits.Len64(k.Max), "%d bits of %d", k.BitsSet, k.Max)
		places := k.Scope & (perDriver | perAdapter | perPort | perMachine)
		check(bits.OnesCount16(uint16(places)) == 1, "scope %d says where it stands %d times", k.Scope, bits.OnesCount16(uint16(places)))
		check(k.Form == anyText || k.Type == String, "form of a number")
		check((places == perDriver) == (k.Base == DriverService) || k.Base == Absolute, "scope %d at base %d", k.Scope, k.Base)
		checkSources(t, name, k.Sources)
		if k.Excludes != "" {
			other := Lookup(k.Excludes)
			check(len(other) == 1 && other[0].Excludes == k.Name && other[0].Base == k.Base && other[0].Path == k.Path,
				"excludes %s, which does not exclude it", k.Excludes)
		}
		for i, a := range k.Aliases {
			same := func(n string) bool { return strings.EqualFold(n, a) }
			check(!same(k.Name) && !slices.ContainsFunc(k.Aliases[:i], same), "alias %s says nothing new: names have no letter case", a)
		}
		seen := map[uint64]bool{}
		for _, c := range k.Choices {
			check(!seen[c.Value], "choice %d twice", c.Value)
			check(c.Name != "", "choice %d has no name", c.Value)
			seen[c.Value] = true
		}
	}
}

// Each generation that has a key is covered by one of its own manuals, or Chosen says that the key is assumed to
// exist there.
func TestGenerationsComeFromTheirManuals(t *testing.T) {
	for _, k := range Keys() {
		var printed Generation
		for _, s := range k.Sources {
			if s.Manual == winof {
				printed |= MLX4
			} else {
				printed |= MLX5
			}
		}
		if missing := k.Generations &^ printed; missing != 0 && !strings.Contains(k.Chosen, "WinOF") {
			t.Errorf("%s: no manual of generation %d has the key, and Chosen does not say so", k.Name, missing)
		}
	}
}

func checkSources(t *testing.T, name string, sources []Source) {
	t.Helper()
	if len(sources) == 0 {
		t.Errorf("%s: no source", name)
	}
	for _, s := range sources {
		if !slices.Contains([]string{winof, winof2, ethernetA, ethernetB, virtualization}, s.Manual) || s.Section == "" {
			t.Errorf("%s: source %+v", name, s)
		}
	}
}

// Each key has exactly one default for each of its generations, and the key allows it.
func TestDefaultsAreAllowed(t *testing.T) {
	for _, k := range Keys() {
		for g := range k.Defaults {
			if g != Both && k.Generations&g == 0 {
				t.Errorf("%s: a default for a generation that does not have the key", k.Name)
			}
		}
		for _, at := range everyAdapter() {
			if !k.applies(at) {
				continue
			}
			_, own := k.Defaults[at.Generation]
			if _, both := k.Defaults[Both]; own == both {
				t.Errorf("%s: generation %d has no default, or two", k.Name, at.Generation)
			}
			d := k.Default(at.Generation, at.IPoIB)
			if d.Auto {
				if d.Text == "" {
					t.Errorf("%s: the catalogue does not say how its automatic default is chosen", k.Name)
				}
				continue
			}
			v, ok := d.Value(k)
			if !ok {
				t.Errorf("%s: default %+v has no value", k.Name, d)
			}
			if err := k.Validate(v); err != nil {
				t.Errorf("default of %d, IPoIB %v: %v", at.Generation, at.IPoIB, err)
			}
		}
	}
}

// These defaults and allowed values settle contradictions between the manuals, or features depend on them.
func TestDefaultsOfNote(t *testing.T) {
	mlx5, mlx4 := Target{Generation: MLX5}, Target{Generation: MLX4}
	mlx5IB, mlx4IB := Target{Generation: MLX5, IPoIB: true}, Target{Generation: MLX4, IPoIB: true}
	for _, c := range []struct {
		at      Target
		name    string
		want    string
		allowed string
	}{
		{mlx5, "*JumboPacket", "", "614 to 9614 bytes"},
		{mlx4IB, "*JumboPacket", "4092", "1500 to 4092 bytes"},
		{mlx5, "*ReceiveBuffers", "512", "256 to 4096 packets"},
		{mlx4, "*ReceiveBuffers", "4096", "256 to 4096 packets"},
		{mlx4IB, "*ReceiveBuffers", "512", "256 to 4096 packets"},
		{mlx5, "*TransmitBuffers", "2048", "256 to 4096 packets"},
		{mlx4, "roce_mode", "2", "0 (RoCE MAC based), 2 (RoCE over UDP), 4 (no RoCE), 5 (RoCE IP based)"},
		{mlx5, "roce_udp_dport", "4791", "1 to 65535"},
		{mlx5, "RoceMaxFrameSize", "", "256, 512, 1024, 2048, 4096"},
		{mlx5, "UpdateGIDTimerFrequency", "3000", "0 to 10000 ms"},
		{mlx5, "RoceRcE2EFlowControlEnable", "1", "0 (disable), 1 (enable)"},
		{mlx5, "MaxCMRetries", "15", "1 to 15 retries"},
		{mlx5, "LogNumQp", "19", "10 to 19"},
		{mlx5, "RecvCompletionMethod", "1", "0 (polling), 1 (adaptive), 2 (adaptive)"},
		{mlx5, "ThreadPoll", "10000", "0 to 200000 cycles"},
		{mlx5, "AverageFactor", "16", "0 to 256"},
		{mlx5, "AveragePollThreshold", "10", "0 to 1000 packets"},
		{mlx5, "ThisPollThreshold", "100", "0 to 1000 packets"},
		{mlx5, "*InterruptModeration", "1", "0 (disable), 1 (enable)"},
		{mlx5, "*FlowControl", "0", "0 (disabled), 1 (Tx enabled), 2 (Rx enabled), 3 (Rx & Tx enabled)"},
		{mlx4, "RxPause", "1", "0 (disable), 1 (enable)"},
		{mlx4, "TxPause", "1", "0 (disable), 1 (enable)"},
		{mlx5, "DelayDropTimeout", "50", "0 to 100 units of 100 us"},
		{mlx4, "DelayDropTimeout", "0", "0 to 65535 units of 100 us"},
		{mlx5IB, "SaTimeout", "1000", "250 to 60000 ms"},
		{mlx5IB, "GUIDMask", "0xe7", "0x0 to 0xff, 0 or with 6 bits set"},
		{mlx4, "DumpMeNowDirectory", `\SystemRoot\temp\Mlx4_Dump_Me_Now`,
			"the absolute path of a directory, such as \\??\\C:\\DMN_DIR, /var/dumps or one below \\SystemRoot\\temp, of up to 1024 bytes"},
		{mlx4, "DumpMeNowTotalCount", "128", "0 to 65535 dumps"},
		{mlx4, "DumpMeNowPreservedCountMin", "8", "0 to 65535 dumps"},
		{mlx4, "SHCheckForHangTimeInSeconds", "4", "1 to 4294967295 s"},
		{mlx4, "CheckForHangCQMaxNoProgress", "4", "1 to 1000 checks"},
		{mlx4, "SHMPResetActiveSensorsMask", "0xffffffff", "0x0 to 0xffffffff"},
		{mlx4, "SriovPortMode", "2", "0 (auto_port1), 1 (auto_port2), 2 (manual)"},
		{mlx4, "MaxVFPort1", "16", "0 to 126 virtual functions, at most the NUM_OF_VFS"},
		{mlx5, "DcqcnRpgMinDecFac", "50", "1 to 100 %"},
		{mlx5, "DcqcnRpgAiRate", "10", "1 to 4294967295 Mbit/s, at most the line rate"},
		{mlx4, "DefaultRecvRingProcessor", "-1", "0 to 1023, at most the number of processors, or -1 (automatic)"},
		{mlx5, "RxTrustedState", "1", "1 (host priority (PCP)), 2 (DSCP)"},
	} {
		found := LookupFor(c.name, c.at)
		if len(found) == 0 {
			t.Errorf("%v has no %s", c.at, c.name)
			continue
		}
		k := found[0]
		v, ok := k.Default(c.at.Generation, c.at.IPoIB).Value(k)
		if got := k.Format(v); ok && got != c.want || !ok && c.want != "" {
			t.Errorf("%v %s: default %q, want %q", c.at, c.name, got, c.want)
		}
		if got := k.Allowed(); got != c.allowed {
			t.Errorf("%v %s: allows %q, want %q", c.at, c.name, got, c.allowed)
		}
	}
}

func TestLookup(t *testing.T) {
	names := func(a []Key) string {
		var s []string
		for _, k := range a {
			s = append(s, fmt.Sprintf("%d:%d:%s", k.Generations, k.Base, k.Name))
		}
		return strings.Join(s, " ")
	}
	const vf = "2:2:MaxVFPort1 2:1:MaxVFPort1"
	for name, want := range map[string]string{
		"roce_mode":                          "1:0:roce_mode 1:2:roce_mode 2:2:roce_mode",
		"ROCE_MODE":                          "1:0:roce_mode 1:2:roce_mode 2:2:roce_mode",
		"jumbopacket":                        "3:0:*JumboPacket 3:0:*JumboPacket",
		"*JumboPacket":                       "3:0:*JumboPacket 3:0:*JumboPacket",
		"sriovport1numvfs":                   vf,
		"MaxVFPort1":                         vf,
		"RroceDscpMarkPriorityFlowControl_3": "3:0:PriorityToDscpMappingTable_3",
		"dcqcnenableprio2":                   "1:0:DcqcnRPEnablePrio2 1:0:DcqcnNPEnablePrio2",
		"*roce_mode":                         "1:0:roce_mode 1:2:roce_mode 2:2:roce_mode",
		"MTU":                                "3:0:*JumboPacket 3:0:*JumboPacket",
		"nothing":                            "",
		"":                                   "",
	} {
		if got := names(Lookup(name)); got != want {
			t.Errorf("Lookup(%q) is %s, want %s", name, got, want)
		}
	}
	// A device's SR-IOV key is preceded by the machine's (WinOF 5.50, 4.6.9.1).
	if got, want := names(LookupFor("PermitSriov", Target{Generation: MLX4})), "2:2:PermitSriov 2:1:PermitSriov"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// The adapter's RoCE mode precedes the driver's (WinOF-2 Ethernet b, Configuring the RoCE Mode).
	if got, want := names(LookupFor("roce_mode", Target{Generation: MLX5})), "1:0:roce_mode 1:2:roce_mode"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := names(LookupFor("roce_mode", Target{Generation: MLX5, IPoIB: true})); got != "1:2:roce_mode" {
		t.Errorf("an IPoIB port finds %s, want the driver's key alone", got)
	}
	if got := LookupFor("VFAllowedTxEtherType0", Target{Generation: MLX5, VF: true}); len(got) != 0 {
		t.Errorf("a virtual function finds %s, want no key", names(got))
	}
}

// Every key is found by its full path in each spelling, and in no other place.
func TestLookupAt(t *testing.T) {
	for _, at := range everyAdapter() {
		for _, k := range KeysFor(at) {
			path := k.Place(at.Generation, 7).String()
			for _, s := range []string{path, strings.ToUpper(path), strings.Replace(path, "HKLM", "hkey_local_machine", 1), path + `\`} {
				p, err := ParsePath(s)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.EqualFold(p.String(), path) {
					t.Errorf("%s is read as %s", s, p)
				}
				found := LookupAt(p, strings.ToUpper(k.Name), at)
				if len(found) != 1 || found[0].Name != k.Name || found[0].Description != k.Description {
					t.Errorf("%v: %s\\%s finds %d keys", at, s, k.Name, len(found))
				}
			}
			p, err := ParsePath(path + `\Elsewhere`)
			if err != nil {
				t.Fatal(err)
			}
			if found := LookupAt(p, k.Name, at); len(found) != 0 {
				t.Errorf("%s is also found in %s", k.Name, p)
			}
		}
	}
}

// The place of one generation's driver holds no key of the other generation, and yields no key for an adapter of the
// other.
func TestPlacesOfDrivers(t *testing.T) {
	mlx5 := Place{Base: DriverService, Generation: MLX5}
	mlx4 := Place{Base: DriverService, Generation: MLX4}
	both, own := Lookup("LogNumQp")[0], Lookup("PermitSriov")[0]
	if !both.In(mlx5) || !both.In(mlx4) || own.In(mlx5) || !own.In(mlx4) {
		t.Error("a key is in the wrong driver's place")
	}
	if a := LookupAt(mlx4, "LogNumQp", Target{Generation: MLX5}); len(a) != 0 {
		t.Errorf("an mlx5 adapter finds %d keys at mlx4_bus, want none", len(a))
	}
	if a := LookupAt(mlx4, "LogNumQp", Target{Generation: MLX4}); len(a) != 1 {
		t.Errorf("an mlx4 adapter finds %d keys at mlx4_bus, want 1", len(a))
	}
}

func TestParsePath(t *testing.T) {
	const classes = `HKLM\SYSTEM\CurrentControlSet\Control\Class\`
	for s, want := range map[string]Place{
		`hklm\system\CURRENTCONTROLSET\Control\Class\{4D36E972-E325-11CE-BFC1-08002bE10318}\10`: {Base: AdapterClass, Number: 10},
		classes + `{4d36e97d-e325-11ce-bfc1-08002be10318}\0041\Parameters`: {Base: DeviceClass, Number: 41,
			Path: "Parameters"},
		`HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\mlx4_bus\Parameters\Roce`: {Base: DriverService, Generation: MLX4,
			Path: "Roce"},
		`HKLM\SYSTEM\CurrentControlSet\Services\MLX5\Parameters`: {Base: DriverService, Generation: MLX5},
		`HKLM\SYSTEM\CurrentControlSet\Services\mlx5\Parameters2`: {Base: Absolute,
			Path: `SYSTEM\CurrentControlSet\Services\mlx5\Parameters2`},
		classes + `{4d36e972-e325-11ce-bfc1-08002be10318}\zz`: {Base: Absolute,
			Path: `SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318}\zz`},
		`HKLM`: {Base: Absolute},
	} {
		got, err := ParsePath(s)
		if err != nil || got != want {
			t.Errorf("%s is read as %+v, %v; want %+v", s, got, err, want)
		}
	}
	for _, s := range []string{"", `HKCU\Software`, `SYSTEM\CurrentControlSet`, `HKLM\\SYSTEM`, "HKLM\\a\x00b",
		`HKLM\` + strings.Repeat("a", maxPath)} {
		if p, err := ParsePath(s); err == nil {
			t.Errorf("%.40q is read as %+v, want an error", s, p)
		}
	}
}

func TestGroupsAreWhole(t *testing.T) {
	var order []Group
	for _, k := range Keys() {
		if len(order) == 0 || order[len(order)-1] != k.Group {
			order = append(order, k.Group)
		}
	}
	if !slices.Equal(order, groups()) {
		t.Errorf("the keys of a group do not stand together: %v", order)
	}
}

// groups returns the groups of the keys in the order of Keys.
func groups() []Group {
	var a []Group
	for _, k := range keys() {
		if !slices.Contains(a, k.Group) {
			a = append(a, k.Group)
		}
	}
	return a
}

// TestKeysOfPriorities: every key of priorities, flow control and congestion control acts.
func TestKeysOfPriorities(t *testing.T) {
	seen := map[Group]int{groupQoS: 0, groupDSCP: 0, groupFlowControl: 0, groupDCQCN: 0, groupDCBX: 0,
		groupLossless: 0, groupStall: 0, groupHoQ: 0}
	for _, k := range Keys() {
		if _, ours := seen[k.Group]; !ours {
			continue
		}
		seen[k.Group]++
		if k.Status == StoredOnly {
			t.Errorf("%s (%s) is stored only", k.Name, k.Group)
		}
	}
	for g, n := range seen {
		if n == 0 {
			t.Errorf("no key is of %s", g)
		}
	}
}
