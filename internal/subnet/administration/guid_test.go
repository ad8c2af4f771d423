package administration

import (
	"testing"

	"github.com/softvpi/softvpi/wire/mad"
)

// TestNoMadeUpGUIDs: without the option to make GUIDs up, a request for one is not given any.
func TestNoMadeUpGUIDs(t *testing.T) {
	b, _ := plug(t, Config{})
	r := mad.GUIDInfoRecord{LID: b.LID}
	head, data := b.Ask(mad.MethodSet, mad.AttrGUIDInfoRecord, mad.GUIDComponentLID|mad.GUIDComponentBlock|1<<5, r.Append(nil))
	if a, err := mad.ParseGUIDInfoRecord(data); head.Status != 0 || err != nil || a.Table[1] != 0 {
		t.Errorf("status %#x, %x, %v", head.Status, a.Table, err)
	}
}
