package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
)

// made are the teams that the fake driver has.
var made = []api.Team{
	{Name: "blue", Type: "AFT", FailBack: true, Carrier: "Ethernet 1", VLANs: []string{"v7"}, Members: []api.TeamMember{
		{Adapter: "Ethernet 1", GUID: "{1}"}, {GUID: "{2}", Primary: true, GivesMAC: true}}},
	{Name: hostile, Type: "3AD"},
}

func (f *fake) Teams() []api.Team { return made }
func (f *fake) CreateTeam(q api.TeamRequest) (api.Team, error) {
	return made[0], f.do("create %s %s %v %v", q.Name, q.Type, q.NoFailBack, q.IPoIB)
}
func (f *fake) ModifyTeam(name string, q api.TeamRequest) (api.Team, error) {
	return made[0], f.do("modify %s: %s %s", name, q.Name, q.Type)
}
func (f *fake) RemoveTeam(name string) (api.Team, error) { return made[0], f.do("remove %s", name) }
func (f *fake) AttachMember(team, adapter string, q api.TeamMemberRequest) (api.Team, error) {
	return made[0], f.do("attach %s to %s %v %v", adapter, team, q.Primary, q.GivesMAC)
}
func (f *fake) DetachMember(team, adapter string) (api.Team, error) {
	return made[0], f.do("detach %s from %s", adapter, team)
}

// withLinks gives the fake driver a team that is open, and one of the configuration.
func withLinks(b *bench) {
	b.status.Teams = []api.TeamStatus{
		{Name: "blue", Adapter: "Ethernet 1", Type: "AFT", Hash: "L4", MAC: "02:00:00:00:00:05", FailBackToPrimary: true, FailOvers: 12,
			Members: []api.TeamMemberStatus{{Adapter: "Ethernet 1", Wire: "switch s", Status: "Connected", Role: "Active", Speed: 25e9, SentBytes: 4711}}},
		{Adapter: "conf", Type: "3AD", Hash: "L2", Members: []api.TeamMemberStatus{
			{Wire: "interface eth1", Status: "Disconnected", Role: "Backup", LACP: "down"}}},
	}
}

// TestTeamsAreShown: the page has teams with their types, members, roles, statuses and counters, those of the configuration without
// actions, and the forms of a chosen one.
func TestTeamsAreShown(t *testing.T) {
	b := newBench(t)
	withLinks(b)
	w := b.get("/web/teams")
	text := w.Body.String()
	if w.Code != http.StatusOK || strings.Contains(text, hostile) {
		t.Fatalf("status %d, or a name is not shown as text", w.Code)
	}
	for _, want := range []string{">blue</a>: AFT by L4. Carried by Ethernet 1, MAC 02:00:00:00:00:05. Primary member {2}, active whenever it can be",
		"Fail-overs: 12,", "VLAN interfaces: v7.", `data-name="Status">Connected<`, `data-name="Role">Active<`, `data-name="Is">primary, gives the MAC<`,
		`data-name="Status">not there<`, "4\u202f711", "25 Gb/s", "Of the configuration: 3AD by L2. Carried by conf", `data-name="Wire">interface eth1<`,
		`data-name="LACP">down<`, "The team has no members.", "A new team", "<option>SLA</option>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if n := strings.Count(text, `value="remove"`); n != 2 {
		t.Errorf("%d teams can be removed, want the 2 that were made by command", n)
	}
	text = b.get("/web/teams?name=blue").Body.String()
	for _, want := range []string{"Name and type of blue", `name="to" value="blue"`, "<option selected>AFT</option>", "Attach a member",
		"&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;</option>"} { // the only adapter without a team
		if !strings.Contains(text, want) {
			t.Errorf("the forms lack %s", want)
		}
	}
	if strings.Contains(text, "<option>Ethernet 1</option>") {
		t.Error("an adapter of a team can be attached")
	}
	if w := b.get("/web/teams?name=nobody"); w.Code != http.StatusNotFound {
		t.Errorf("a team that there is not: %d", w.Code)
	}
}

// TestTeamsAreChanged: the forms ask the driver, and what it refuses is beside its field, with what was entered.
func TestTeamsAreChanged(t *testing.T) {
	b := newBench(t)
	withLinks(b)
	const page = "/web/teams"
	for _, form := range []url.Values{
		{"action": {"create"}, "to": {" red "}, "type": {"SFT"}, "stay": {"on"}},
		{"action": {"create"}, "to": {"ib"}, "type": {"AFT"}, "ipoib": {"on"}},
		{"action": {"modify"}, "name": {"blue"}, "to": {"green"}, "type": {"SLB"}},
		{"action": {"attach"}, "name": {"blue"}, "adapter": {"x"}, "primary": {"on"}},
		{"action": {"detach"}, "name": {"blue"}, "adapter": {"{2}"}}, {"action": {"remove"}, "name": {"blue"}},
	} {
		if w := b.post(page, form); w.Code != http.StatusSeeOther {
			t.Errorf("%v: status %d", form, w.Code)
		}
	}
	if want := []string{"create red SFT true false", "create ib AFT false true", "modify blue: green SLB", "attach x to blue true false", "detach {2} from blue", "remove blue"}; !slices.Equal(
		b.did, want) {
		t.Errorf("done: %q", b.did)
	}
	for _, c := range []struct {
		form         url.Values
		field, shown string
	}{
		{url.Values{"action": {"create"}, "to": {"A"}, "type": {"SLB"}}, "team name", `value="A" maxlength="63" autocomplete="off" spellcheck="false" required aria-invalid="true"`},
		{url.Values{"action": {"create"}, "to": {"A"}, "type": {"4AD"}}, "type", `aria-describedby="team-type-help" aria-invalid="true"`},
		{url.Values{"action": {"modify"}, "name": {"blue"}, "to": {"A"}, "type": {"SFT"}}, "members", `aria-describedby="team-type-help" aria-invalid="true"`},
		{url.Values{"action": {"attach"}, "name": {"blue"}, "adapter": {hostile}}, "adapter", `id="team-adapter" name="adapter" aria-invalid="true"`},
		{url.Values{"action": {"attach"}, "name": {"blue"}, "adapter": {hostile}}, "members", `id="team-adapter" name="adapter" aria-invalid="true"`},
		{url.Values{"action": {"attach"}, "name": {"blue"}, "adapter": {hostile}, "primary": {"on"}}, "primary", `name="primary" checked aria-invalid="true"`},
		{url.Values{"action": {"attach"}, "name": {"blue"}, "adapter": {hostile}, "mac": {"on"}}, "SetTeamMacAddress", `name="mac" checked aria-invalid="true"`},
	} {
		b.fail = api.Wrong(c.field, "given", "something else")
		w := b.post(page, c.form)
		if text := w.Body.String(); w.Code != http.StatusUnprocessableEntity || !strings.Contains(text, c.shown) ||
			!strings.Contains(text, "Allowed: something else</p>") {
			t.Errorf("%v: status %d, or %s is not marked", c.form, w.Code, c.field)
		}
	}
	b.fail = nil
	if w := b.post(page, url.Values{"action": {"explode"}}); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("an action that there is not: status %d", w.Code)
	}
}
