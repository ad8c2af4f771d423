# Removes what install.ps1 has installed. The configuration, the registry and logs stay, unless -Purge is given.
#
#     powershell -ExecutionPolicy Bypass -File uninstall.ps1 [-Purge] [-Directory DIR] [-Data DIR]
#
# The status is 0, or 1603 if something stays; then the next run goes on.
[CmdletBinding()]
param(
    [string]$Directory = "$env:ProgramFiles\SoftVPI",
    [string]$Data = "$env:ProgramData\SoftVPI",
    [string]$Modules = "$env:ProgramFiles\WindowsPowerShell\Modules",
    [switch]$Purge
)
$ErrorActionPreference = 'Stop'
$environment = 'HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment'
$source = 'HKLM\SYSTEM\CurrentControlSet\Services\EventLog\Application\SoftVPI'

function Invoke-Program([string]$Program, [string[]]$Words) {
    & $Program @Words | Out-Null
    if ($LASTEXITCODE -ne 0) { throw "$Program $($Words[0]) has failed with status $LASTEXITCODE" }
}

function Get-Setting([string]$Name) {
    & reg.exe query $environment | Where-Object { $_ -match "^\s*$Name\s+REG_" } | ForEach-Object { $_ -replace "^\s*$Name\s+REG_\w+\s+", '' }
}

function Remove-FromPath([string]$Entry) {
    $now = Get-Setting Path
    if (($now -split ';') -notcontains $Entry -or $now -match '"') { return } # install.ps1 changes none with quotation marks either
    $rest = ($now -split ';' | Where-Object { $_ -and $_ -ne $Entry }) -join ';'
    Invoke-Program reg.exe @('add', $environment, '/v', 'Path', '/t', 'REG_EXPAND_SZ', '/d', "$rest;", '/f')
}

$administrator = $false # fltmc.exe is refused to others
try { & fltmc.exe | Out-Null; $administrator = $LASTEXITCODE -eq 0 } catch { $administrator = $false }
if (-not $administrator) {
    Write-Warning 'return code 1603: Fatal error during installation: only an administrator can remove a service'
    exit 1603
}
try {
    if (Get-Service SoftVPI -ErrorAction SilentlyContinue) {
        Stop-Service SoftVPI
        Invoke-Program sc.exe @('delete', 'SoftVPI')
    }
    if (Test-Path "Registry::$source") { Invoke-Program reg.exe @('delete', $source, '/f') }
    if ((Get-Setting SOFTVPI_SOCKET) -eq "$Data\driver.sock") {
        Invoke-Program reg.exe @('delete', $environment, '/v', 'SOFTVPI_SOCKET', '/f')
    }
    Remove-FromPath "$Directory\tools"
    $all = @("$Modules\SoftVPI", "$Directory.new", "$Directory.old", $Directory)
    if ($Purge) { $all += $Data }
    foreach ($path in $all) {
        if (Test-Path $path) { Remove-Item $path -Recurse -Force }
    }
} catch {
    Write-Warning "return code 1603: Fatal error during installation: $_"
    exit 1603
}
Write-Output 'SoftVPI is removed'
if (-not $Purge) { Write-Output "its configuration and logs stay in $Data" }
