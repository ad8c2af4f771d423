package cmdlets

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/softvpi/softvpi/internal/powershell"
)

// moduleGUID identifies the module, as its manifest has to.
const moduleGUID = "7b0a3c52-6e1d-4f57-9a43-2f0c5d1e8b64"

// moduleHead is the part of the module that runs a command: it hands the parameters to softvpi ps as a line, and makes objects of the
// JSON that comes back.
const moduleHead = `# The commands of softvpi ps, for PowerShell. Written by: softvpi ps --module DIR
Set-StrictMode -Version 2

# The program; $env:SOFTVPI_PROGRAM names another.
function Get-SoftVPIProgram {
    if ($env:SOFTVPI_PROGRAM) { $env:SOFTVPI_PROGRAM } else { 'softvpi' }
}

# A value as a script writes it. Quotes of all kinds that end a string in single quotes are doubled.
function ConvertTo-SoftVPIWord($Value) {
    if ($null -eq $Value) { return '$null' }
    if ($Value -is [switch] -or $Value -is [bool]) { if ($Value) { return '$true' } else { return '$false' } }
    if ($Value -is [array]) { return (($Value | ForEach-Object { ConvertTo-SoftVPIWord $_ }) -join ',') }
    return "'" + ([string]$Value -replace "(['\u2018\u2019\u201a\u201b])", '$1$1') + "'"
}

function Invoke-SoftVPI([string]$Name, $Bound) {
    $common = [System.Management.Automation.PSCmdlet]::CommonParameters + [System.Management.Automation.PSCmdlet]::OptionalCommonParameters
    $words = @($Name)
    foreach ($key in $Bound.Keys) {
        if ($common -notcontains $key) { $words += "-${key}:" + (ConvertTo-SoftVPIWord $Bound[$key]) }
    }
    $text = $words -join ' ' | & (Get-SoftVPIProgram) ps --json -
    if ($LASTEXITCODE -ne 0) { Write-Error "$Name failed with status $LASTEXITCODE" }
    if ($text) { $text -join [Environment]::NewLine | ConvertFrom-Json }
}
`

// WriteModule writes SoftVPI.psd1 and SoftVPI.psm1 into a directory, which exists: a module that gives these commands to a real
// PowerShell, each as a function that runs the command by softvpi ps.
func (s *Set) WriteModule(dir string) error {
	var b strings.Builder
	b.WriteString(moduleHead)
	var names []string
	for _, c := range s.list {
		if !ofModule(c) {
			continue
		}
		names = append(names, "'"+c.Name+"'")
		writeFunction(&b, c)
	}
	manifest := fmt.Sprintf(`# The commands of softvpi ps, for PowerShell. Written by: softvpi ps --module DIR
@{
    RootModule = 'SoftVPI.psm1'
    ModuleVersion = '1.0'
    GUID = '%s'
    Description = 'Commands for the network adapters of a SoftVPI driver.'
    PowerShellVersion = '5.1'
    FunctionsToExport = @(
        %s
    )
    CmdletsToExport = @()
    VariablesToExport = @()
    AliasesToExport = @()
}
`, moduleGUID, strings.Join(names, ",\n        "))
	if err := os.WriteFile(filepath.Join(dir, "SoftVPI.psd1"), []byte(manifest), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "SoftVPI.psm1"), []byte(b.String()), 0o644)
}

// ofModule reports whether a command is in the module: those of PowerShell itself are not.
func ofModule(c *powershell.Cmdlet) bool {
	return c.Module != "Programs" && c.Module != "ServerManager" && !strings.HasPrefix(c.Module, "Microsoft.PowerShell.")
}

// moduleTypes are the types of parameters.
var moduleTypes = map[powershell.Kind]string{powershell.String: "string", powershell.Strings: "string[]", powershell.Number: "long",
	powershell.Numbers: "long[]", powershell.Bool: "object", powershell.Switch: "switch", powershell.Any: "object", powershell.Code: "scriptblock"}

func writeFunction(b *strings.Builder, c *powershell.Cmdlet) {
	fmt.Fprintf(b, "\n# %s\nfunction %s {\n", strings.TrimSpace(c.Help+" "+c.Note), c.Name)
	process := fmt.Sprintf("Invoke-SoftVPI '%s' $PSBoundParameters", c.Name)
	if c.Changes {
		b.WriteString("    [CmdletBinding(SupportsShouldProcess)]\n")
		process = fmt.Sprintf("if ($PSCmdlet.ShouldProcess('SoftVPI', '%s')) { %s }", c.Name, process)
	} else {
		b.WriteString("    [CmdletBinding()]\n")
	}
	b.WriteString("    param(")
	for i, p := range c.Params {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(b, "\n        %s[%s]$%s", attributes(p), moduleTypes[p.Kind], p.Name)
	}
	fmt.Fprintf(b, "\n    )\n    process { %s }\n}\n", process)
}

// attributes are those of a parameter. Sets are left to softvpi ps, which says which parameters exclude each other.
func attributes(p powershell.Param) string {
	var words []string
	if p.Mandatory {
		words = append(words, "Mandatory")
	}
	if p.Position > 0 {
		words = append(words, fmt.Sprintf("Position = %d", p.Position-1))
	}
	if p.Piped {
		words = append(words, "ValueFromPipelineByPropertyName")
	}
	out := ""
	if len(words) > 0 {
		out = "[Parameter(" + strings.Join(words, ", ") + ")]"
	}
	if len(p.Aliases) > 0 {
		out += "[Alias('" + strings.Join(p.Aliases, "', '") + "')]"
	}
	return out
}
