package cmdlets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/powershell"
)

// windowsModules are the commands that concern Windows itself. They say what is here instead; those that would leave somebody to
// think that something runs are refused.
func windowsModules() []cmdlet {
	name := powershell.Param{Name: "Name", Kind: powershell.Strings, Position: 1, Mandatory: true, Piped: true, Help: "The name."}
	in := func(module, cmd, help string, changes bool, do func(*run) error, params ...powershell.Param) cmdlet {
		return cmdlet{powershell.Cmdlet{Name: cmd, Module: module, Help: help, Changes: changes, Params: params}, do}
	}
	say := func(text string) func(*run) error {
		return func(r *run) error {
			if r.Should(r.Cmdlet.Name, strings.Join(r.Texts("Name"), ", ")) {
				r.Warn("%s", text)
			}
			return nil
		}
	}
	refuse := func(format string) func(*run) error {
		return func(r *run) error { return fmt.Errorf(format, strings.Join(r.Texts("Name"), ", ")) }
	}
	const services = "services are the system's: the driver is started by \"softvpi up\" or its unit (docs/install.md), a subnet manager by \"opensm\" " +
		"or in the driver (docs/subnet.md); there is no service %q"
	return []cmdlet{
		in("ServerManager", "Install-WindowsFeature", "Say that what a feature brings is here.", true, installFeature, name,
			powershell.Param{Name: "IncludeManagementTools", Kind: powershell.Switch, Help: "They are here."},
			powershell.Param{Name: "IncludeAllSubFeature", Kind: powershell.Switch, Help: "All there are."},
			powershell.Param{Name: "Restart", Kind: powershell.Switch, Help: "Nothing is restarted."}),
		in("ServerManager", "Get-WindowsFeature", "List the features of Windows whose commands are here.", false, getFeatures,
			powershell.Param{Name: "Name", Kind: powershell.Strings, Position: 1, Help: "Names, with wildcards."}),
		in("Microsoft.PowerShell.Security", "Set-ExecutionPolicy", "Say that scripts always run.", true,
			say("every script runs that you name to softvpi ps, with your rights; there are no policies of execution"),
			powershell.Param{Name: "ExecutionPolicy", Kind: powershell.String, Position: 1, Mandatory: true, Help: "The policy.",
				Allowed: []string{"AllSigned", "Bypass", "Default", "RemoteSigned", "Restricted", "Undefined", "Unrestricted"}},
			powershell.Param{Name: "Scope", Kind: powershell.String, Position: 2, Help: "For whom."},
			powershell.Param{Name: "Force", Kind: powershell.Switch, Help: "As without."}),
		in("DnsClient", "Set-DnsClientServerAddress", "Say that name servers are the system's.", true,
			say("name servers are the system's (resolv.conf, systemd-resolved); nothing is changed"),
			powershell.Param{Name: "InterfaceAlias", Kind: powershell.Strings, Position: 1, Help: "The adapters."},
			powershell.Param{Name: "ServerAddresses", Aliases: []string{"Addresses"}, Kind: powershell.Strings, Help: "The servers."},
			powershell.Param{Name: "ResetServerAddresses", Kind: powershell.Switch, Help: "The system's own."}),
		in("Microsoft.PowerShell.Management", "Set-Service", "Say that services are the system's.", true,
			say("services are the system's; nothing is changed"), name,
			powershell.Param{Name: "StartupType", Kind: powershell.String, Help: "When it starts."},
			powershell.Param{Name: "Status", Kind: powershell.String, Help: "Its state."}),
		in("Microsoft.PowerShell.Management", "New-Service", "Refused: services are the system's; of a subnet manager it says who is at work.", true,
			subnetManager(refuse(services)), name,
			powershell.Param{Name: "BinaryPathName", Aliases: []string{"Path"}, Kind: powershell.String, Position: 2, Help: "The program."},
			powershell.Param{Name: "DisplayName", Kind: powershell.String, Help: "Its title."},
			powershell.Param{Name: "Description", Kind: powershell.String, Help: "What it is."},
			powershell.Param{Name: "StartupType", Kind: powershell.String, Help: "When it starts."}),
		in("Microsoft.PowerShell.Management", "Start-Service", "Refused: services are the system's; of a subnet manager it says who is at work.", true,
			subnetManager(refuse(services)), name),
		in("Microsoft.PowerShell.Management", "Stop-Service", "Refused: services are the system's.", true, refuse(services), name,
			powershell.Param{Name: "Force", Kind: powershell.Switch, Help: "As without."}),
		in("Microsoft.PowerShell.Management", "Restart-Service", "Refused: services are the system's.", true, refuse(services), name,
			powershell.Param{Name: "Force", Kind: powershell.Switch, Help: "As without."}),
		in("Microsoft.PowerShell.Management", "Restart-Computer", "Refused.", true,
			func(*run) error {
				return fmt.Errorf("a script does not restart the machine; Restart-NetAdapter * restarts the adapters")
			},
			powershell.Param{Name: "Force", Kind: powershell.Switch, Help: "As without."}),
	}
}

// subnetManager answers for the service OpenSM (WinOF 5.50, 4.2.4): if a subnet manager is at work at an InfiniBand port, it says so.
func subnetManager(otherwise func(*run) error) func(*run) error {
	return func(r *run) error {
		for _, n := range r.Texts("Name") {
			if !powershell.Like(n, "OpenSM*") {
				return otherwise(r)
			}
		}
		list, err := r.adapters(nil)
		if err != nil {
			return err
		}
		for _, a := range list {
			if ib := a.InfiniBand; ib != nil && ib.SMLID != 0 {
				r.Warn("a subnet manager is at work already, at LID %d of the subnet of %q; there is no service %s to make or start", ib.SMLID, a.Name,
					strings.Join(r.Texts("Name"), ", "))
				return nil
			}
		}
		return otherwise(r)
	}
}

// windowsFeatures are features of Windows, and what they are here.
var windowsFeatures = []struct{ name, title, here string }{
	{"Data-Center-Bridging", "Data Center Bridging", "PFC, ETS and DCBX are part of the driver"},
	{"Hyper-V", "Hyper-V", ""},
}

func installFeature(r *run) error {
	for _, n := range r.Texts("Name") {
		i := slices.IndexFunc(windowsFeatures, func(f struct{ name, title, here string }) bool { return strings.EqualFold(f.name, n) })
		if i < 0 || windowsFeatures[i].here == "" {
			return fmt.Errorf("feature %q of Windows is not here; allowed: Data-Center-Bridging", n)
		}
		if !r.Should(r.Cmdlet.Name, windowsFeatures[i].name) {
			continue
		}
		r.Verbose("%s", windowsFeatures[i].here)
		r.Emit(powershell.NewObject("FeatureOperationResult", "Success", "Restart Needed", "Exit Code", "Feature Result").With("Success", true).
			With("Restart Needed", "No").With("Exit Code", "NoChangeNeeded").With("Feature Result", windowsFeatures[i].here))
	}
	return nil
}

func getFeatures(r *run) error {
	names := r.Texts("Name")
	for _, f := range windowsFeatures {
		if len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return powershell.Like(f.name, n) }) {
			continue
		}
		state := "Installed"
		if f.here == "" {
			state = "Removed"
		}
		r.Emit(powershell.NewObject("Feature", "DisplayName", "Name", "InstallState").With("DisplayName", f.title).With("Name", f.name).
			With("InstallState", state))
	}
	return nil
}
