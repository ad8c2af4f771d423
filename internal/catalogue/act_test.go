package catalogue

import (
	"slices"
	"strings"
	"testing"
)

// TestKeysOfTheEthernetFunctionAct: every key of the groups that are about an Ethernet function does something.
func TestKeysOfTheEthernetFunctionAct(t *testing.T) {
	groups := []Group{"Basic", "Off-load", "Performance", "Ethernet", "RSS placement", "RSS monitoring", "Packet burst handling"}
	count := map[Group]int{}
	for _, k := range Keys() {
		if !slices.Contains(groups, k.Group) {
			continue
		}
		if count[k.Group]++; k.Status == StoredOnly {
			t.Errorf("%s of the group %q is only stored", k.Name, k.Group)
		}
	}
	for _, g := range groups {
		if count[g] == 0 {
			t.Errorf("the group %q has no keys", g)
		}
	}
}

// TestKeysOfPrioritiesAct: every key of the groups that are about priorities, pauses, congestion control and what waits does something.
func TestKeysOfPrioritiesAct(t *testing.T) {
	count := map[Group]int{"Flow control": 0, "QoS": 0, "DSCP": 0, "Congestion control (RCM)": 0, "DCBX": 0, "Lossless TCP and dropless mode": 0,
		"Receive stall": 0, "Head of queue lifetime": 0}
	for _, k := range Keys() {
		if _, about := count[k.Group]; !about {
			continue
		}
		if count[k.Group]++; k.Status == StoredOnly {
			t.Errorf("%s, of the group %q, is stored only", k.Name, k.Group)
		}
	}
	for g, n := range count {
		if n == 0 {
			t.Errorf("the group %q has no keys", g)
		}
	}
}

// TestNothingIsOnlyStoredInPart: no description says that a key that counts as built does nothing somewhere without saying why.
func TestNothingIsOnlyStoredInPart(t *testing.T) {
	for _, k := range Keys() {
		if k.Status != StoredOnly && strings.Contains(k.Description, "only stored") {
			t.Errorf("%s: %s", k.Name, k.Description)
		}
	}
}
