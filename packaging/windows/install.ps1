# Installs or upgrades SoftVPI: the programs in a directory of their own, with a link for each tool, the driver as a service, the source of
# its events, and the PowerShell module. It wants an administrator, and Windows 10 1803, Windows Server 2019 or later, which have unix sockets.
#
#     powershell -ExecutionPolicy Bypass -File install.ps1 [-Directory DIR] [-Data DIR] [-StartupType Manual] [-NoStart]
#
# The configuration (driver.json), the registry and logs are in the directory of data, and stay as they are. If something fails, the programs
# that were installed before are there again, and the next run completes what is missing, as it does if this one is ended in the middle.
# The status is 0, 1603 (it has failed) or 1633 (not for this system).
[CmdletBinding()]
param(
    [string]$Directory = "$env:ProgramFiles\SoftVPI",
    [string]$Data = "$env:ProgramData\SoftVPI",
    [string]$Modules = "$env:ProgramFiles\WindowsPowerShell\Modules",
    [ValidateSet('Automatic', 'Manual', 'Disabled')][string]$StartupType = 'Automatic',
    [switch]$NoStart,
    [string]$From = $PSScriptRoot
)
$ErrorActionPreference = 'Stop'
$environment = 'HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment'
$source = 'HKLM\SYSTEM\CurrentControlSet\Services\EventLog\Application\SoftVPI'

# Programs of Windows say by their status alone that they have failed.
function Invoke-Program([string]$Program, [string[]]$Words) {
    & $Program @Words | Out-Null
    if ($LASTEXITCODE -ne 0) { throw "$Program $($Words[0]) has failed with status $LASTEXITCODE" }
}

# A run that was ended in the middle leaves the old programs beside their place: they go back.
function Restore-Program {
    if (Test-Path "$Directory.old") {
        if (Test-Path $Directory) { Remove-Item $Directory -Recurse -Force }
        Move-Item "$Directory.old" $Directory
    }
    if (Test-Path "$Directory.new") { Remove-Item "$Directory.new" -Recurse -Force }
}

# Only the directory's own links are in it, so that it can be put in the path. A value that ends with ; does not end with a backslash,
# which reg.exe would take for one that quotes.
function Add-ToPath([string]$Entry) {
    $now = & reg.exe query $environment /v Path | Where-Object { $_ -match 'REG_' } | ForEach-Object { $_ -replace '^\s*Path\s+REG_\w+\s+', '' }
    if (-not $now) { throw 'the path of the system cannot be read' }
    if (($now -split ';') -contains $Entry) { return }
    if ($now -match '"') { # reg.exe would not get them from every PowerShell
        Write-Warning "the path of the system has quotation marks, and stays as it is; add $Entry to it"
        return
    }
    Invoke-Program reg.exe @('add', $environment, '/v', 'Path', '/t', 'REG_EXPAND_SZ', '/d', "$($now.TrimEnd(';'));$Entry;", '/f')
}

function Register-Driver([string]$Binary) {
    if (-not (Get-Service SoftVPI -ErrorAction SilentlyContinue)) {
        New-Service -Name SoftVPI -BinaryPathName $Binary -DisplayName SoftVPI -StartupType $StartupType `
            -Description 'Software VPI adapters: RDMA and Ethernet without a card.' | Out-Null
    }
    # An account that has no rights but its own, and no password.
    $is = Get-CimInstance Win32_Service -Filter "Name='SoftVPI'" |
        Invoke-CimMethod -MethodName Change -Arguments @{ PathName = $Binary; StartName = 'NT AUTHORITY\LocalService'; StartPassword = '' }
    if ($is.ReturnValue -ne 0) { throw "the service cannot be changed: Win32_Service.Change returns $($is.ReturnValue)" }
    Set-Service -Name SoftVPI -StartupType $StartupType
    # A driver that dies is started again; one that ends by itself, as with a wrong configuration, is not.
    Invoke-Program sc.exe @('failure', 'SoftVPI', 'reset=', '86400', 'actions=', 'restart/5000/restart/30000/restart/60000')
}

function Register-Source {
    Invoke-Program reg.exe @('add', $source, '/v', 'EventMessageFile', '/t', 'REG_EXPAND_SZ', '/d', '%SystemRoot%\System32\EventCreate.exe', '/f')
    Invoke-Program reg.exe @('add', $source, '/v', 'TypesSupported', '/t', 'REG_DWORD', '/d', '7', '/f')
}

# Whoever can write there is the driver's master: administrators, the system and the account of the service (S-1-5-19).
function Initialize-Data {
    if (-not (Test-Path $Data)) { New-Item $Data -ItemType Directory | Out-Null }
    Invoke-Program icacls.exe @($Data, '/inheritance:r', '/grant:r', '*S-1-5-32-544:(OI)(CI)F', '*S-1-5-18:(OI)(CI)F', '*S-1-5-19:(OI)(CI)M')
    if (-not (Test-Path "$Data\driver.json")) { Set-Content "$Data\driver.json" -Value '{}' -Encoding ASCII }
}

if (-not (Test-Path "$From\softvpi.exe")) {
    Write-Warning "return code 1603: Fatal error during installation: there is no softvpi.exe in $From"
    exit 1603
}
$administrator = $false # fltmc.exe is refused to others
try { & fltmc.exe | Out-Null; $administrator = $LASTEXITCODE -eq 0 } catch { $administrator = $false }
if (-not $administrator) {
    Write-Warning 'return code 1603: Fatal error during installation: only an administrator can install a service'
    exit 1603
}
$version = ''
try { $version = & "$From\softvpi.exe" version } catch { $version = '' }
if (-not $version) {
    Write-Warning 'return code 1633: The installation package is not supported on this platform.'
    exit 1633
}

$stopped = $false
try {
    Restore-Program
    if (Get-Service SoftVPI -ErrorAction SilentlyContinue | Where-Object { $_.Status -eq 'Running' }) {
        Stop-Service SoftVPI
        $stopped = $true
    }
    Copy-Item $From "$Directory.new" -Recurse
    if (Test-Path $Directory) { Move-Item $Directory "$Directory.old" } # fails while a program runs in there
    Move-Item "$Directory.new" $Directory
    Invoke-Program "$Directory\softvpi.exe" @('tools', 'install', "$Directory\tools")
    Initialize-Data
    Register-Source
    Register-Driver "`"$Directory\softvpi.exe`" up --config `"$Data\driver.json`" --state `"$Data`" --socket `"$Data\driver.sock`" --system-log eventlog"
    if (Test-Path "$Modules\SoftVPI") { Remove-Item "$Modules\SoftVPI" -Recurse -Force }
    Copy-Item "$From\SoftVPI" "$Modules\SoftVPI" -Recurse
    Add-ToPath "$Directory\tools"
    Invoke-Program setx.exe @('SOFTVPI_SOCKET', "$Data\driver.sock", '/M') # it also tells running programs of the new path
    if (Test-Path "$Directory.old") { Remove-Item "$Directory.old" -Recurse -Force }
} catch {
    $why = "$_"
    try {
        Restore-Program
        if ($stopped) { Start-Service SoftVPI }
    } catch { Write-Warning "what was installed before is in $Directory.old: $_" }
    Write-Warning "return code 1603: Fatal error during installation: $why"
    exit 1603
}
if (-not $NoStart -and $StartupType -ne 'Disabled') {
    try { Start-Service SoftVPI } catch { Write-Warning "warning 1004: Failed to open the device: $_; see $Data\driver.log and the event log" }
}
Write-Output "$version is installed in $Directory; its configuration is $Data\driver.json"
