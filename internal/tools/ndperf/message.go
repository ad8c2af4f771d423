package ndperf

import (
	"encoding/json"
	"fmt"
	"math"
)

// A message travels over the control connection as one Send of JSON. The client sends params, begin, end,
// bye; the server answers ready, go, result, or error at any point.
type message struct {
	Type   string  `json:"type"`
	Params *params `json:"params,omitempty"` // params
	Buffer *buffer `json:"buffer,omitempty"` // params and ready: memory for the peer's RDMA
	Round  *round  `json:"round,omitempty"`  // begin and end
	Row    *Row    `json:"row,omitempty"`    // end: the client's, result: the server's
	Error  string  `json:"error,omitempty"`
}

// params are what the server must know about the client's options.
type params struct {
	QPs     int    `json:"qps"`
	Depth   int    `json:"depth"`
	MaxSize int    `json:"max_size"` // bytes of the largest message
	Inline  int    `json:"inline"`
	Cycle   int    `json:"cycle"` // bytes that each side cycles through; 0: the test does not cycle
	Sizes   string `json:"sizes"` // the client's -s, -a, -n, -D in words
}

// buffer is memory that the peer may access.
type buffer struct {
	Address uint64 `json:"address"`
	Token   uint32 `json:"token"` // remote token
	Length  uint64 `json:"length"`
}

// round is one message size.
type round struct {
	Bytes      int   `json:"bytes"`
	Iterations int64 `json:"iterations"` // of all queue pairs together; begin: 0 if the duration is fixed
}

// maxMessage limits a message in bytes.
const maxMessage = 4096

func (m *message) encode() ([]byte, error) {
	b, err := json.Marshal(m)
	if err == nil && len(b) > maxMessage {
		err = fmt.Errorf("control message of %d bytes; allowed: up to %d", len(b), maxMessage)
	}
	return b, err
}

// decodeMessage parses a message and checks every number in it.
func decodeMessage(b []byte) (*message, error) {
	var m message
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("control message of the peer: %w", err)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("control message %q of the peer: %w", m.Type, err)
	}
	return &m, nil
}

func (m *message) check() error {
	within := func(name string, v, low, high int64) error {
		if v < low || v > high {
			return fmt.Errorf("%s is %d; allowed: %d to %d", name, v, low, high)
		}
		return nil
	}
	if p := m.Params; p != nil {
		for _, err := range []error{
			within("qps", int64(p.QPs), 1, maxQPs), within("depth", int64(p.Depth), 1, maxDepth),
			within("max_size", int64(p.MaxSize), 1, maxSize), within("inline", int64(p.Inline), 0, maxInline),
			within("cycle", int64(p.Cycle), 0, maxCycle),
		} {
			if err != nil {
				return err
			}
		}
	}
	if r := m.Round; r != nil {
		if err := within("bytes", int64(r.Bytes), 1, maxSize); err != nil {
			return err
		}
		return within("iterations", r.Iterations, 0, math.MaxInt64/maxSize)
	}
	return nil
}

// want checks that m is of the expected type and complete.
func (m *message) want(kind string) error {
	if m.Type == "error" {
		return fmt.Errorf("the peer gave up: %.200s", m.Error)
	}
	missing := m.Type != kind ||
		kind == "params" && (m.Params == nil || m.Buffer == nil) ||
		kind == "ready" && m.Buffer == nil ||
		kind == "begin" && m.Round == nil ||
		kind == "end" && (m.Round == nil || m.Row == nil) ||
		kind == "result" && m.Row == nil
	if missing {
		return fmt.Errorf("the peer sent a message %.40q that is not a whole %q", m.Type, kind)
	}
	return nil
}
