package socket

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/umad/agent"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestRoundTrips: messages that are written read back the same.
func TestRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string, most int) string {
			return rapid.StringMatching(`[a-z0-9 _-]*`).Filter(func(s string) bool { return len(s) <= most }).Draw(t, name)
		}
		u32, u8 := rapid.Uint32(), rapid.Uint8()
		r := Request{Kind: u32.Draw(t, "kind"), Node: text("node", NodeLen-1), Name: text("name", NameLen-1),
			Port: rapid.Int32().Draw(t, "port")}
		if got, ok := ParseRequest(r.Append(nil)); !ok || got != r {
			t.Errorf("%+v, want %+v", got, r)
		}
		a := AdapterInfo{NodeType: u32.Draw(t, "type"), First: 1, Ports: u32.Draw(t, "ports"), Firmware: text("firmware", 19),
			Type:     text("board", 39),
			Hardware: text("hardware", 19), NodeGUID: rapid.Uint64().Draw(t, "guid"), SystemGUID: 7}
		if got, ok := ParseAdapter(a.Append(nil)); !ok || got != a {
			t.Errorf("%+v, want %+v", got, a)
		}
		p := PortInfo{Number: u32.Draw(t, "number"), LID: 5, SMLID: 6, Rate: u32.Draw(t, "rate"), Capabilities: u32.Draw(t, "capabilities"),
			Prefix:    1 << 63,
			LinkLayer: text("link", 19), Info: [64]byte{1, 63: 2}, Node: [64]byte{3, 63: 4}}
		for range rapid.IntRange(0, 128).Draw(t, "keys") {
			p.PKeys = append(p.PKeys, ib.PKey(rapid.Uint16().Draw(t, "key")))
		}
		if got, ok := ParsePort(p.Append(nil)); !ok || !reflect.DeepEqual(got, p) {
			t.Errorf("%+v, want %+v", got, p)
		}
		g := agent.Registration{QPN: ib.QPN(u8.Draw(t, "qpn")), Class: u8.Draw(t, "class"), Version: u8.Draw(t, "version"),
			RMPP:     u8.Draw(t, "rmpp"),
			UserRMPP: rapid.Bool().Draw(t, "user"), Raw: rapid.Bool().Draw(t, "raw"), OUI: u32.Draw(t, "oui"),
			Methods: [2]uint64{rapid.Uint64().Draw(t, "methods"), 9}}
		if got, ok := ParseRegistration(AppendRegistration(nil, &g)); !ok || got != g {
			t.Errorf("%+v, want %+v", got, g)
		}
		errno, value := u32.Draw(t, "errno"), u32.Draw(t, "value")
		if e, v, ok := ParseAnswer(Answer(errno, value)); !ok || e != errno || v != value {
			t.Errorf("%d %d, want %d %d", e, v, errno, value)
		}
	})
}

// FuzzMessages: no message yields more than it contains, and one that is read is written again the same, as far as
// its fields go.
func FuzzMessages(f *testing.F) {
	r := Request{Kind: OpenMany, Node: "hca1", Port: -1}
	p := PortInfo{PKeys: []ib.PKey{0xffff, 0x8001}}
	f.Add(r.Append(nil))
	f.Add(p.Append(nil))
	f.Add(AppendRegistration(nil, &agent.Registration{Class: 3, Version: 2}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, ok := ParseRequest(b); ok {
			if again, _ := ParseRequest(r.Append(nil)); len(r.Node) < NodeLen && len(r.Name) < NameLen && again != r {
				t.Errorf("%+v, then %+v", r, again)
			}
		}
		if p, ok := ParsePort(b); ok && !bytes.HasPrefix(p.Append(nil)[76:], b[76:]) && 2*len(p.PKeys)+portLen > len(b) {
			t.Errorf("%d P_Keys of %d bytes", len(p.PKeys), len(b))
		}
		if a, ok := ParseAdapter(b); ok && len(a.Append(nil)) != adapterLen {
			t.Errorf("%+v is accepted, which has not the length of an adapter", a)
		}
		ParseRegistration(b)
		ParseAnswer(b)
	})
}
