package packet

import (
	"encoding/binary"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// gate is a program at the entrance of an interface (tcx, Linux 6.6) that drops what the ring has whole, right behind the
// ring. Without it the filter of the socket does, to which the system's IP and UDP input bring it: a fifth of
// what a frame from one interface to the other takes.
type gate struct {
	link  int // descriptor: the program goes with it
	id    uint32
	state *gateState
	page  []byte // that state is in
}

// gateState is what the program and the Port share.
type gateState struct {
	open    uint64 // not 0: the program drops
	dropped uint64
}

// gateName marks the programs, so that a Port does not take another one's for a filter of the user's.
const gateName = "softvpi_gate"

// openGate attaches a program for what a rule's ring has whole. It does nothing yet.
func openGate(r Rule) (g *gate, err error) {
	values, err := gateMap()
	if err != nil {
		return nil, err
	}
	defer unix.Close(values)
	g = &gate{link: -1}
	if g.page, err = unix.Mmap(values, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	g.state = (*gateState)(unsafe.Pointer(&g.page[0]))
	if err := g.attach(r, values); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *gate) attach(r Rule, values int) error {
	fd, err := loadGate(gateProgram(r, values))
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if g.id, _, err = programInfo(fd); err != nil {
		return err
	}
	// The link_create of union bpf_attr (linux/bpf.h): program, interface, kind of attachment.
	var a [64]byte
	binary.NativeEndian.PutUint32(a[0:], uint32(fd))
	binary.NativeEndian.PutUint32(a[4:], uint32(r.Interface))
	binary.NativeEndian.PutUint32(a[8:], unix.BPF_TCX_INGRESS)
	g.link, err = bpf(unix.BPF_LINK_CREATE, a[:])
	return err
}

// set says whether the program drops. A nil gate drops nothing.
func (g *gate) set(open bool) {
	if g == nil {
		return
	}
	v := uint64(0)
	if open {
		v = 1
	}
	atomic.StoreUint64(&g.state.open, v)
}

// dropped is how many frames the program dropped.
func (g *gate) dropped() uint64 {
	if g == nil {
		return 0
	}
	return atomic.LoadUint64(&g.state.dropped)
}

// own is the program's number in the system; 0 is none's.
func (g *gate) own() uint32 {
	if g == nil {
		return 0
	}
	return g.id
}

func (g *gate) close() {
	if g == nil {
		return
	}
	if g.link >= 0 {
		unix.Close(g.link)
	}
	_ = unix.Munmap(g.page) // nothing is to be done about it
	g.state, g.page, g.link = nil, nil, -1
}

// gateMap makes the memory that a program shares with this process: an array of one gateState.
func gateMap() (int, error) {
	var a [64]byte // the map_create of union bpf_attr: type, lengths of a key and of a value, entries, flags
	binary.NativeEndian.PutUint32(a[0:], unix.BPF_MAP_TYPE_ARRAY)
	binary.NativeEndian.PutUint32(a[4:], 4)
	binary.NativeEndian.PutUint32(a[8:], uint32(unsafe.Sizeof(gateState{})))
	binary.NativeEndian.PutUint32(a[12:], 1)
	binary.NativeEndian.PutUint32(a[16:], unix.BPF_F_MMAPABLE)
	return bpf(unix.BPF_MAP_CREATE, a[:])
}

func loadGate(code []bpfInstruction) (int, error) {
	license := []byte("GPL\x00")
	var a [64]byte // the prog_load: type, instructions and where they are, license, ..., from byte 48 the name
	binary.NativeEndian.PutUint32(a[0:], unix.BPF_PROG_TYPE_SCHED_CLS)
	binary.NativeEndian.PutUint32(a[4:], uint32(len(code)))
	binary.NativeEndian.PutUint64(a[8:], uint64(uintptr(unsafe.Pointer(&code[0]))))
	binary.NativeEndian.PutUint64(a[16:], uint64(uintptr(unsafe.Pointer(&license[0]))))
	copy(a[48:], gateName)
	fd, err := bpf(unix.BPF_PROG_LOAD, a[:])
	runtime.KeepAlive(code)
	runtime.KeepAlive(license)
	return fd, err
}

// programInfo asks for the number and the name of a program.
func programInfo(fd int) (id uint32, name string, err error) {
	var info [80]byte // struct bpf_prog_info: from byte 4 the number, from byte 64 the name
	var a [16]byte
	binary.NativeEndian.PutUint32(a[0:], uint32(fd))
	binary.NativeEndian.PutUint32(a[4:], uint32(len(info)))
	binary.NativeEndian.PutUint64(a[8:], uint64(uintptr(unsafe.Pointer(&info[0]))))
	_, err = bpf(unix.BPF_OBJ_GET_INFO_BY_FD, a[:])
	runtime.KeepAlive(&info)
	return binary.NativeEndian.Uint32(info[4:]), unix.ByteSliceToString(info[64:]), err
}

// isGate reports whether a program of the system is a Port's gate, which takes CAP_SYS_ADMIN.
func isGate(id uint32) bool {
	var a [16]byte
	binary.NativeEndian.PutUint32(a[0:], id)
	fd, err := bpf(unix.BPF_PROG_GET_FD_BY_ID, a[:])
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	_, name, err := programInfo(fd)
	return err == nil && name == gateName
}

func bpf(command uintptr, attributes []byte) (int, error) {
	r, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(unsafe.Pointer(&attributes[0])), uintptr(len(attributes)))
	if errno != 0 {
		return -1, os.NewSyscallError("bpf", errno)
	}
	return int(r), nil
}
