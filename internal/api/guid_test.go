package api

import (
	"encoding/json"
	"testing"
)

// TestGUIDsInJSON: no bit of a GUID is lost in programs that read the numbers of JSON as IEEE 754 doubles (RFC 8259,
// 6), as browsers and jq do.
func TestGUIDsInJSON(t *testing.T) {
	for _, guid := range []uint64{0, 0x0002c903deadbeef, 1<<53 + 1, ^uint64(0)} {
		b, err := json.Marshal(AdapterStatus{GUID: guid, InfiniBand: &InfiniBandStatus{PortGUID: guid - 1, NodeGUID: guid}})
		if err != nil {
			t.Fatal(err)
		}
		var doubles any
		if err := json.Unmarshal(b, &doubles); err != nil {
			t.Fatal(err)
		}
		again, _ := json.Marshal(doubles)
		var got AdapterStatus
		if err := json.Unmarshal(again, &got); err != nil || got.GUID != guid || got.InfiniBand.NodeGUID != guid ||
			got.InfiniBand.PortGUID != guid-1 {
			t.Errorf("%#x came back as %#x, %v", guid, got.GUID, err)
		}
	}
}
