package api

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// TeamStatus is the team of wires that an adapter stands on.
type TeamStatus struct {
	Adapter           string             `json:"adapter"`
	Name              string             `json:"name,omitempty"`  // of one that was made by command; the others are the configuration's
	Type              string             `json:"type"`            // AFT, SFT, SLB, RLB, ALB, 3AD or SLA
	IPoIB             bool               `json:"ipoib,omitempty"` // of IPoIB interfaces, whose packets are counted as frames; they have no Hash
	Hash              string             `json:"hash"`            // what of a frame chooses its member: L2, L3 or L4
	MAC               string             `json:"mac"`             // the team's own, which the adapter has unless it was given another
	FailBackToPrimary bool               `json:"fail_back_to_primary"`
	Members           []TeamMemberStatus `json:"members"`
	FailOvers         uint64             `json:"fail_overs"` // another member became active because one failed
	FailBacks         uint64             `json:"fail_backs"` // the primary one became active again
	Announced         uint64             `json:"announced"`  // rounds in which everybody was told of the active member
	PeersTold         uint64             `json:"peers_told"` // peers that were told another member
	Lost              uint64             `json:"lost"`       // frames that no member could send
	StoodBy           uint64             `json:"stood_by"`   // frames that arrived at a member that does not take them
	Returned          uint64             `json:"returned"`   // frames of the team itself that a switch has brought back
	Strange           uint64             `json:"strange"`    // frames to a member's address that are for nobody here
}

// TeamMemberStatus is a wire of a team.
type TeamMemberStatus struct {
	Wire    string `json:"wire"`
	Adapter string `json:"adapter,omitempty"` // whose wire it is, of a team that was made by command
	Primary bool   `json:"primary,omitempty"`
	Status  string `json:"status"`         // Connected, Disconnected or Disabled
	Role    string `json:"role"`           // Active or Backup
	Speed   uint64 `json:"speed"`          // in bits per second; 0: not known
	LACP    string `json:"lacp,omitempty"` // how the port is with type 3AD
	// What the wire has carried: frames whole, also those that the member does not take and the team's own.
	SentFrames     uint64 `json:"sent_frames"`
	SentBytes      uint64 `json:"sent_bytes"`
	ReceivedFrames uint64 `json:"received_frames"`
	ReceivedBytes  uint64 `json:"received_bytes"`
}

// writeText prints a team.
func (s *TeamStatus) writeText(w io.Writer) {
	kind := fmt.Sprintf("%s by %s, MAC %s", s.Type, s.Hash, s.MAC)
	if s.IPoIB {
		kind = s.Type + " of IPoIB interfaces, address " + or(s.MAC, "none")
	}
	fmt.Fprintf(w, "\nTeam%s of %s: %s, fail-overs: %d, fail-backs: %d, lost: %d\n", sub(" ", clean(s.Name)), clean(s.Adapter), kind,
		s.FailOvers, s.FailBacks, s.Lost)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  member\tstatus\trole\tprimary\tLACP")
	for _, m := range s.Members {
		primary := map[bool]string{true: "yes", false: "no"}[m.Primary]
		fmt.Fprintf(t, "  %s%s\t%s\t%s\t%s\t%s\n", clean(m.Wire), sub(" of ", clean(m.Adapter)), m.Status, m.Role, primary, or(m.LACP, "none"))
	}
	t.Flush()
}
