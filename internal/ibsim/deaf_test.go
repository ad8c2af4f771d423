package ibsim

// deaf is a listener that receives nothing and whose sockets accept everything.
type deaf struct{}

func (*deaf) Close() error                              { return nil }
func (*deaf) read([]byte) (int, peer, error)            { return 0, nil, errDeaf }
func (*deaf) reply(peer, []byte)                        {}
func (*deaf) same(a, b peer) bool                       { return a == b }
func (*deaf) user(peer) uint32                          { return 0 }
func (*deaf) commands(*Server)                          {}
func (*deaf) alive(uint32) bool                         { return true }
func (*deaf) open(uint32, uint32, peer) (socket, error) { return deafSocket{}, nil }

type deafSocket struct{}

func (deafSocket) start(*Server, *client) {}
func (deafSocket) try([]byte) bool        { return true }
func (deafSocket) later()                 {}
func (deafSocket) close()                 {}
