package config

import (
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/budget"
)

// TestLimits: sizes are numbers or texts with a unit, on the command line and in the file; what is not given follows
// from what is, or from what the driver may have; a smaller scope never has more than a larger one.
func TestLimits(t *testing.T) {
	const mib = 1 << 20
	machine := budget.Share(1024 * mib)
	for _, c := range []struct {
		text, json string
		want       budget.Limits
	}{
		{"", `{}`, budget.Limits{Program: 512 * mib, User: 768 * mib, Total: 1024 * mib}},
		{"memory=100MiB", `{"limits":{"memory":104857600}}`, budget.Limits{Program: 50 * mib, User: 75 * mib, Total: 100 * mib}},
		{"memory=1GiB,memory_per_user=256MiB", `{"limits":{"memory":"1GiB","memory_per_user":"262144KiB"}}`,
			budget.Limits{Program: 256 * mib, User: 256 * mib, Total: 1024 * mib}},
		{"memory_per_program=8388608", `{"limits":{"memory_per_program":"8MiB"}}`, budget.Limits{Program: 8 * mib, User: 768 * mib,
			Total: 1024 * mib}},
		{"memory_per_program=1000MiB", `{"limits":{"memory_per_program":"1000MiB"}}`, budget.Limits{Program: 1000 * mib, User: 1000 * mib,
			Total: 1024 * mib}},
		{"memory_per_program=2TiB", `{"limits":{"memory_per_program":"2TiB"}}`, budget.Limits{Program: 1024 * mib, User: 1024 * mib,
			Total: 1024 * mib}},
		{"memory=16GiB,memory_per_user=16GiB,memory_per_program=16GiB,descriptors_per_program=64",
			`{"limits":{"memory":"16GiB","memory_per_user":"16GiB","memory_per_program":"16GiB","descriptors_per_program":64}}`,
			budget.Limits{Program: 16384 * mib, User: 16384 * mib, Total: 16384 * mib}},
	} {
		file, err := decode(strings.NewReader(c.json))
		if err != nil {
			t.Fatalf("%s: %v", c.json, err)
		}
		if file, err = file.Complete(); err != nil {
			t.Fatalf("%s: %v", c.json, err)
		}
		if got := file.ProgramMemory(machine); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.json, got, c.want)
		}
		if c.text == "" {
			continue
		}
		l, err := ParseLimits(c.text)
		if err != nil || l != *file.Limits {
			t.Errorf("%s: %+v: %v; the file has %+v", c.text, l, err, file.Limits)
		}
	}
}

// TestWrongLimits: a wrong limit is refused with the name of the field and what is allowed.
func TestWrongLimits(t *testing.T) {
	for text, want := range map[string]string{
		"": "--limits", "memory": "--limits", "memory=": "--limits", "memory=-1": "--limits", "memory=1e9": "--limits",
		"memory=1GB": "--limits",
		"memory=1Gi": "--limits", "memory=99999999TiB": "--limits", "memory=1GiB,memory=1GiB": "each once",
		"cpu=3":                              "memory_per_program=SIZE",
		"descriptors_per_program=4294967296": "--limits", "memory=1GiB,": "--limits", "memory=GiB": "--limits", "memory=1BiG": "--limits",
	} {
		if _, err := ParseLimits(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`{"limits":{"memory":"much"}}`:                                      "a size of limits",
		`{"limits":{"memory":-1}}`:                                          "bytes, or a number with KiB",
		`{"limits":{"memory":1.5}}`:                                         "a size of limits",
		`{"limits":{"memory":{}}}`:                                          "a size of limits",
		`{"limits":{"memory":"1MiB"}}`:                                      "limits.memory is 1MiB",
		`{"limits":{"memory":"1GiB","memory_per_user":"2GiB"}}`:             "at most 1GiB, which is limits.memory",
		`{"limits":{"memory_per_user":"1GiB","memory_per_program":"2GiB"}}`: "at most 1GiB, which is limits.memory_per_user",
		`{"limits":{"memory":"1GiB","memory_per_program":"2GiB"}}`:          "at most 1GiB, which is limits.memory",
		`{"limits":{"descriptors_per_program":3}}`:                          "limits.descriptors_per_program is 3; allowed: 4 to 1048576",
		`{"limits":{"descriptors_per_program":"many"}}`:                     "descriptors_per_program",
		`{"limits":{"files":3}}`:                                            "unknown field",
		`{"limits":3}`:                                                      "limits",
	} {
		c, err := decode(strings.NewReader(text))
		if err == nil {
			_, err = c.Complete()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
