package vlanconfig

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
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

// What a team cannot be ends with status 2 and says what is wrong and allowed; detach and --json tell of the team.
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
		{"create team 3AD T IPoIB", tool.Usage, `type is "3AD"; allowed: AFT, the only one for IPoIB interfaces`},
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

// A team of IPoIB interfaces has adapters with InfiniBand ports alone, is of type AFT, and is in the list of those adapters; it carries by
// its primary member, and by the other one while that is disabled; and it is there when the driver starts again.
func TestTeams_IPoIB(t *testing.T) {
	cfg := driverbed.Config(t, append(atSwitch("eth"), config.Adapter{Name: "left", Link: config.LinkCable},
		config.Adapter{Name: "right", Link: config.LinkCable}, config.Adapter{Name: "other", Link: config.LinkCable})...)
	d := driverbed.Start(t, cfg)
	for _, x := range []struct {
		line   string
		status int
		says   string
	}{
		{"create team AFT T IPoIB", tool.Success, "Adding team T\nTeam created with Guid = "},
		{"create team AFT t IPoIB", tool.Usage, "one that no other team has"},
		{"create team AFT t", tool.Usage, "one that no other team has"},
		{"create team AFT E", tool.Success, "Adding team E"},
		{"create team AFT e IPoIB", tool.Usage, "one that no other team has"},
		{"create team LBFO U IPoIB", tool.Usage, `type is "LBFO"; allowed: AFT | SFT`},
		{"modifyteam T T SFT", tool.Usage, `type is "SFT"; allowed: AFT, the only one for IPoIB interfaces`},
		{"modifyteam T e AFT", tool.Usage, "one that no other team has"},
		{"attach team T eth", tool.Usage, `adapter is "eth"; allowed: members of one kind: adapters with InfiniBand ports`},
		{"attach team E left", tool.Usage, `adapter is "left"; allowed: members of one kind: Ethernet adapters`},
		{"attach team T left primary setteammacaddress", tool.Usage, "SetTeamMacAddress is given; allowed: nothing for IPoIB interfaces"},
		{"attach team T left primary", tool.Success, "Adding adapter {"},
		{"attach team T right primary", tool.Usage, "primary is given; allowed: nothing while {"},
		{"attach team T right", tool.Success, "} to team T"},
		{"attach team T right", tool.Usage, `a member of team "T"; allowed: one that is in no team`},
		{"detach team T other", tool.Usage, `adapter is "other"; allowed: the GUID or name of a member: {`},
		{"modifyteam t T2 AFT", tool.Success, "New Attributes applied"},
		{"addvlan T2 V 1 1", tool.Unsupported, "whose VLANs are partitions"},
		{"queryteam T2", tool.Success, "TeamType           : 1\nL2Protocol         : 0\nFallBackToPrimary  : 1\nMemberCount        : 2\n"},
		{"showlist IPoIB", tool.Success, "Found 1 team(s)\nName               : T2\n"},
		{"showlist", tool.Success, "Found 1 team(s)\nName               : E\n"},
	} {
		status, out, errs := call(t, cfg.Socket, x.line)
		if status != x.status || !strings.Contains(out+errs, x.says) {
			t.Errorf("%s: status %d, %s%s; want %d and %q", x.line, status, out, errs, x.status, x.says)
		}
	}
	roles := func() (text string) {
		for _, m := range d.Overview().Teams[0].Members {
			text += m.Adapter + " " + m.Status + " " + m.Role + ", "
		}
		return text
	}
	carries := func(want string) {
		t.Helper()
		if !await.Until(func() bool { return roles() == want }) {
			t.Fatalf("the members are %s want %s", roles(), want)
		}
	}
	carries("left Connected Active, right Connected Backup, ")
	if err := d.SetAdapter(driver.AdapterRequest{Adapter: "left"}); err != nil {
		t.Fatal(err)
	}
	carries("left Disabled Backup, right Connected Active, ")
	if err := d.SetAdapter(driver.AdapterRequest{Adapter: "left", Enable: true}); err != nil {
		t.Fatal(err)
	}
	carries("left Connected Active, right Connected Backup, ")
	if s := d.Overview().Teams[0]; s.FailOvers == 0 || s.FailBacks == 0 || !s.IPoIB || s.MAC == "" || s.Adapter != "left" {
		t.Errorf("the team is %+v", s)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = driverbed.Start(t, cfg)
	carries("left Connected Active, right Connected Backup, ")
	for _, line := range []string{"detach team T2 left", "removeteam T2"} {
		if status, out, errs := call(t, cfg.Socket, line); status != tool.Success {
			t.Errorf("%s: status %d, %s%s", line, status, out, errs)
		}
	}
	await.Eventually(t, "the interfaces are by themselves again", func() bool {
		for _, a := range d.Overview().Adapters {
			if len(a.IPoIB) > 0 && !a.IPoIB[0].Connected {
				return false
			}
		}
		return true
	})
}
