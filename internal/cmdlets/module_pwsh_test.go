//go:build !windows

package cmdlets

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/powershell"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// asProgram in the environment has the test's program be softvpi ps --records, with a driver in memory.
const asProgram = "SOFTVPI_TEST_IS_PS"

// TestProgram is no test, but the program that TestModule_PowerShell's module runs.
func TestProgram(t *testing.T) {
	if os.Getenv(asProgram) == "" {
		return
	}
	source, err := io.ReadAll(os.Stdin)
	if err != nil {
		t.Fatal(err)
	}
	s, err := powershell.Parse(string(source))
	if err != nil {
		t.Fatal(err)
	}
	set := New(newFake(t, "Ethernet 4", "é“5”"), nil)
	in := powershell.New(powershell.Config{Host: &room{Set: set}, Out: os.Stdout, Err: os.Stderr, Records: true, Suggestions: set.Suggest})
	if err := in.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	os.Exit(min(in.Failures(), 1))
}

// realScript is run in a real PowerShell; each line prints one line, or more.
const realScript = `$ErrorActionPreference = 'Continue'
Import-Module $args[0]
(Get-Command -Module SoftVPI).Count -gt 100
(Get-NetAdapter | Where-Object Status -eq Up | ForEach-Object Name) -join '|'
Get-NetAdapter | Disable-NetAdapterRdma -WhatIf
Get-NetAdapter none -ErrorAction SilentlyContinue -ErrorVariable e; "$?: $e"
try { Get-NetAdapter none -ErrorAction Stop } catch { "caught $($_.FullyQualifiedErrorId)" }
(New-NetQosPolicy 'it''s ☃' -NetDirectPort 445 -PriorityValue 3 | ForEach-Object Name)
((Get-NetAdapter | Out-String -Width 120) -split '\r?\n' | Where-Object { $_ -match 'ifIndex' }) -replace ' +', ' '
(Get-Help Get-NetAdapter).Synopsis
$env:SOFTVPI_PROGRAM = 'no-such-program'
try { Get-NetAdapter } catch { "no program: $($_.CategoryInfo.Category)" }
"$LASTEXITCODE."
`

const realOutput = `True
Ethernet 4|é“5”
What if: Performing the operation "Disable-NetAdapterRdma" on target "Ethernet 4".
What if: Performing the operation "Disable-NetAdapterRdma" on target "é“5”".
False: -Name is "none"; allowed: "Ethernet 4", "é“5”"
caught Microsoft.Management.Infrastructure.CimException,Get-NetAdapter
it's ☃
Name InterfaceDescription ifIndex Status MacAddress LinkSpeed
List the adapters.
no program: ObjectNotFound
.
`

// TestModule_PowerShell: a real PowerShell imports the module, and its pipes, errors, -WhatIf and tables are as users have them.
func TestModule_PowerShell(t *testing.T) {
	systemtest.Mark(t)
	shell, err := exec.LookPath("pwsh")
	if err != nil {
		t.Skip("there is no pwsh on the path, so no real PowerShell reads the module")
	}
	dir := t.TempDir()
	if err := New(nil, nil).WriteModule(dir); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The module runs PROGRAM ps --records -, which would be arguments of a test: a script leaves them out.
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec '"+self+"' -test.run='^TestProgram$'\n"), 0o700); err != nil { //nolint:gosec // it runs
		t.Fatal(err)
	}
	script := filepath.Join(dir, "script.ps1")
	if err := os.WriteFile(script, []byte("\ufeff"+realScript), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), shell, "-NoProfile", "-NonInteractive", "-File", script, filepath.Join(dir, "SoftVPI.psd1"))
	c.Env = append(os.Environ(), asProgram+"=1", "SOFTVPI_PROGRAM="+program)
	out, err := c.CombinedOutput()
	if got := strings.ReplaceAll(string(out), "\r\n", "\n"); err != nil || got != realOutput {
		t.Errorf("%v: it says\n%s\nwant\n%s", err, got, realOutput)
	}
}
