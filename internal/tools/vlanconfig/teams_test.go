package vlanconfig

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// atSwitch returns adapters at one switch.
func atSwitch(names ...string) (list []config.Adapter) {
	for _, n := range names {
		list = append(list, config.Adapter{Name: n, Generation: "mlx4", Link: config.LinkSwitch, Wire: config.Wire{Switch: "s"}})
	}
	return list
}

// The commands on teams print what those of the manual's example do (WinOF 5.50, 4.1.6.3 to 4.1.6.13), with GUIDs of their own in the same
// places.
func TestTeams_Manual(t *testing.T) {
	cfg := driverbed.Config(t, atSwitch("left", "right")...)
	d := driverbed.Start(t, cfg)
	text, err := os.ReadFile("testdata/manual.txt")
	if err != nil {
		t.Fatal(err)
	}
	guids := []string{"30C354DB-62E9-41CB-B709-11063FAF4E95", "left", "53AE4E6B-A308-4C74-9791-153BB3104509", "right",
		"Mellanox ConnectX-3 Ethernet Adapter", "SoftVPI ConnectX-3 class VPI Ethernet Adapter"}
	for i, name := range []string{"left", "right"} {
		a, _ := d.Registry().Adapter(name)
		guids[2*i+1] = strings.Trim(a.GUID(), "{}")
	}
	vlan := ""
	for _, part := range strings.Split(string(text), "> ")[1:] {
		line, want, _ := strings.Cut(strings.NewReplacer(guids...).Replace(part), "\n")
		if all := d.VLANs(); len(all) > 0 {
			vlan = all[0].GUID
		}
		status, out, errs := call(t, cfg.Socket, line)
		if all := d.VLANs(); len(all) > 0 {
			vlan = all[0].GUID
		}
		want = strings.ReplaceAll(want, "3D7CFE4E-0EE9-4CF6-9843-F44CFBE2E223", strings.Trim(vlan, "{}"))
		if all := d.Teams(); len(all) > 0 { // the manual's team has another GUID
			want = strings.ReplaceAll(want, "C71781EC-F459-4A8E-ABAC-74CA05F13AE8", strings.Trim(all[0].GUID, "{}"))
		}
		if status != tool.Success || out != want || errs != "" {
			t.Errorf("%s: status %d, %s\n%s\nwant\n%s", line, status, errs, out, want)
		}
	}
}

// What a team cannot be ends with status 2 and says what is wrong and allowed; teams of IPoIB interfaces are not supported; detach and
// --json tell of the team.
func TestTeams_Answers(t *testing.T) {
	cfg := driverbed.Config(t, append(atSwitch("left", "right"), config.Adapter{Name: "plain"})...)
	driverbed.Start(t, cfg)
	for _, x := range []struct {
		line   string
		status int
		says   string
	}{
		{"queryteam T", tool.Usage, `team is "T"; allowed: there are no teams`},
		{"create team LBFO T", tool.Usage, `type is "LBFO"; allowed: AFT | SFT | SLB | RLB | ALB | 3AD | SLA`},
		{"create team AFT T IPoIB", tool.Unsupported, "teams of IPoIB interfaces are not built"},
		{"CREATE Team alb T nofailbacktoprimary", tool.Success, "Adding team T"},
		{"create team AFT t", tool.Usage, "one that no other team has"},
		{"queryteam t", tool.Success, "PrimaryAdapterGuid : {00000000-0000-0000-0000-000000000000}\nTeamType           : 5"},
		{"queryteam T", tool.Success, "FallBackToPrimary  : 0\nMemberCount        : 0"},
		{"attach team T plain", tool.Usage, `adapter is "plain"; allowed: an adapter with a wire of whole frames`},
		{"attach team T nobody", tool.Usage, `adapter is "nobody"; allowed: the GUID or name of one`},
		{"attach team T right primary", tool.Success, "Adding adapter {"},
		{"attach team T left PRIMARY", tool.Usage, "primary is given; allowed: nothing while {"},
		{"detach team T left", tool.Usage, `adapter is "left"; allowed: the GUID or name of a member: {`},
		{"detach team T right", tool.Success, "} from team T"},
		{"addvlan T V 0 1", tool.Usage, `VLAN ID is 0; allowed: 1 to 4094`},
		{"addvlan T V 4095 1", tool.Usage, `VLAN ID is 4095; allowed: 1 to 4094`},
		{"addvlan T V ten 1", tool.Usage, `VLAN ID is "ten"; allowed: 1 to 4094`},
		{"addvlan T V 10 8", tool.Usage, `priority is 8; allowed: 0 to 7`},
		{"addvlan T V 10 1 address=here", tool.Usage, `address is "here"; allowed: an address with the length`},
		{"addvlan T V 10 1 tap=", tool.Usage, `unexpected argument "tap="`},
		{"addvlan plain V 10 1", tool.Usage, `adapter is "plain", whose wire are UDP sockets`},
		{"addvlan nobody V 10 1", tool.Usage, `adapter or team is "nobody"; allowed: the name or GUID of one: "T", "left"`},
		{"addvlan left V 10 1 address=192.0.2.77/24", tool.Success, "Vlan Id=10"},
		{"addvlan left W 10 1", tool.Usage, "one that no other VLAN interface there has: V has it"},
		{"addvlan left v 11 1", tool.Usage, `VLAN name is "v"; allowed: one that no other`},
		{"attach team T left", tool.Usage, "whose VLAN interfaces use its wire"},
		{"queryvlan LEFT v", tool.Success, "Vlan Id         : 10"},
		{"queryvlan left W", tool.Usage, `VLAN interface is "W"; allowed: "V"`},
		{"modifyvlan left V V 5000 1", tool.Usage, "VLAN ID is 5000; allowed: 1 to 4094"},
		{"modifyvlan left W V 5 1", tool.Usage, `VLAN interface is "W"; allowed: V`},
		{"removevlan left V", tool.Success, "pMuxPhysicalAdapter->RemoveMiniport succeeded"},
		{"removevlan left V", tool.Usage, "there are no VLAN interfaces"},
		{"addvlan T V 10 1", tool.Success, "Vlan Name=V"},
		{"removeteam T", tool.Usage, `team is "T" with VLAN interfaces V; allowed: one without`},
		{"removevlan T V", tool.Success, "RemoveMiniport succeeded"},
		{"removeteam x", tool.Usage, `team is "x"; allowed: "T"`},
	} {
		status, out, errs := call(t, cfg.Socket, x.line)
		if status != x.status || !strings.Contains(out+errs, x.says) {
			t.Errorf("%s: status %d, %s%s; want %d and %q", x.line, status, out, errs, x.status, x.says)
		}
	}
	var team api.Team
	_, out, _ := call(t, cfg.Socket, "removeteam T --json")
	if err := json.Unmarshal([]byte(out), &team); err != nil || team.Name != "T" || team.Type != "ALB" || team.FailBack {
		t.Errorf("%v, %+v", err, team)
	}
}
