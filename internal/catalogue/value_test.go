package catalogue

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// one returns an adapter's key of this name.
func one(t testing.TB, name string, at Target) Key {
	t.Helper()
	a := LookupFor(name, at)
	if len(a) == 0 {
		t.Fatalf("no %s", name)
	}
	return a[0]
}

func TestParseValue(t *testing.T) {
	mlx5, mlx4, ib := Target{Generation: MLX5}, Target{Generation: MLX4}, Target{Generation: MLX5, IPoIB: true}
	const directory = `the absolute path of a directory, such as \??\C:\DMN_DIR, /var/dumps or one below \SystemRoot\temp, of up to 1024 bytes`
	const mac = "12 hexadecimal digits, with or without - or : between each two, of a unicast address that is not 0"
	const bad = "" // of err: the value is taken
	for _, c := range []struct {
		at         Target
		name, text string
		want, err  string
	}{
		{mlx5, "*JumboPacket", "1514", "1514", bad},
		{mlx5, "*JumboPacket", "0x5ea", "1514", bad},
		{mlx5, "*JumboPacket", "0X258E", "9614", bad},
		{mlx5, "*JumboPacket", "614", "614", bad},
		{mlx5, "*JumboPacket", "613", "", "*JumboPacket is 613; allowed: 614 to 9614 bytes"},
		{mlx5, "*JumboPacket", "9615", "", "*JumboPacket is 9615; allowed: 614 to 9614 bytes"},
		{ib, "*JumboPacket", "4093", "", "*JumboPacket is 4093; allowed: 1500 to 4092 bytes"},
		{mlx5, "*JumboPacket", "", "", `*JumboPacket is ""; allowed: 614 to 9614 bytes`},
		{mlx5, "*JumboPacket", "-1", "", `*JumboPacket is "-1"; allowed: 614 to 9614 bytes`},
		{mlx5, "*JumboPacket", "1514 ", "", `*JumboPacket is "1514 "; allowed: 614 to 9614 bytes`},
		{mlx5, "*JumboPacket", "0x", "", `*JumboPacket is "0x"; allowed: 614 to 9614 bytes`},
		{mlx5, "*JumboPacket", "1_514", "", `*JumboPacket is "1_514"; allowed: 614 to 9614 bytes`},
		{mlx5, "*JumboPacket", "99999999999999999999", "", `*JumboPacket is "99999999999999999999"; allowed: 614 to 9614 bytes`},
		{mlx5, "roce_mode", "2", "2", bad},
		{mlx5, "roce_mode", "5", "", "roce_mode is 5; allowed: 0 (RoCE MAC based), 2 (RoCE v2), 4 (no RoCE)"},
		{mlx4, "roce_mode", "5", "5", bad},
		{mlx5, "RoceMaxFrameSize", "1000", "", "RoceMaxFrameSize is 1000; allowed: 256, 512, 1024, 2048, 4096"},
		{ib, "GUIDMask", "0xe7", "0xe7", bad},
		{ib, "GUIDMask", "0", "0x0", bad},
		{ib, "GUIDMask", "0x0f", "", "GUIDMask is 0xf; allowed: 0x0 to 0xff, 0 or with 6 bits set"},
		{mlx4, "DefaultRecvRingProcessor", "-1", "-1", bad},
		{mlx4, "DefaultRecvRingProcessor", "3", "3", bad},
		{mlx4, "DumpModeFlags", "0x14", "0x14", bad},
		{mlx4, "DumpModeFlags", "2", "", "DumpModeFlags is 0x2; allowed: 0x0 to 0x1c, a multiple of 4"},
		{mlx5, "DumpMeNowDirectory", `\??\C:\DMN_DIR`, `\??\C:\DMN_DIR`, bad},
		{mlx5, "NetworkAddress", "02004C4F4F50", "02004C4F4F50", bad},
		{mlx5, "NetworkAddress", "02-00-4c-4f-4f-50", "02-00-4c-4f-4f-50", bad},
		{mlx5, "NetworkAddress", "02:00:4c:4f:4f:50", "02:00:4c:4f:4f:50", bad},
		{mlx5, "NetworkAddress", "02:00-4c:4f:4f:50", "", `NetworkAddress is "02:00-4c:4f:4f:50"; allowed: ` + mac},
		{mlx5, "NetworkAddress", "02.00.4c.4f.4f.50", "", `NetworkAddress is "02.00.4c.4f.4f.50"; allowed: ` + mac},
		{mlx5, "NetworkAddress", "01005e000001", "", `NetworkAddress is "01005e000001"; allowed: ` + mac},
		{mlx5, "NetworkAddress", "000000000000", "", `NetworkAddress is "000000000000"; allowed: ` + mac},
		{mlx5, "NetworkAddress", "0200", "", `NetworkAddress is "0200"; allowed: ` + mac},
		{mlx5, "DumpMeNowDirectory", "a\nb", "", `DumpMeNowDirectory is "a\nb"; allowed: ` + directory},
		{mlx5, "DumpMeNowDirectory", strings.Repeat("a", 1025), "", "DumpMeNowDirectory is 1025 bytes long; allowed: " + directory},
		{mlx5, "DumpMeNowDirectory", `dumps`, "", `DumpMeNowDirectory is "dumps"; allowed: ` + directory},
		{mlx5, "DumpMeNowDirectory", `\SystemRoot\system32`, "", `DumpMeNowDirectory is "\\SystemRoot\\system32"; allowed: ` + directory},
		{mlx5, "DumpMeNowDirectory", "\xff", "", `DumpMeNowDirectory is "\xff"; allowed: ` + directory},
	} {
		k := one(t, c.name, c.at)
		v, err := k.Parse(c.text)
		if c.err != bad {
			var wrong *ValueError
			if !errors.As(err, &wrong) || err.Error() != c.err || wrong.Key != k.Name {
				t.Errorf("%s = %.40q: %v, want %s", c.name, c.text, err, c.err)
			}
			continue
		}
		if err != nil || k.Format(v) != c.want {
			t.Errorf("%s = %.40q is %q, %v, want %q", c.name, c.text, k.Format(v), err, c.want)
		}
	}
}

// A value in the registry is accepted in every type that can mean the same number, and in no other.
func TestAcceptStoredValues(t *testing.T) {
	jumbo := one(t, "*JumboPacket", Target{Generation: MLX5})
	port := one(t, "roce_udp_dport", Target{Generation: MLX5})
	ring := one(t, "DefaultRecvRingProcessor", Target{Generation: MLX4})
	for _, c := range []struct {
		k    Key
		v    Value
		want string
		err  string
	}{
		{jumbo, Value{Type: String, Text: "9000"}, "9000", ""},
		{jumbo, Value{Type: DWORD, Number: 9000}, "9000", ""},
		{jumbo, Value{Type: NumericString, Number: 9000}, "9000", ""},
		{jumbo, Value{Type: QWORD, Number: 1<<32 + 9000}, "", "*JumboPacket is 4294976296; allowed: 614 to 9614 bytes"},
		{jumbo, Value{Type: Binary, Bytes: []byte{1}}, "", "*JumboPacket is a REG_BINARY; allowed: 614 to 9614 bytes"},
		{jumbo, Value{Type: MultiString, Strings: []string{"9000"}}, "", "*JumboPacket is a REG_MULTI_SZ; allowed: 614 to 9614 bytes"},
		{port, Value{Type: String, Text: "0x3fd"}, "1021", ""},
		{port, Value{Type: String, Text: "many"}, "", `roce_udp_dport is "many"; allowed: 1 to 65535`},
		{port, Value{Type: DWORD}, "", "roce_udp_dport is 0; allowed: 1 to 65535"},
		{ring, Value{Type: DWORD, Number: 1<<32 - 1}, "-1", ""},
		{ring, Value{Type: String, Text: "-1"}, "-1", ""},
	} {
		v, err := c.k.Accept(c.v)
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: %+v: %v, want %s", c.k.Name, c.v, err, c.err)
			}
			continue
		}
		if err != nil || c.k.Format(v) != c.want || v.Type != c.k.Type {
			t.Errorf("%s: %+v is %+v, %v, want %s", c.k.Name, c.v, v, err, c.want)
		}
	}
}

// Pause by priority and global pause of one direction exclude each other (WinOF 5.50, 4.6.6.1).
func TestConflict(t *testing.T) {
	mlx4 := Target{Generation: MLX4}
	now := map[string]uint64{"RxPause": 1, "PerPriTxPause": 8}
	for _, c := range []struct {
		name string
		n    uint64
		err  string
	}{
		{"PerPriRxPause", 8, "PerPriRxPause cannot be set while RxPause is: set RxPause to 0 first"},
		{"PerPriRxPause", 0, ""},
		{"RxPause", 1, ""},
		{"TxPause", 1, "TxPause cannot be set while PerPriTxPause is: set PerPriTxPause to 0 first"},
		{"PerPriTxPause", 4, ""},
		{"*RSS", 1, ""},
	} {
		k := one(t, c.name, mlx4)
		err := k.Conflict(Value{Type: k.Type, Number: c.n}, func(name string) uint64 { return now[name] })
		var wrong *ConflictError
		if c.err == "" && err != nil || c.err != "" && (!errors.As(err, &wrong) || err.Error() != c.err) {
			t.Errorf("%s=%d: %v, want %q", c.name, c.n, err, c.err)
		}
	}
}

// Values of the types that no key has today are read and written like the others.
func TestOtherTypes(t *testing.T) {
	for _, c := range []struct {
		k          Key
		text, want string
		ok         bool
	}{
		{Key{Name: "b", Type: Binary}, "00ffA0", "00ffa0", true},
		{Key{Name: "b", Type: Binary}, "0", "", false},
		{Key{Name: "b", Type: Binary, Max: 2}, "000000", "", false},
		{Key{Name: "m", Type: MultiString}, `one\0two`, `one\0two`, true},
		{Key{Name: "m", Type: MultiString}, "", "", true},
		{Key{Name: "m", Type: MultiString}, `one\0\0two`, "", false},
		{Key{Name: "m", Type: MultiString, Max: 4}, `one\0two`, "", false},
		{Key{Name: "q", Type: QWORD}, "0xffffffffffffffff", "18446744073709551615", true},
		{Key{Name: "d", Type: DWORD}, "0x100000000", "", false},
		{Key{Name: "p", Type: DWORD, Min: 1, Max: 64, PowerOf2: true}, "16", "16", true},
		{Key{Name: "p", Type: DWORD, Min: 1, Max: 64, PowerOf2: true}, "24", "", false},
	} {
		v, err := c.k.Parse(c.text)
		if (err == nil) != c.ok || c.ok && c.k.Format(v) != c.want {
			t.Errorf("%s %q: %q, %v", c.k.Type, c.text, c.k.Format(v), err)
		}
	}
}

// A number is a valid value of a key exactly if it is one of the key's choices, or within the limits and on a step. A
// valid value comes back from its text.
func TestValidateAgreesWithLimits(t *testing.T) {
	all := Keys()
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(all).Draw(t, "key")
		if !k.Numeric() {
			return
		}
		least, most := k.Limits()
		n := rapid.OneOf(
			rapid.SampledFrom([]uint64{0, least, most, most + 1, least - 1}),
			rapid.Uint64Range(least, most), rapid.Uint64(),
		).Draw(t, "number")
		err := k.Validate(Value{Type: k.Type, Number: n})
		if err == nil && (n < least || n > most) {
			t.Fatalf("%s accepts %d, outside %d to %d", k.Name, n, least, most)
		}
		ruled := len(k.Choices) > 0 || k.Step > 0 || k.BitsSet > 0 || k.PowerOf2
		if err != nil && !ruled && n >= least && n <= most {
			t.Fatalf("%s refuses %d: %v", k.Name, n, err)
		}
		if err == nil {
			back, err := k.Parse(k.Format(Value{Type: k.Type, Number: n}))
			if err != nil || back.Number != n {
				t.Fatalf("%s: %d comes back as %+v, %v", k.Name, n, back, err)
			}
		}
	})
}

// Any text is read as a value or refused with an error that names the key and what is allowed. A value is valid and
// comes back from its text.
func FuzzParseValue(f *testing.F) {
	all := Keys()
	for i, text := range []string{"1514", "0x5ea", "-1", "", `a\0b`, "00ff", "\xff", "99999999999999999999", `\??\C:\DMN_DIR`} {
		f.Add(uint16(i*17), text)
	}
	f.Fuzz(func(t *testing.T, i uint16, text string) {
		k := all[int(i)%len(all)]
		for _, k := range []Key{k, {Name: "b", Type: Binary}, {Name: "m", Type: MultiString}, {Name: "s", Type: String}} {
			v, err := k.Parse(text)
			var wrong *ValueError
			if err != nil {
				if !errors.As(err, &wrong) || wrong.Key != k.Name || wrong.Allowed == "" {
					t.Fatalf("%s: error %v, want one that names the key and what is allowed", k.Name, err)
				}
				continue
			}
			if err := k.Validate(v); err != nil {
				t.Fatalf("%s: %q is read as a value that is not valid: %v", k.Name, text, err)
			}
			again, err := k.Parse(k.Format(v))
			if err != nil || k.Format(again) != k.Format(v) {
				t.Fatalf("%s: %q becomes %q, %v", k.Name, text, k.Format(again), err)
			}
		}
	})
}

// Any path is read or refused, and a path that is read comes back from its text.
func FuzzParsePath(f *testing.F) {
	for _, k := range Keys() {
		f.Add(k.Place(MLX5, 1).String())
	}
	f.Add(`HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318}\99999`)
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePath(s)
		var wrong *pathError
		if err != nil {
			if !errors.As(err, &wrong) {
				t.Fatal(err)
			}
			return
		}
		if again, err := ParsePath(p.String()); err != nil || again != p {
			t.Fatalf("%q is read as %+v, and its text as %+v, %v", s, p, again, err)
		}
	})
}
