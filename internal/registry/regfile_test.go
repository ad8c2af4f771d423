package registry

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var sameChange = cmp.Options{cmp.AllowUnexported(Path{}), cmpopts.EquateEmpty()}

func TestRegFile(t *testing.T) {
	text := strings.ReplaceAll(`Windows Registry Editor Version 5.00

; the driver's own keys
[HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\mlx5\Parameters\Roce]
"roce_mode"=dword:00000002 ; v2
@="a \"quoted\" text with C:\\back\\slashes"
"gone"=-
"expand"=hex(2):25,00,53,00,79,00,73,00,25,00,00,00
"list"=hex(7):6f,00,6e,00,65,00,00,\
  00,74,00,77,00,6f,00,00,00,00,00
"bytes"=hex:de,ad,be,ef
"wide"=hex(b):08,07,06,05,04,03,02,01
"none"=hex(0):
[-HKLM\SYSTEM\CurrentControlSet\Services\old]
`, "\n", "\r\n")
	p, old := path(t, roce), path(t, `HKLM\SYSTEM\CurrentControlSet\Services\old`)
	set := func(line int, v Value) Change { return Change{Kind: SetValue, Key: p, Value: v, Line: line} }
	want := []Change{
		{Kind: CreateKey, Key: path(t, `HKLM\SYSTEM\CurrentControlSet\Services\mlx5\Parameters\Roce`), Line: 4},
		set(5, DWord("roce_mode", 2)),
		set(6, String("", `a "quoted" text with C:\back\slashes`)),
		{Kind: DeleteValue, Key: p, Value: Value{Name: "gone"}, Lenient: true, Line: 7},
		set(8, expand("expand", "%Sys%")),
		set(9, Strings("list", []string{"one", "two"})),
		set(11, Value{"bytes", Binary, []byte{0xde, 0xad, 0xbe, 0xef}}),
		set(12, QWord("wide", 0x0102030405060708)),
		set(13, Value{Name: "none", Type: None}),
		{Kind: DeleteKey, Key: old, Lenient: true, Line: 14},
	}
	big := []byte{0xfe, 0xff}
	for _, u := range utf16.Encode([]rune(text)) {
		big = append(big, byte(u>>8), byte(u))
	}
	for name, b := range map[string][]byte{
		"UTF-16LE": encoded(t, text), "UTF-16BE": big, "UTF-8": []byte(text), "UTF-8 with mark": []byte("\ufeff" + text),
		"line feeds": []byte(strings.ReplaceAll(text, "\r\n", "\n")), "carriage returns": []byte(strings.ReplaceAll(text, "\r\n", "\r")),
	} {
		got, err := ParseRegFile(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(want, got, sameChange); d != "" {
			t.Errorf("%s: (-want +got)\n%s", name, d)
		}
	}
}

func encoded(t testing.TB, text string) []byte {
	b, err := encodeUnicode(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRegedit4IsANSI: REGEDIT4 is written in Windows-1252, as regedit reads it; in UTF-8 if a character is not in
// that code page, or if its bytes there would be taken for UTF-8.
func TestRegedit4IsANSI(t *testing.T) {
	for text, want := range map[string]string{
		"naïve €": "na\xefve \x80", "Ω": "Ω", "Ã©": "Ã©", "plain": "plain",
	} {
		r := NewVolatile("test")
		p := path(t, `HKLM\SYSTEM\CurrentControlSet\Services\x`)
		if err := r.Apply(Change{Kind: SetValue, Key: p, Value: String("a", text)}, Change{Kind: SetValue, Key: p,
			Value: expand("b", text)}); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := r.WriteRegFile(&got, p, Regedit4); err != nil {
			t.Fatal(err)
		}
		var digits []string
		for _, c := range []byte(want + "\x00") {
			digits = append(digits, fmt.Sprintf("%02x", c))
		}
		for _, line := range []string{`"a"="` + want + `"`, `"b"=hex(2):` + strings.Join(digits, ",")} {
			if !strings.Contains(got.String(), "\r\n"+line+"\r\n") {
				t.Errorf("%q: no line %q in %q", text, line, got.String())
			}
		}
	}
}

// TestRegedit4: strings in hexadecimal are in the file's code page in REGEDIT4, and in UTF-16 in version 5.00.
func TestRegedit4(t *testing.T) {
	file := "REGEDIT4\r\n\r\n[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\mlx5]\r\n\"caf\xe9\"=\"na\xefve \x80\"\r\n\"list\"=hex(7):6f,6e,e9,00,00\r\n\"raw\"=hex:e9,00\r\n"
	got, err := ParseRegFile([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Value{String("café", "naïve €"), Strings("list", []string{"oné"}), {"raw", Binary, []byte{0xe9, 0}}} {
		if d := cmp.Diff(want, got[i+1].Value); d != "" {
			t.Error("(-want +got):\n", d)
		}
	}
}

func TestWrongRegFile(t *testing.T) {
	head := headerUnicode + "\n[HKLM\\SYSTEM\\CurrentControlSet\\Services\\x]\n"
	for in, want := range map[string]string{
		"": "line 1: not a .reg file", "REGEDIT5\n": "line 1: not a .reg file; allowed",
		headerUnicode + "\n\"a\"=\"b\"":                 "line 2: a value before the first [key]",
		headerUnicode + "\n[HKCU\\x]":                   "line 2: key \"HKCU\\x\": allowed: a path that begins with HKLM",
		headerUnicode + "\n[HKLM\\SYSTEM":               "line 2: \"[HKLM\\\\SYSTEM\": a key without a closing ]",
		head + "\"a\"=dword:123456789":                  "line 3: value \"a\": dword:123456789; allowed: up to eight",
		head + "\"a\"=hex:1,xx":                         "\"xx\" is not a byte",
		head + "\"a\"=hex:1,\\":                         "the file ends where",
		head + "\"a\"=hex(zz):00":                       "hex(zz); allowed: hex(type)",
		head + "\"a\"=yes":                              "\"yes\"; allowed: \"text\", dword:",
		head + "\"a\"=\"unfinished":                     "without its closing",
		head + "\"a\"=\"C:\\path\"":                     "allowed: \\\\ and \\\"",
		head + "\"a\" 1":                                "no = after the name",
		head + "a=1":                                    "line 3: \"a=1\"; allowed: [key]",
		head + "\"\"=\"x\"":                             "the default value is written @=",
		head + "\"a\"=\"b\" c":                          "after the text",
		strings.Replace(head, "[", "[-", 1) + "\"a\"=-": "a value of a key that the file deletes",
	} {
		_, err := ParseRegFile([]byte(in))
		var e *regFileError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

// TestRegFileAsRegeditWritesIt: a file written by regedit is written again byte for byte.
func TestRegFileAsRegeditWritesIt(t *testing.T) {
	want, err := os.ReadFile("testdata/adapter.reg")
	if err != nil {
		t.Fatal(err)
	}
	changes, err := ParseRegFile(want)
	if err != nil {
		t.Fatal(err)
	}
	r := NewVolatile("test")
	if err := r.Apply(changes...); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := r.WriteRegFile(&got, path(t, `HKLM\SYSTEM\CurrentControlSet\Control\Class\{4D36E972-E325-11CE-BFC1-08002BE10318}\0010`),
		Regedit4); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

// TestRegFileRoundTrip: whatever a registry holds, its .reg file in either form makes the same registry.
func TestRegFileRoundTrip(t *testing.T) {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("aZ0\\\"';=[]-€ü𝄞\t\r\n ")), 0, 60, -1)
	name := rapid.StringOfN(rapid.RuneFrom([]rune("aZ0\"';=[]-€ü𝄞*")), 1, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		r := NewVolatile("before")
		format := RegFormat(rapid.IntRange(0, 1).Draw(t, "format"))
		for range rapid.IntRange(1, 10).Draw(t, "values") {
			v := Value{name.Draw(t, "name"), Type(rapid.IntRange(0, 12).Draw(t, "type")), rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t,
				"data")}
			if s := text.Draw(t, "text"); v.Type == SZ || v.Type == ExpandSZ || v.Type == MultiSZ {
				if format == Regedit4 || rapid.Bool().Draw(t, "text") { // bytes that are not text are for version 5 only
					v.Data = utf16Bytes(s, rapid.IntRange(0, 2).Draw(t, "zeros"))
				}
			}
			p := Path{ControlSet + `\Services`}.Child(name.Draw(t, "key"))
			if err := r.Set(p, v); err != nil {
				t.Fatal(err)
			}
		}
		var file bytes.Buffer
		if err := r.WriteRegFile(&file, Path{}, format); err != nil {
			t.Fatal(err)
		}
		changes, err := ParseRegFile(file.Bytes())
		if err != nil {
			t.Fatalf("%v:\n%s", err, file.String())
		}
		again := NewVolatile("after")
		if err := again.Apply(changes...); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(dump(r), dump(again)); d != "" {
			t.Fatalf("%s\n%s", d, file.String())
		}
	})
}

func FuzzRegFile(f *testing.F) {
	f.Add([]byte(headerUnicode + "\r\n[HKLM\\SYSTEM\\CurrentControlSet\\Services\\x]\r\n\"a\"=dword:1\r\n@=hex(7):61,00,\\\r\n  00,00 ; c\r\n"))
	f.Add([]byte("REGEDIT4\n[-HKLM\\SYSTEM\\CurrentControlSet\\Services\\x]\n"))
	f.Add(encoded(f, headerUnicode+"\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		changes, err := ParseRegFile(b)
		if err != nil {
			return
		}
		r := NewVolatile("first")
		if r.Apply(changes...) != nil {
			return
		}
		var file bytes.Buffer
		if err := r.WriteRegFile(&file, Path{}, Version5); err != nil {
			t.Fatal(err)
		}
		if changes, err = ParseRegFile(file.Bytes()); err != nil {
			t.Fatal(err)
		}
		again := NewVolatile("second")
		if err := again.Apply(changes...); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(dump(r), dump(again)); d != "" {
			t.Error("(-want +got):\n", d)
		}
	})
}

// expand returns a REG_EXPAND_SZ value.
func expand(name, s string) Value { return Value{name, ExpandSZ, utf16Bytes(s, 1)} }
