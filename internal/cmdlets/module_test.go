package cmdlets

import (
	"encoding/xml"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/powershell"
)

// notInModule are commands that a real PowerShell has itself, and that say here what is in Windows' place.
var notInModule = strings.Fields(`netstat Get-Counter Get-WinEvent Install-WindowsFeature Get-WindowsFeature Set-ExecutionPolicy Set-Service
	New-Service Start-Service Stop-Service Restart-Service Restart-Computer Get-Help Get-Command`)

// written writes the module, and returns its manifest and its functions.
func written(t *testing.T) (manifest, module string) {
	t.Helper()
	dir := t.TempDir()
	if err := New(nil, nil).WriteModule(dir); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	return read("SoftVPI.psd1"), read("SoftVPI.psm1")
}

// TestModule: the module exports the commands of softvpi ps, all of them but those that PowerShell has itself, and nothing else; what it
// exports is a function there, once. No PowerShell is needed: the parser of scripts reads it. TestModule_PowerShell runs it in a real one.
func TestModule(t *testing.T) {
	manifest, module := written(t)
	var want []string
	for _, c := range New(nil, nil).All() {
		if !slices.Contains(notInModule, c.Name) {
			want = append(want, c.Name)
		}
	}
	_, list, _ := strings.Cut(manifest, "FunctionsToExport = @(")
	list, _, _ = strings.Cut(list, ")")
	var exported []string
	for _, m := range regexp.MustCompile(`'([^']+)'`).FindAllStringSubmatch(list, -1) {
		exported = append(exported, m[1])
	}
	if !slices.Equal(exported, want) {
		t.Errorf("exported are\n%q, want\n%q", exported, want)
	}
	functions := regexp.MustCompile(`(?m)^function ([\w-]+)`).FindAllStringSubmatch(module, -1)
	own := []string{"Get-SoftVPIProgram", "ConvertTo-SoftVPIWord", "Start-SoftVPI", "Invoke-SoftVPI"}
	var made []string
	for _, m := range functions {
		if !slices.Contains(own, m[1]) {
			made = append(made, m[1])
		}
	}
	if !slices.Equal(made, want) {
		t.Errorf("functions are\n%q, want\n%q", made, want)
	}
	if _, err := powershell.Parse(module); err != nil {
		t.Errorf("the module is no script: %v", err)
	}
	// Windows PowerShell takes a file without a mark for one of its code page.
	if i := strings.IndexFunc(manifest+module+moduleFormats(), func(r rune) bool { return r > 0x7e }); i >= 0 {
		t.Errorf("the module is not of ASCII alone: byte %d", i)
	}
	if n := strings.Count(module, ".SYNOPSIS"); n != len(want) || strings.Count(module, "#>") != n {
		t.Errorf("%d of %d functions have help", n, len(want))
	}
}

// TestModule_Parameters: each function has the parameters of its command, in its order, with type, aliases, position, and whether it is
// mandatory or comes through the pipe; -WhatIf and -Confirm are there if the command changes something.
func TestModule_Parameters(t *testing.T) {
	_, module := written(t)
	for _, c := range New(nil, nil).All() {
		_, body, ok := strings.Cut(module, "\nfunction "+c.Name+" {\n")
		if !ok {
			continue // TestModule says which
		}
		body, _, _ = strings.Cut(body, "\nfunction ")
		if changes := strings.Contains(body, "[CmdletBinding(SupportsShouldProcess)]"); changes != c.Changes {
			t.Errorf("%s: SupportsShouldProcess is %v, want %v", c.Name, changes, c.Changes)
		}
		_, body, _ = strings.Cut(body, "param(")
		body, _, _ = strings.Cut(body, "\n    )")
		var have []string
		for l := range strings.Lines(body) {
			if l = strings.TrimSuffix(strings.TrimSpace(l), ","); l != "" {
				have = append(have, l)
			}
		}
		if len(have) != len(c.Params) {
			t.Errorf("%s has %d parameters, want %d", c.Name, len(have), len(c.Params))
			continue
		}
		for i, p := range c.Params {
			checkParameter(t, c.Name, have[i], p)
		}
	}
}

// checkParameter compares a parameter of a function as the module declares it with that of the command.
func checkParameter(t *testing.T, command, line string, p powershell.Param) {
	t.Helper()
	types := map[powershell.Kind]string{powershell.Strings: "string[]", powershell.Number: "long", powershell.Numbers: "long[]",
		powershell.Switch: "switch", powershell.String: "string", powershell.Code: "scriptblock"}
	kind, ok := types[p.Kind]
	if !ok { // what is no text stays what it is: 1 and $true are both a truth
		kind = "object"
	}
	if !strings.HasSuffix(line, "["+kind+"]$"+p.Name) {
		t.Errorf("%s: %s, want [%s]$%s", command, line, kind, p.Name)
	}
	position := regexp.MustCompile(`Position = (\d+)`).FindStringSubmatch(line)
	if (position != nil) != (p.Position > 0) || position != nil && position[1] != fmt.Sprint(p.Position-1) {
		t.Errorf("%s: %s, want position %d", command, line, p.Position)
	}
	piped := ""
	switch {
	case p.Piped && p.Kind == powershell.Any: // the object itself
		piped = "ValueFromPipeline"
	case p.Piped:
		piped = "ValueFromPipelineByPropertyName"
	}
	if strings.Contains(line, "Mandatory") != p.Mandatory || regexp.MustCompile(`ValueFromPipeline\w*`).FindString(line) != piped {
		t.Errorf("%s: %s, want mandatory %v, from the pipe %q", command, line, p.Mandatory, piped)
	}
	for _, a := range p.Aliases {
		if !strings.Contains(line, "'"+a+"'") {
			t.Errorf("%s: %s, want the alias %s", command, line, a)
		}
	}
}

// TestModule_Lines: lines as the module writes them, with every value in quotes, are bound as others.
func TestModule_Lines(t *testing.T) {
	f := newFake(t, "Ethernet 4")
	_, said, failures := play(t, f, `New-NetQosPolicy -Name:'it''s' -NetDirectPortMatchCondition:'445' -PriorityValue8021Action:'3'
Enable-NetQosFlowControl -Priority:@('3','5')
New-NetQosTrafficClass -Name:'x' -Priority:'4' -Algorithm:'Strict'
Set-NetAdapterQos -Name:'Ethernet 4' -Enabled:$true -NoRestart:$true`)
	if failures > 0 || f.words["Ethernet 4"]["policy:it's"] != "netdirect=445,priority=3" || f.words["Ethernet 4"]["pfc"] != "3,5" ||
		f.words["Ethernet 4"]["prio-tc"] != "4:1" {
		t.Errorf("%d %s: %v", failures, said, f.did)
	}
}

// TestModule_Objects: an object of a command is bound again as the module writes it.
func TestModule_Objects(t *testing.T) {
	f := newFake(t, "Ethernet 4")
	_, said, failures := play(t, f, switched+ported+`
Set-VMNetworkAdapter -VMNetworkAdapter:([pscustomobject]@{'Name'='Network Adapter';'Function'='vm1'}) -VmqWeight:'0'`)
	if failures > 0 || !strings.Contains(strings.Join(f.did, "\n"), "vmq") {
		t.Errorf("%d %s: %v", failures, said, f.did)
	}
}

// TestModule_Formats: the file of views is XML, and objects of each type that a command of the module makes with properties to show are
// shown by these, in their order.
func TestModule_Formats(t *testing.T) {
	for d := xml.NewDecoder(strings.NewReader(moduleFormats())); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	have := map[string]string{}
	for _, v := range views() {
		have[v.kind] = strings.Join(v.names, " ")
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || slices.Contains([]string{"counter.go", "windows.go", "help.go"}, file) { // not in the module
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "NewObject" {
				return true
			}
			var words []string
			for _, a := range call.Args {
				literal, ok := a.(*ast.BasicLit)
				if !ok { // those of SMB, which have two sides
					return true
				}
				words = append(words, strings.Trim(literal.Value, `"`))
			}
			if want := strings.Join(words[1:], " "); words[0] != "EventLogRecord" && have[words[0]] != want {
				t.Errorf("%s: %s is shown by %q, want %q", file, words[0], have[words[0]], want)
			}
			return true
		})
	}
}
