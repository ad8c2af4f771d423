package cmdlets

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestModule: the module exports each command that it has a function for, with its parameters, and its brackets match. No PowerShell
// is needed, so none has run it.
func TestModule(t *testing.T) {
	dir := t.TempDir()
	s := New(nil, nil)
	if err := s.WriteModule(dir); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	manifest, module := read("SoftVPI.psd1"), read("SoftVPI.psm1")
	exported := regexp.MustCompile(`(?m)^        '([\w-]+)',?$`).FindAllStringSubmatch(manifest, -1)
	if len(exported) < 90 {
		t.Errorf("%d commands are exported", len(exported))
	}
	for _, m := range exported {
		_, body, ok := strings.Cut(module, "\nfunction "+m[1]+" {")
		if !ok {
			t.Errorf("there is no function %s", m[1])
			continue
		}
		body, _, _ = strings.Cut(body, "\nfunction ")
		for _, p := range s.Cmdlet(m[1]).Params {
			if !strings.Contains(body, "]$"+p.Name) {
				t.Errorf("%s has no -%s", m[1], p.Name)
			}
		}
	}
	for _, text := range []string{manifest, module} {
		for _, pair := range []string{"{}", "()"} {
			if open, closed := strings.Count(text, pair[:1]), strings.Count(text, pair[1:]); open != closed {
				t.Errorf("%d %q and %d %q", open, pair[0], closed, pair[1])
			}
		}
	}
}

// TestModule_Lines: lines as the module writes them, with every value in quotes, are bound as others.
func TestModule_Lines(t *testing.T) {
	f := newFake(t, "Ethernet 4")
	_, said, failures := play(t, f, `New-NetQosPolicy -Name:'it''s' -NetDirectPortMatchCondition:'445' -PriorityValue8021Action:'3'
Enable-NetQosFlowControl -Priority:'3','5'
New-NetQosTrafficClass -Name:'x' -Priority:'4' -Algorithm:'Strict'
Set-NetAdapterQos -Name:'Ethernet 4' -Enabled:$true -NoRestart:$true`)
	if failures > 0 || f.words["Ethernet 4"]["policy:it's"] != "netdirect=445,priority=3" || f.words["Ethernet 4"]["pfc"] != "3,5" ||
		f.words["Ethernet 4"]["prio-tc"] != "4:1" {
		t.Errorf("%d %s: %v", failures, said, f.did)
	}
}
