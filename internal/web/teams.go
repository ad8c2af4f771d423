package web

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/team"
)

// teamsView is the contents of the page of teams.
type teamsView struct {
	Teams  []teamRow
	Chosen *teamRow // that the forms change; nil: a new one is made
	Types  []string
	Free   []string // adapters that are in no team
	Form   url.Values
	Wrong  map[string]string // by the names of fields, why they were refused
}

// teamRow is a team.
type teamRow struct {
	api.TeamStatus
	Made    bool // by command: it can be changed
	VLANs   []string
	Rows    []memberRow
	Primary string // the primary member; empty: there is none
}

// memberRow is a member of a team.
type memberRow struct {
	api.TeamMemberStatus
	Name     string // of the adapter, its GUID if the driver has it no more, or of the wire
	GivesMAC bool
}

// Rate is the speed of the member's link.
func (m *memberRow) Rate() string {
	if m.Speed == 0 {
		return "-"
	}
	return bitsText(float64(m.Speed))
}

// Link returns the address of the page with the forms of this team.
func (t *teamRow) Link() string {
	return teamsURL + "?" + url.Values{"name": {t.Name}}.Encode() + "#set"
}

// Title is what the team is called.
func (t *teamRow) Title() string { return cmp.Or(t.Name, "Of the configuration") }

const teamsURL = Prefix + "teams"

// teams shows the teams.
func (s *Server) teams(q *request) error {
	return s.showTeams(q, q.r.URL.Query().Get("name"), url.Values{}, nil)
}

// showTeams shows the page with what was entered and refused.
func (s *Server) showTeams(q *request, chosen string, entered url.Values, refused error) error {
	v, err := s.view(q, "Teams", "teams")
	if err != nil {
		return err
	}
	made, err := s.client.Teams(q.r.Context())
	if err != nil {
		return err
	}
	links, err := s.client.TeamLinks(q.r.Context())
	if err != nil {
		return err
	}
	d := teamsView{Teams: teamRows(made, links), Types: strings.Split(team.Types, " | "), Form: entered, Wrong: map[string]string{}}
	d.Free = freeAdapters(v.Adapters, made, links)
	for i := range d.Teams {
		if t := &d.Teams[i]; t.Made && t.Name == chosen {
			d.Chosen = t
		}
	}
	if chosen != "" && d.Chosen == nil {
		return &missingError{"team " + strconv.Quote(chosen)}
	}
	if refused != nil {
		v.Problem = sentence(refused.Error())
		d.mark(refused)
	}
	v.Data = d
	return s.show(q, "teams", v)
}

// teamRows puts together what the teams are to be and how they are: those that were made by command, and then the configuration's.
func teamRows(made []api.Team, links []api.TeamStatus) (rows []teamRow) {
	for _, m := range made {
		t := teamRow{TeamStatus: api.TeamStatus{Name: m.Name, Type: m.Type, Adapter: m.Carrier, FailBackToPrimary: m.FailBack}, Made: true,
			VLANs: m.VLANs}
		if i := slices.IndexFunc(links, func(l api.TeamStatus) bool { return l.Name == m.Name }); i >= 0 {
			t.TeamStatus = links[i]
		}
		for _, x := range m.Members {
			row := memberRow{Name: cmp.Or(x.Adapter, x.GUID), GivesMAC: x.GivesMAC,
				TeamMemberStatus: api.TeamMemberStatus{Primary: x.Primary, Status: x.Status, Role: x.Role}}
			same := func(l api.TeamMemberStatus) bool { return x.Adapter != "" && l.Adapter == x.Adapter }
			if i := slices.IndexFunc(t.Members, same); i >= 0 {
				row.TeamMemberStatus = t.Members[i]
			}
			t.add(row)
		}
		rows = append(rows, t)
	}
	for _, l := range links {
		if l.Name != "" {
			continue
		}
		t := teamRow{TeamStatus: l}
		for _, m := range l.Members {
			t.add(memberRow{TeamMemberStatus: m, Name: m.Wire})
		}
		rows = append(rows, t)
	}
	return rows
}

func (t *teamRow) add(m memberRow) {
	if t.Rows = append(t.Rows, m); m.Primary {
		t.Primary = m.Name
	}
}

// freeAdapters returns the adapters that no team has. The driver says which of them can be members.
func freeAdapters(all []api.AdapterStatus, made []api.Team, links []api.TeamStatus) (free []string) {
	taken := map[string]bool{}
	for _, t := range made {
		for _, m := range t.Members {
			taken[m.Adapter] = true
		}
	}
	for _, l := range links {
		if l.Name == "" { // of the configuration; who carries another may be back as a member
			taken[l.Adapter] = true
		}
	}
	for i := range all {
		if !taken[all[i].Name] {
			free = append(free, all[i].Name)
		}
	}
	return free
}

// Is reports whether a type is that of the form.
func (d teamsView) Is(kind string) bool {
	now := ""
	if d.Chosen != nil {
		now = d.Chosen.Type
	}
	return kind == cmp.Or(d.Form.Get("type"), now)
}

// mark puts a refusal beside the field that it is about, by the words of the driver.
func (d *teamsView) mark(err error) {
	var wrong *api.FieldError
	if !errors.As(err, &wrong) {
		return
	}
	field := map[string]string{"team name": "to", "type": "type", "adapter": "adapter", "members": "adapter", "MAC of a member": "adapter",
		"primary": "primary", "SetTeamMacAddress": "mac"}[wrong.Field]
	if field == "adapter" && d.Form.Get("action") == "modify" {
		field = "type" // with the members that there are
	}
	d.Wrong[field] = "Allowed: " + wrong.Allowed
}

// changeTeam makes, changes or removes a team, or its members.
func (s *Server) changeTeam(q *request) error {
	form, ctx := q.r.PostForm, q.r.Context()
	name, adapter, to := form.Get("name"), form.Get("adapter"), strings.TrimSpace(form.Get("to"))
	var err error
	var said string
	back, chosen := teamsURL, ""
	switch action := form.Get("action"); action {
	case "create":
		_, err = s.client.CreateTeam(ctx, api.TeamRequest{Name: to, Type: form.Get("type"), NoFailBack: form.Get("stay") != "",
			IPoIB: form.Get("ipoib") != ""})
		said, back = to+" is there; attach its members.", (&teamRow{TeamStatus: api.TeamStatus{Name: to}}).Link()
	case "modify":
		_, err = s.client.ModifyTeam(ctx, name, api.TeamRequest{Name: to, Type: form.Get("type")})
		said, chosen = name+" is changed.", name
	case "attach":
		_, err = s.client.AttachMember(ctx, name, adapter, api.TeamMemberRequest{Primary: form.Get("primary") != "",
			GivesMAC: form.Get("mac") != ""})
		said, chosen, back = adapter+" is a member of "+name+".", name, (&teamRow{TeamStatus: api.TeamStatus{Name: name}}).Link()
	case "detach":
		_, err = s.client.DetachMember(ctx, name, adapter)
		said, form = adapter+" is no member of "+name+" any more.", url.Values{}
	case "remove":
		_, err = s.client.RemoveTeam(ctx, name)
		said, form = name+" is removed.", url.Values{}
	default:
		err = &api.FieldError{Field: "action", Value: strconv.Quote(action), Allowed: "create, modify, attach, detach, remove"}
	}
	if err == nil {
		return s.done(q, said, back)
	}
	return s.showTeams(q, chosen, form, err)
}
