package cable

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/os/inputfile"
)

// How a session over UDP begins. The adapter greets; the fabric answers with a challenge, which only the
// owner of the adapter's address gets to see, and keeps no state; the adapter greets again with the
// challenge, and is admitted or denied. Each end identifies the session by a random number, and accepts
// only what bears it. With a key, both ends prove that they know it.

const (
	cookieLen = 16
	proofLen  = sha256.Size
	// cookieTime is the minimum time for which a challenge is valid.
	cookieTime = 10 * time.Second

	// minKey and maxKey limit the length of a key, in bytes.
	minKey = 8
	maxKey = 1024

	// denyTaken is the code for a port that another adapter has, possibly an earlier one of the same
	// machine; the text says the rest.
	denyTaken = 1
	denyOther = 0
)

// ReadKey reads a key from a file, without the spaces and line ends around it.
func ReadKey(file string) ([]byte, error) {
	f, err := inputfile.Open(file, 2*maxKey)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	key, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	if key = bytes.TrimSpace(key); len(key) < minKey || len(key) > maxKey {
		return nil, fmt.Errorf("%s has a key of %d bytes; allowed: %d to %d", file, len(key), minKey, maxKey)
	}
	return key, nil
}

// Greeting is what an adapter tells the fabric when it greets.
type Greeting struct {
	Session uint64 // by which the adapter identifies the session
	Size    int    // largest datagram that it can send and receive
	Window  int    // bytes of frames that it buffers
	Hello
}

// Admission is what a fabric tells an adapter that it admits.
type Admission struct {
	Session uint64 // by which the fabric identifies the session
	Size    int
	Window  int
	Welcome
	State State
}

type wireGreet struct {
	Magic, Version uint32
	Session        uint64
	Cookie         [cookieLen]byte
	Proof          [proofLen]byte
	Size           uint16
	Window         uint32
}

type wireAdmit struct {
	To, Session uint64
	Proof       [proofLen]byte
	Size        uint16
	Window      uint32
}

type wireChallenge struct {
	To     uint64
	Cookie [cookieLen]byte
}

var (
	greetLen   = 1 + binary.Size(wireGreet{})
	admitLen   = 1 + binary.Size(wireAdmit{})
	welcomeLen = 1 + binary.Size(wireWelcome{})
)

const (
	greetProofAt = 1 + 4 + 4 + 8 + cookieLen
	admitProofAt = 1 + 8 + 8
)

// Greet returns the datagram of a greeting. cookie is that of the challenge, zero before there is one; key
// may be empty.
func (g *Greeting) Greet(cookie [cookieLen]byte, key []byte) []byte {
	b := encode(kindGreet, wireGreet{Magic: magic, Version: version, Session: g.Session, Cookie: cookie, Size: uint16(g.Size),
		Window: uint32(g.Window)})
	b = g.Append(b)
	prove(b, greetProofAt, key)
	return b
}

// prove writes the proof of a key into a datagram, where the field is still zero.
func prove(b []byte, at int, key []byte) {
	if len(key) > 0 {
		m := hmac.New(sha256.New, key)
		m.Write(b)
		m.Sum(b[at:at])
	}
}

// proved reports whether a datagram has the proof of the key, or none if there is no key.
func proved(b []byte, at int, key []byte) bool {
	got := [proofLen]byte(b[at:])
	clear(b[at : at+proofLen])
	prove(b, at, key)
	return hmac.Equal(got[:], b[at:at+proofLen])
}

// Door admits adapters to a fabric over UDP. It keeps no state of those it has not admitted.
type Door struct {
	key    []byte
	secret [32]byte
	bytes  [64]byte
}

// NewDoor creates a door; key, if not empty, is what adapters must know.
func NewDoor(key []byte) *Door {
	d := &Door{key: key}
	_, _ = rand.Read(d.secret[:]) // never fails
	return d
}

// cookie returns the challenge for an adapter in a period of time.
func (d *Door) cookie(from netip.AddrPort, session uint64, turn int64) [cookieLen]byte {
	m := hmac.New(sha256.New, d.secret[:])
	b := binary.LittleEndian.AppendUint64(d.bytes[:0], session)
	b = binary.LittleEndian.AppendUint64(b, uint64(turn))
	b, _ = from.AppendBinary(b) // never fails
	m.Write(b)
	return [cookieLen]byte(m.Sum(nil))
}

// Greeted reads a greeting. If ok is false, answer is what to send, which is never longer than the
// greeting; nil: nothing.
func (d *Door) Greeted(now clock.Time, from netip.AddrPort, b []byte) (g Greeting, answer []byte, ok bool) {
	if len(b) < greetLen {
		return g, nil, false
	}
	var w wireGreet
	if err := decode(b[:greetLen], kindGreet, "greeting", &w); err != nil || w.Magic != magic {
		return g, nil, false
	}
	if w.Version != version {
		answer = d.Deny(w.Session, &messageError{fmt.Sprintf("the adapter has version %d of the protocol, the fabric %d", w.Version,
			version)}, false)
		return g, answer[:min(len(answer), len(b))], false
	}
	turn := int64(now) / int64(cookieTime)
	if c := d.cookie(from, w.Session, turn); !hmac.Equal(c[:], w.Cookie[:]) {
		if old := d.cookie(from, w.Session, turn-1); !hmac.Equal(old[:], w.Cookie[:]) {
			return g, encode(kindChallenge, wireChallenge{w.Session, c}), false
		}
	}
	if !proved(b, greetProofAt, d.key) {
		return g, d.Deny(w.Session, &messageError{"the key of the adapter is not that of the fabric"}, false), false
	}
	hello, err := ParseHello(b[greetLen:])
	if err != nil {
		return g, d.Deny(w.Session, err, false), false
	}
	hello.VCRC = true
	return Greeting{w.Session, int(w.Size), int(w.Window), hello}, nil, true
}

// Deny returns the answer to a greeting that is not admitted. With taken, a later attempt may succeed.
func (d *Door) Deny(session uint64, why error, taken bool) []byte {
	b := binary.LittleEndian.AppendUint64([]byte{kindDeny}, session)
	b = append(b, map[bool]byte{false: denyOther, true: denyTaken}[taken])
	text := why.Error()
	return append(b, text[:min(len(text), MaxMessage-1)]...)
}

// Admit returns the answer to a greeting that is admitted.
func (d *Door) Admit(session uint64, a *Admission) []byte {
	b := encode(kindAdmit, wireAdmit{To: session, Session: a.Session, Size: uint16(a.Size), Window: uint32(a.Window)})
	b = a.Append(b)
	b = append(b, a.State.Message()...)
	prove(b, admitProofAt, d.key)
	return b
}

// Gone returns the answer to a datagram of a session that does not exist.
func Gone(session uint64) []byte { return binary.LittleEndian.AppendUint64([]byte{kindGone}, session) }

// gone reports whether a datagram says that the session does not exist.
func gone(b []byte, session uint64) bool {
	return len(b) == 9 && b[0] == kindGone && binary.LittleEndian.Uint64(b[1:]) == session
}

// greeter greets until a fabric answers.
type greeter struct {
	greeting Greeting
	key      []byte
	cookie   [cookieLen]byte
}

// answered reads an answer to the greeting. again: greet again at once. done: it is an admission. The
// error is a *RefusedError, a *takenError or a *messageError.
func (g *greeter) answered(b []byte) (a Admission, done, again bool, err error) {
	if len(b) < 9 || binary.LittleEndian.Uint64(b[1:]) != g.greeting.Session {
		return a, false, false, nil
	}
	switch b[0] {
	case kindChallenge:
		var w wireChallenge
		if err := decode(b, kindChallenge, "challenge", &w); err != nil || w.Cookie == g.cookie {
			return a, false, false, nil
		}
		g.cookie = w.Cookie
		return a, false, true, nil
	case kindDeny:
		if len(b) < 10 {
			return a, false, false, nil
		}
		refused := &RefusedError{text(b[10:])}
		if b[9] == denyTaken {
			return a, false, false, &takenError{refused}
		}
		return a, false, false, refused
	case kindAdmit:
		a, err = g.admitted(b)
		return a, err == nil, false, err
	}
	return a, false, false, nil
}

func (g *greeter) admitted(b []byte) (a Admission, err error) {
	if len(b) < admitLen+welcomeLen {
		return a, &messageError{fmt.Sprintf("an admission of %d bytes", len(b))}
	}
	if !proved(b, admitProofAt, g.key) {
		return a, &messageError{"the fabric has no key, or another than this adapter"}
	}
	var w wireAdmit
	if err := decode(b[:admitLen], kindAdmit, "admission", &w); err != nil {
		return a, err
	}
	a = Admission{Session: w.Session, Size: int(w.Size), Window: int(w.Window)}
	if a.Welcome, err = parseWelcome(b[admitLen : admitLen+welcomeLen]); err != nil {
		return a, err
	}
	a.State, err = parseState(b[admitLen+welcomeLen:])
	a.State.Port.Fabric = a.Welcome.Fabric
	return a, err
}

// takenError says that another adapter has the port at the moment.
type takenError struct{ *RefusedError }

// newSession returns a random number that identifies a session.
func newSession() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
