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

// ModuleFiles are the files of the module.
var ModuleFiles = []string{"SoftVPI.psd1", "SoftVPI.psm1", "SoftVPI.format.ps1xml"}

// moduleHead is the part of the module that runs a command: it hands the parameters to softvpi ps as a line, and makes objects and
// messages of the lines of JSON that come back.
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
    if ($Value -is [System.Management.Automation.PSCustomObject]) {
        $pairs = foreach ($p in $Value.PSObject.Properties) { (ConvertTo-SoftVPIWord $p.Name) + '=' + (ConvertTo-SoftVPIWord $p.Value) }
        return '([pscustomobject]@{' + ($pairs -join ';') + '})'
    }
    if ($Value -is [System.Collections.IEnumerable] -and $Value -isnot [string]) {
        $words = foreach ($one in $Value) { ConvertTo-SoftVPIWord $one }
        return '@(' + ($words -join ',') + ')'
    }
    return "'" + ([string]$Value -replace "(['\u2018\u2019\u201a\u201b])", '$1$1') + "'"
}

# Runs the program, and returns what it prints: its answers as text, the rest as error records. Preferences of the user are not for it, and
# it reads UTF-8.
function Start-SoftVPI([string]$Line) {
    $ErrorActionPreference = 'Continue'
    $PSNativeCommandUseErrorActionPreference = $false
    $OutputEncoding = New-Object System.Text.UTF8Encoding $false
    $Line | & (Get-SoftVPIProgram) ps --records - 2>&1
}

# Runs a command for a function of this module.
function Invoke-SoftVPI($Caller, [string]$Name, $Bound, [bool]$Changes) {
    $common = [System.Management.Automation.PSCmdlet]::CommonParameters + [System.Management.Automation.PSCmdlet]::OptionalCommonParameters
    $words = @($Name)
    $target = @()
    foreach ($key in $Bound.Keys) {
        if ($common -contains $key) { continue }
        $words += "-${key}:" + (ConvertTo-SoftVPIWord $Bound[$key])
        $target += "$key $($Bound[$key] -join ', ')"
    }
    if ($Changes -and $WhatIfPreference) {
        $words += '-WhatIf'
    } elseif ($Changes -and -not $Caller.ShouldProcess($(if ($target) { $target -join ', ' } else { 'SoftVPI' }), $Name)) {
        return
    } elseif ($VerbosePreference -ne 'SilentlyContinue') {
        $words += '-Verbose'
    }
    $before = Get-Variable LASTEXITCODE -Scope Global -ValueOnly -ErrorAction Ignore
    try {
        $lines = @(Start-SoftVPI ($words -join ' '))
        $status = $LASTEXITCODE
    } catch {
        $Caller.ThrowTerminatingError((New-Object System.Management.Automation.ErrorRecord $_.Exception, 'SoftVPIProgram', 'ObjectNotFound', $Name))
    } finally {
        $global:LASTEXITCODE = $before
    }
    $said = @()
    $failed = $false
    foreach ($line in $lines) {
        if ($line -is [System.Management.Automation.ErrorRecord]) {
            $said += "$line"
            continue
        }
        $r = ConvertFrom-Json $line
        switch ($r.record) {
            'output' {
                if ($r.type) { $r.value.PSObject.TypeNames.Insert(0, "SoftVPI.$($r.type)") }
                $r.value
            }
            'warning' { Write-Warning $r.value }
            'verbose' { Write-Verbose $r.value }
            'whatif' { $Caller.Host.UI.WriteLine("What if: $($r.value)") }
            'error' {
                $failed = $true
                try { $x = New-Object $r.exception $r.value } catch { $x = New-Object System.InvalidOperationException $r.value }
                $Caller.WriteError((New-Object System.Management.Automation.ErrorRecord $x, $r.exception, $r.category, $Name))
            }
        }
    }
    if ($status -ne 0 -and -not $failed) {
        $x = New-Object System.InvalidOperationException $(if ($said) { $said -join ' ' } else { "the program has failed with status $status" })
        $Caller.WriteError((New-Object System.Management.Automation.ErrorRecord $x, 'SoftVPIProgram', 'NotSpecified', $Name))
    }
}
`

// WriteModule writes ModuleFiles into a directory, which exists: a module that gives these commands to a real PowerShell, each as a
// function that runs the command by softvpi ps.
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
    FormatsToProcess = @('SoftVPI.format.ps1xml')
    FunctionsToExport = @(
        %s
    )
    CmdletsToExport = @()
    VariablesToExport = @()
    AliasesToExport = @()
}
`, moduleGUID, strings.Join(names, ",\n        "))
	for i, text := range []string{manifest, b.String(), moduleFormats()} {
		if err := os.WriteFile(filepath.Join(dir, ModuleFiles[i]), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// ofModule reports whether a command is in the module: those of PowerShell itself are not.
func ofModule(c *powershell.Cmdlet) bool {
	return c.Module != "Programs" && c.Module != "ServerManager" && !strings.HasPrefix(c.Module, "Microsoft.PowerShell.")
}

// moduleTypes are the types of parameters.
var moduleTypes = map[powershell.Kind]string{powershell.String: "string", powershell.Strings: "string[]", powershell.Number: "long",
	powershell.Numbers: "long[]", powershell.Bool: "object", powershell.Switch: "switch", powershell.Any: "object", powershell.Code: "scriptblock"}

func writeFunction(b *strings.Builder, c *powershell.Cmdlet) {
	fmt.Fprintf(b, "\nfunction %s {\n", c.Name)
	writeHelp(b, c)
	if c.Changes {
		b.WriteString("    [CmdletBinding(SupportsShouldProcess)]\n")
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
	fmt.Fprintf(b, "\n    )\n    process { Invoke-SoftVPI $PSCmdlet '%s' $PSBoundParameters $%t }\n}\n", c.Name, c.Changes)
}

// writeHelp writes what Get-Help shows (about_Comment_Based_Help).
func writeHelp(b *strings.Builder, c *powershell.Cmdlet) {
	fmt.Fprintf(b, "    <#\n    .SYNOPSIS\n    %s\n", c.Help)
	if c.Note != "" {
		fmt.Fprintf(b, "    .DESCRIPTION\n    %s\n", c.Note)
	}
	for _, p := range c.Params {
		if p.Help != "" {
			fmt.Fprintf(b, "    .PARAMETER %s\n    %s\n", p.Name, p.Help)
		}
	}
	b.WriteString("    #>\n")
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
	switch {
	case p.Piped && p.Kind == powershell.Any: // the object itself
		words = append(words, "ValueFromPipeline")
	case p.Piped:
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
