package registry

import (
	"cmp"
	"slices"
)

// Team is what is kept of a team of adapters that was made by command (WinOF 5.50, 4.1.6: vlan_config).
type Team struct {
	GUID   string // with its braces, as those of adapters
	Name   string
	Number uint32 // teams are in the order of their numbers
	Type   uint32 // as vlan_config prints it
	IPoIB  bool   // its members are IPoIB interfaces
	// NoFallBack leaves another member active when the primary one comes back.
	NoFallBack bool
	Members    []string // GUIDs of adapters, in the order in which they were attached
	Primary    string   // the GUID of one, or empty
	GivesMAC   string   // likewise: whose address the team has
	Carrier    string   // the GUID of the adapter that was attached first, a member or not; empty: the first member
	MAC        string   // that the team has; empty: it follows from its members
}

// Values of a team's key, which is named after its GUID. The manual does not say where they are kept.
const (
	valueTeamName   = "Name"
	valueTeamNumber = "Number"
	valueTeamType   = "TeamType"
	valueFallBack   = "FallBackToPrimary"
	valueMembers    = "Members"
	valuePrimary    = "PrimaryAdapterGuid"
	valueGivesMAC   = "MacAddressFrom"
	valueIPoIB      = "IPoIB"
	valueCarrier    = "CarrierAdapterGuid"
	valueTeamMAC    = "MacAddress"
)

// teams holds the keys of all teams.
var teams = Path{ControlSet + `\Services\SoftVPI\Teams`}

// GUID returns what identifies the adapter in Windows' network configuration (NetCfgInstanceId), with its braces.
func (a Adapter) GUID() string { return instance(a.Name) }

// Teams returns what is kept of teams, in the order in which they were made. Keys that describe none are skipped.
func (r *Registry) Teams() (list []Team) {
	k, _ := r.Key(teams)
	for _, p := range k.Subkeys {
		text := func(name string) string {
			v, _ := r.Get(p, name)
			s, _ := v.Text()
			return s
		}
		number := func(name string) (uint32, bool) {
			v, _ := r.Get(p, name)
			n, ok := v.Number()
			return uint32(n), ok
		}
		t := Team{GUID: p.Name(), Name: text(valueTeamName), Primary: text(valuePrimary), GivesMAC: text(valueGivesMAC),
			Carrier: text(valueCarrier), MAC: text(valueTeamMAC)}
		kind, known := number(valueTeamType)
		members, _ := r.Get(p, valueMembers)
		attached, ok := members.List()
		if t.Name == "" || !known || !ok {
			continue
		}
		back, stored := number(valueFallBack)
		t.Type, t.Members, t.NoFallBack = kind, attached, stored && back == 0
		t.Number, _ = number(valueTeamNumber)
		ipoib, _ := number(valueIPoIB)
		t.IPoIB = ipoib != 0
		list = append(list, t)
	}
	slices.SortStableFunc(list, func(a, b Team) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// Keep returns the changes that keep a team, in place of what was kept of it.
func (t *Team) Keep() []Change {
	key, back := teams.Child(t.GUID), uint32(1)
	if t.NoFallBack {
		back = 0
	}
	var all []Change
	if t.IPoIB {
		all = append(all, Change{Kind: SetValue, Key: key, Value: DWord(valueIPoIB, 1)})
	}
	for _, v := range []Value{
		String(valueTeamName, t.Name), DWord(valueTeamNumber, t.Number), DWord(valueTeamType, t.Type), DWord(valueFallBack, back),
		Strings(valueMembers, t.Members), String(valuePrimary, t.Primary), String(valueGivesMAC, t.GivesMAC),
		String(valueCarrier, t.Carrier), String(valueTeamMAC, t.MAC),
	} {
		all = append(all, Change{Kind: SetValue, Key: key, Value: v})
	}
	return all
}

// Forget returns the change after which nothing is kept of a team.
func (t *Team) Forget() Change {
	return Change{Kind: DeleteKey, Key: teams.Child(t.GUID), Lenient: true}
}
