package catalogue

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// publishedIDs is what MESSAGE_IDs have been published: lines of source, ID, and MESSAGE_ID.
const publishedIDs = "testdata/message_ids.txt"

// TestMessageIDs: every event has a MESSAGE_ID of its own, random by RFC 9562 (version 4), nothing else has one, and none that has been
// published is another now. With -update new ones are added to those that are published.
func TestMessageIDs(t *testing.T) {
	random := regexp.MustCompile(`^[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$`)
	has, by := map[eventKey]bool{}, map[string]eventKey{}
	for i := range Events() {
		e := &Events()[i]
		id := MessageID(e.Source, e.ID)
		if has[eventKey{e.Source, e.ID}] = true; !random.MatchString(id) {
			t.Errorf("%s 0x%04x, %s: MESSAGE_ID %q, want 32 random digits (systemd-id128 new)", e.Source, e.ID, e.Symbol, id)
		}
	}
	published := map[eventKey]string{}
	f, err := os.Open(publishedIDs)
	if err != nil && !*update {
		t.Fatal(err)
	}
	var lines []string
	for s := bufio.NewScanner(f); err == nil && s.Scan(); {
		var k eventKey
		var id string
		if _, err := fmt.Sscanf(s.Text(), "%s 0x%x %s", &k.source, &k.id, &id); err != nil {
			t.Fatalf("%s: %q: %v", publishedIDs, s.Text(), err)
		}
		published[k], lines = id, append(lines, s.Text())
	}
	for k, id := range messageIDs {
		if other, taken := by[id]; taken {
			t.Errorf("%v and %v have one MESSAGE_ID", k, other)
		}
		if by[id] = k; !has[k] && published[k] == "" {
			t.Errorf("%v has a MESSAGE_ID and is no event", k)
		}
		switch line := fmt.Sprintf("%s 0x%04x %s", k.source, k.id, id); {
		case published[k] == id:
		case published[k] == "" && *update:
			lines = append(lines, line)
		default:
			t.Errorf("%q is not what is published, %q", line, published[k])
		}
	}
	for k, id := range published {
		if messageIDs[k] != id {
			t.Errorf("the published MESSAGE_ID of %v is %s, and now %q", k, id, messageIDs[k])
		}
	}
	if *update {
		slices.Sort(lines)
		if err := os.WriteFile(publishedIDs, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
