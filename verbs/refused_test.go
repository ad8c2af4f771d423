package verbs_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// Wrong arguments are refused with an error that is ErrInvalid and names the field.
func TestWrongArgumentsAreRefused(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		s := newSide(t, b, 0, verbs.RC)
		uc, ud := newSide(t, b, 0, verbs.UC), newSide(t, b, 0, verbs.UD)
		l := s.dev.Limits()
		qp := func(c verbs.QPConfig) error {
			q, err := s.pd.CreateQP(c)
			if err == nil {
				_ = q.Close()
			}
			return err
		}
		srq := func(c verbs.SRQConfig) error { _, err := s.pd.CreateSRQ(c); return err }
		cq := func(depth int) error { _, err := s.dev.CreateCQ(depth); return err }
		mr := func(mem []byte, a verbs.Access) error { _, err := s.pd.Register(mem, a); return err }
		ah := func(v verbs.AddressVector) error { _, err := s.pd.CreateAH(v); return err }
		mem, here := make([]byte, 8), s.dev.Addr()
		window := must(s.pd.AllocWindow(verbs.WindowType2))(t)
		defer window.Close()
		for _, c := range []struct {
			field string
			err   error
		}{
			{"Type", qp(verbs.QPConfig{Type: 9, SendCQ: s.cq, RecvCQ: s.cq})},
			{"SendCQ", qp(verbs.QPConfig{RecvCQ: s.cq})},
			{"RecvCQ", qp(verbs.QPConfig{SendCQ: s.cq})},
			{"SendDepth", qp(verbs.QPConfig{SendCQ: s.cq, RecvCQ: s.cq, SendDepth: -1})},
			{"SendDepth", qp(verbs.QPConfig{SendCQ: s.cq, RecvCQ: s.cq, SendDepth: l.MaxQPDepth + 1})},
			{"RecvDepth", qp(verbs.QPConfig{SendCQ: s.cq, RecvCQ: s.cq, RecvDepth: l.MaxQPDepth + 1})},
			{"SendSGE", qp(verbs.QPConfig{SendCQ: s.cq, RecvCQ: s.cq, SendSGE: l.MaxSGE + 1})},
			{"RecvSGE", qp(verbs.QPConfig{SendCQ: s.cq, RecvCQ: s.cq, RecvSGE: -1})},
			{"Inline", qp(verbs.QPConfig{SendCQ: s.cq, RecvCQ: s.cq, Inline: l.MaxInline + 1})},
			{"Depth", srq(verbs.SRQConfig{})},
			{"Depth", srq(verbs.SRQConfig{Depth: l.MaxSRQDepth + 1})},
			{"MaxSGE", srq(verbs.SRQConfig{Depth: 1, MaxSGE: l.MaxSGE + 1})},
			{"Limit", srq(verbs.SRQConfig{Depth: 1, Limit: 2})},
			{"depth", cq(0)},
			{"depth", cq(l.MaxCQDepth + 1)},
			{"access", mr(mem, 1<<30)},
			{"LocalWrite", mr(mem, verbs.RemoteWrite)},
			{"LocalWrite", mr(mem, verbs.RemoteAtomic)},
			{"Addr", ah(verbs.AddressVector{})},
			{"Addr", ah(verbs.AddressVector{Addr: netip.IPv4Unspecified()})},
			{"SourceIndex", ah(verbs.AddressVector{Addr: here, SourceIndex: -1})},
			{"SL", ah(verbs.AddressVector{Addr: here, SL: 8})},
			{"FlowLabel", ah(verbs.AddressVector{Addr: here, FlowLabel: 1 << 20})},
			{"Op", s.qp.PostSend(&verbs.SendWR{Op: 200})},
			{"Flags", s.qp.PostSend(&verbs.SendWR{Op: verbs.OpSend, Flags: 1 << 7})},
			{"Inline", s.qp.PostSend(&verbs.SendWR{Op: verbs.OpRead, Inline: mem})},
			{"Inline", s.qp.PostSend(&verbs.SendWR{Op: verbs.OpSend, Inline: make([]byte, 4096)})},
			{"SGE", s.qp.PostSend(&verbs.SendWR{Op: verbs.OpSend, SGE: make([]verbs.SGE, 5)})},
			{"SGE", s.qp.PostRecv(&verbs.RecvWR{SGE: make([]verbs.SGE, 5)})},
			{"UC", uc.qp.PostSend(&verbs.SendWR{Op: verbs.OpRead})},
			{"UC", uc.qp.PostSend(&verbs.SendWR{Op: verbs.OpFetchAdd})},
			{"UD", ud.qp.PostSend(&verbs.SendWR{Op: verbs.OpWrite})},
			{"AH", ud.qp.PostSend(&verbs.SendWR{Op: verbs.OpSend})},
			{"Bind.Window", s.qp.PostSend(&verbs.SendWR{Op: verbs.OpBind})},
			{"Bind.MR", s.qp.PostSend(&verbs.SendWR{Op: verbs.OpBind, Bind: verbs.Bind{Window: window, Length: 1}})},
			{"Bind.Access", s.qp.PostSend(&verbs.SendWR{Op: verbs.OpBind, Bind: verbs.Bind{Window: window, Access: verbs.LocalWrite}})},
		} {
			if !errors.Is(c.err, verbs.ErrInvalid) || !strings.Contains(c.err.Error(), c.field) {
				t.Errorf("%s: %v, want an ErrInvalid that names it", c.field, c.err)
			}
		}
		if _, err := s.dev.Listen(netip.AddrPortFrom(here, 0), -1); !errors.Is(err, verbs.ErrInvalid) {
			t.Errorf("backlog below 0: %v", err)
		}
	})
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		verbs.RC.String(): "RC", verbs.UC.String(): "UC", verbs.UD.String(): "UD", verbs.QPType(9).String(): "QP type 9",
		verbs.PathWire.String(): "wire", verbs.PathLocal.String(): "local", verbs.PathDirect.String(): "direct",
		verbs.QPPath(0).String(): "none",
		verbs.Embedded.String():  "embedded", verbs.Attached.String(): "attached",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
